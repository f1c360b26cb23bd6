"""The nearest training points of new points: by a search in cells, or all are looked at where a metric compares rows.

`InputNeighbors` numbers them as the points came.
"""

import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from scalemani.config.functions import check_function
from scalemani.config.metrics import compares_rows
from scalemani.config.params.by_stage import NeighborsParams
from scalemani.config.stages import PRECOMPUTED
from scalemani.config.validation import check_count
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import PointsSource, map_points, open_points
from scalemani.io.sources.side_data import LEFT_OUT
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.grouping import compact_rows
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.arrays.workspace import threads
from scalemani.kernels.machine.control_groups import usable_processors
from scalemani.kernels.neighbors.cell_index import CellIndex, index_cells, nearest_indexed_cells
from scalemani.kernels.neighbors.cell_scan import search_enough_cells
from scalemani.kernels.neighbors.exact import SketchedRows, nearest_among
from scalemani.kernels.neighbors.plain import compared, merged, recall_of
from scalemani.kernels.neighbors.rerank import Neighbors, no_neighbors, recall_by_row, refine_neighbors
from scalemani.kernels.neighbors.row_scan import compared_neighbors
from scalemani.kernels.rows.compressed import Points, compressed_rows
from scalemani.kernels.rows.metrics import EUCLIDEAN, METRICS, compared_rows, convert_distances
from scalemani.kernels.rows.sketches import IN_SIGHT, SketchBasis, sketch_points
from scalemani.runs.input_order import Graph
from scalemani.runs.opened import Run
from scalemani.runs.preprocessing.gaps import usable_rows
from scalemani.stages.arrays.points import StoredPartition, StoredWorkPoints, sketches_of
from scalemani.stages.neighbors.tables import SketchesByCell, listed_by_cell

CANDIDATES_PER_NEIGHBOR = 2.0
CACHE_BYTES = 2**28  # of decoded blocks of training points
ROWS_AT_ONCE = 65_536  # of new points
ROWS_OF_TRUTH = 8192  # training points that are in memory at once while the recall is measured
SAMPLED_POINTS = 100  # by which the recall of a query is measured
ROWS_OF_THREAD = 64  # new points at least, that a thread compares with a block of training points


class PointIndex(Protocol):
    """Training points among which new ones find their neighbours, by work rows."""

    @property
    def n_features(self) -> int:
        """The columns of the points."""

    @property
    def dtype(self) -> np.dtype:
        """That of the points."""

    @property
    def sparse(self) -> bool:
        """Whether they are sparse, and new ones are read as such."""

    def neighbors(self, points: Points, n_neighbors: int) -> Neighbors:
        """Return the nearest training points, as work rows, of points (n, D): ascending distances, ties by row."""

    def recall(self, points: Points, n_neighbors: int) -> float:
        """Return the share of the true neighbours of points (n, D) that `neighbors` finds."""


@dataclass(frozen=True)
class NeighborIndex:
    """What finding neighbours takes: sketches (N, s) of the training points by cell, and the points themselves.

    `cells` is the index of these, by which a new point comes to the cells near it as the points of a run do;
    `sketches` are those in work order, and `by_cell` the same as cells are scanned. `gather` returns the training
    points (n, D) at ascending work rows (n,).
    """

    basis: SketchBasis
    centroids: np.ndarray
    cells: CellIndex
    by_cell: SketchesByCell
    sketches: np.ndarray
    gather: Callable[[np.ndarray], Points]
    dtype: np.dtype
    tuning: NeighborsParams
    sparse: bool
    metric: str = EUCLIDEAN

    @property
    def n_features(self) -> int:
        """The columns of the points."""
        return len(self.basis.mean)

    def neighbors(self, points: Points, n_neighbors: int) -> Neighbors:
        """Return the nearest training points, as work rows, of points (n, D): ascending distances, ties by row."""
        points = self._comparable(points)
        if len(self.sketches) <= self.tuning.exact_below:
            none, unlimited = no_neighbors(points.shape[0], n_neighbors), np.full(points.shape[0], np.inf)
            return self._nearest_among(points, slice(0, len(self.sketches)), none, unlimited)
        sketches = sketch_points(points, self.basis)
        n_probes = min(self.tuning.first_probes, len(self.centroids))
        probes = nearest_indexed_cells(sketches, self.cells, n_probes)
        wanted = round(CANDIDATES_PER_NEIGHBOR * n_neighbors)
        behind = len(self.sketches)
        by_cell = self.by_cell
        candidates = search_enough_cells(
            by_cell.sketches, by_cell.offsets, self.centroids, probes, behind, wanted, sketches
        )
        labels, places = compact_rows(by_cell.work_rows(candidates))
        rows = compared_rows(self.gather(labels).astype(points.dtype, copy=False), self.metric)
        points, none = compared_rows(points, self.metric), no_neighbors(points.shape[0], n_neighbors)
        if self.sparse:
            points, rows = compressed_rows(points), compressed_rows(rows, queried=False)
        return refine_neighbors(METRICS[self.metric].distance, points, rows, labels.astype(np.int32), places, none)[0]

    def recall(self, points: Points, n_neighbors: int) -> float:
        """Return the share of the true neighbours of points (n, D) that `neighbors` finds, by exact search."""
        points = self._comparable(points)
        neighbors = self.neighbors(points, n_neighbors)
        limits = neighbors.distances[:, -1].astype(np.float64)
        true = no_neighbors(points.shape[0], n_neighbors)
        for rows in slices(len(self.sketches), ROWS_OF_TRUTH):
            true = self._nearest_among(points, rows, true, limits)
        return float(np.mean(recall_by_row(neighbors, true.distances)))

    def _comparable(self, points: Points) -> Points:
        """Return points in the dtype in which they are compared, sparse where the training points are."""
        dtype = np.result_type(points.dtype, self.dtype)
        if self.sparse:
            return sp.csr_matrix(points, dtype=dtype)
        # Sketches of coordinates too far away would overflow; distances say nothing out there.
        farthest = IN_SIGHT * self.basis.scale
        if points.dtype.kind == "f" and not max(points.max(), -points.min()) < farthest:
            bounds = self.basis.mean - farthest, self.basis.mean + farthest
            points = np.clip(points, *bounds).astype(points.dtype, copy=False)
        return np.ascontiguousarray(points, dtype)

    def _nearest_among(self, points: Points, rows: slice, known: Neighbors, limits: np.ndarray) -> Neighbors:
        """Return the nearest of what is known and consecutive training points, by exact distance."""
        none = np.full(points.shape[0], -1)
        held = self.gather(np.arange(rows.start, rows.stop)).astype(points.dtype, copy=False)
        both = (points, sketch_points(points, self.basis)), (held, self.sketches[rows])
        unit, distance = self.basis.scale, METRICS[self.metric].distance
        queries, block = (
            SketchedRows(compared_rows(part, self.metric), sketches, unit, distance) for part, sketches in both
        )
        return nearest_among(queries, none, block, rows.start, known, limits)


@dataclass(frozen=True)
class ComparedIndex:
    """All training points, with each of which a function compares new ones.

    `read_rows` returns consecutive ones (n, D), of which `block_rows` are read at a time; a block is compared on
    `threads`.
    """

    read_rows: Callable[[slice], Any]
    n_points: int
    n_features: int
    block_rows: int
    dtype: np.dtype
    metric: str
    threads: int

    sparse: ClassVar[bool] = False

    def neighbors(self, points: Points, n_neighbors: int) -> Neighbors:
        """Return the nearest training points, as work rows, of points (n, D): ascending distances, ties by row.

        Entries are -1, at inf, where fewer training points are at a finite distance.
        """
        wide = np.ascontiguousarray(points, np.float64)
        parts = [wide[part] for part in slices(len(wide), max(ROWS_OF_THREAD, -(-len(wide) // self.threads)))]
        lists = [no_neighbors(len(part), n_neighbors) for part in parts]
        with threads(self.threads) as side_by_side:
            for start, rows in self._blocks():
                compare = functools.partial(self._nearest_among, start, rows)
                lists = side_by_side.over(compare, list(zip(parts, lists, strict=True)))
        return Neighbors(*map(np.concatenate, zip(*lists, strict=True)))

    def _nearest_among(self, start: int, rows: np.ndarray, of_part: tuple[np.ndarray, Neighbors]) -> Neighbors:
        """Return the nearest of what is known of some new points and consecutive training points."""
        points, known = of_part
        none, unlimited = np.full(len(points), -1), np.full(len(points), np.inf)
        return compared_neighbors(METRICS[self.metric].distance, points, none, rows, start, known, unlimited)

    def recall(self, points: Points, n_neighbors: int) -> float:
        """Return the share of the true neighbours of points (n, D) that `neighbors` finds, by SciPy's distances."""
        lists, none = self.neighbors(points, n_neighbors).indices, np.full(points.shape[0], -1)
        parts = (compared(points, none, lists, rows, start, self.metric) for start, rows in self._blocks())
        return recall_of(functools.reduce(merged, parts), lists)

    def _blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield blocks of training points (n, D) behind the first work row of each."""
        return ((rows.start, self.read_rows(rows)) for rows in slices(self.n_points, self.block_rows))


def neighbor_index(run: Run, in_memory: bool) -> PointIndex:
    """Return the index of a finished run's points, which are read into memory or stay in the store."""
    stored, trained = run.stored(StoredWorkPoints), run.dimensions
    if compares_rows(run.metric):
        points = stored.dense_points
        read_rows: Callable[[slice], Any] = points.read_rows
        if in_memory:
            read_rows = functools.partial(operator.getitem, points.read())
        return ComparedIndex(
            read_rows,
            trained.n_points,
            trained.n_features,
            trained.block_rows,
            np.dtype(trained.dtype),
            run.metric,
            usable_processors(),
        )
    partition = run.stored(StoredPartition)
    gather: Callable[[np.ndarray], Points] = functools.partial(stored.points.gather, cache_bytes=CACHE_BYTES)
    if in_memory:
        gather = functools.partial(operator.getitem, stored.points.read())
    centroids, sketches = partition.centroids.read(), sketches_of(stored, partition.basis).read()
    return NeighborIndex(
        partition.basis,
        centroids,
        index_cells(centroids),
        listed_by_cell(stored, sketches, len(centroids), np.empty),
        sketches,
        gather,
        np.dtype(run.dimensions.dtype),
        run.params.neighbors,
        run.dimensions.sparse,
        run.metric,
    )


def check_features(points: PointsSource, n_features: int) -> None:
    """Refuse points with other columns than those that were embedded."""
    if points.shape[1] != n_features:
        raise DataError(
            f"{points.description} has {points.shape[1]} features, the embedding was made of {n_features} "
            "features: give points with the same columns"
        )


@dataclass(frozen=True)
class InputNeighbors:
    """What finds neighbours in input order.

    `input_rows` (N,) are those of the rows of the index; distances are in `metric`.
    """

    index: PointIndex
    input_rows: np.ndarray
    metric: str

    def find(self, points: PointsSource, n_neighbors: int) -> Neighbors:
        """Return the nearest points (n, k) of the run of new points (n, D), which are mapped for the metric.

        Distances ascend; a point of the run is a neighbour of itself. Rows with a gap, where these are left out, have
        -1 and NaN. Raises DataError for points with other columns and with values that are not finite.
        """
        check_features(points, self.index.n_features)
        dtype = np.result_type(points.dtype, self.index.dtype)
        indices = np.full((points.shape[0], n_neighbors), LEFT_OUT, np.int64)
        distances = np.full(indices.shape, np.nan, np.float64 if dtype == np.float64 else np.float32)
        for rows in slices(points.shape[0], ROWS_AT_ONCE):
            usable, numbers = usable_rows(points, self.metric, rows.start, rows.stop, self.index.sparse)
            if len(numbers):
                neighbors = self.index.neighbors(usable, n_neighbors)
                indices[rows.start + numbers] = self.input_rows[neighbors.indices]
                distances[rows.start + numbers] = convert_distances(self.metric, neighbors.distances)
        return Neighbors(indices, distances)


def read_input_neighbors(run: Run, in_memory: bool) -> InputNeighbors:
    """Return what finds neighbours among the points of a finished run; `in_memory`, so that its store may go.

    Raises ConfigError where the metric is a function that is another one by now.
    """
    check_function(run.metric)
    order = run.stored(StoredWorkPoints).input_rows.read()
    input_rows = order if run.rows.input_rows is None else run.rows.input_rows[order]
    return InputNeighbors(neighbor_index(run, in_memory), input_rows, run.metric)


@dataclass(frozen=True)
class KnnGraph(Graph):
    """A k-nearest-neighbour graph, rows and neighbours numbered as the points came.

    Arrays are NumPy for points in memory and zarr for points on disk or in Dask. Rows left out by
    settings={"points.missing": "leave-out"} have -1 and NaN. Arrays on disk take NumPy's indexing of rows, and so does
    the graph: `graph[rows]` has the `indices` and `distances` of a row, a slice, a mask or row numbers, still numbered
    as all points. `len` is the number of points, and `indices, distances = graph` the pair.

    Attributes
    ----------
    indices : (N, k) int64, neighbours of each point, itself excluded
    distances : (N, k) float32 (float64 for float64 points), ascending, in the requested metric
    recall : share of the true neighbours that are in the graph, measured on a random sample against exact search
    """

    recall: float
    _run: Run | None = field(default=None, repr=False, compare=False)

    def query(self, new_points: Any, n_neighbors: int | None = None) -> "KnnGraph":
        """Return the nearest points of the graph for new points, by the cells that the graph was built with.

        Parameters
        ----------
        new_points : (n, D), of any kind that `knn_graph` takes
        n_neighbors : int or None
            k, at most N. None: as in the graph.

        Returns
        -------
        KnnGraph
            `indices` (n, k) int64, rows of the points of the graph; a point of these is a neighbour of itself.
            `recall`, the share of true neighbours among them, of a sample against exact search.

        Raises
        ------
        ConfigError
            For a graph of points in memory without `store`, whose run is gone, and for an impossible k.
        DataError
            For points with other columns, none, or values that are not finite.
        """
        if self._run is None:
            raise ConfigError(
                "query reads the run of the graph, and this one has none: make it with knn_graph(store=FOLDER)"
            )
        if self._run.metric == PRECOMPUTED:
            raise ConfigError(f"{self._run.store.root} has precomputed neighbors: query takes a run of points")
        run, k = self._run, self.indices.shape[1] if n_neighbors is None else n_neighbors
        check_count(k, "n_neighbors", 1, run.dimensions.n_points, "the number of points")
        source = map_points(run.metric, run.like_points(open_points(new_points, run.params.leaves_out_gaps)))
        if source.shape[0] == 0:
            raise DataError(f"{source.description} has no rows: give at least one point")
        search = read_input_neighbors(run, in_memory=False)
        indices, distances = search.find(source, k)
        sampled = sample_rows(run.params.seed, "query", source.shape[0], SAMPLED_POINTS)
        sampled = sampled[indices[sampled, 0] != LEFT_OUT]
        sample = [usable_rows(source, run.metric, int(row), int(row) + 1, sparse=False)[0] for row in sampled]
        recall = search.index.recall(np.concatenate(sample), k) if sample else np.nan
        return KnnGraph(indices, distances, recall)
