"""A run as its store holds it, opened for reading: arrays in input order, parameters, records of finished stages."""

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from scalemani.config.objectives import OBJECTIVES
from scalemani.config.params import Parameters, Resolved, known_values
from scalemani.config.routing import MADE_OF
from scalemani.config.stages import WEIGHTS, Route
from scalemani.config.validation import check_count, check_seed
from scalemani.engine.progress import Progress, progress_for
from scalemani.engine.reading import ArrayReader, Stored
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import bytes_of
from scalemani.errors import ConfigError, StoreError
from scalemani.io.sources import PointsSource
from scalemani.io.sources.columns import in_order_of
from scalemani.io.sources.lazy import LazyRows
from scalemani.io.sources.side_data import LEFT_OUT, NO_CLASS
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.runs.doubt import Doubt
from scalemani.runs.input_order import (
    AffinityMatrix,
    Graph,
    InputOrder,
    ResultRows,
    RowArray,
    RowMatrix,
    SpreadMatrix,
    graph_in_input_order,
    row_array,
)
from scalemani.runs.largest_component import Origin, input_rows
from scalemani.stages.arrays.affinities import StoredAffinities, StoredSymmetricAffinities, affinity_graph
from scalemani.stages.arrays.embeddings import (
    StoredClustering,
    StoredDiffusionCoordinates,
    StoredDoubt,
    StoredEmbedding,
    StoredLayout,
    StoredReduction,
)
from scalemani.stages.arrays.graph import StoredGraph, StoredNeighbors
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.stages.arrays.points import StoredDuplicates, StoredWorkPoints
from scalemani.stages.table import arrays_of, of_method
from scalemani.store.groups import StageGroup
from scalemani.store.objects import damaged_object
from scalemani.store.run_store import COLUMNS, PLAN, RunStore

if TYPE_CHECKING:
    from scalemani.audit.findings import Verification
    from scalemani.kernels.stretch import Stretch

# The stages of several methods that store an embedding, later ones first.
EMBEDDINGS = {stored.STAGE: stored for stored in (StoredLayout, StoredDiffusionCoordinates, StoredEmbedding)}

# What a run lacks, and how to have it computed; it reuses what is there.
HOW_TO_GET = {
    StoredLayout.STAGE: f"come from a descent: run it with a method such as {', '.join(sorted(OBJECTIVES))}",
    StoredEmbedding.STAGE: "come from an embedding: run it with a method such as laplacian-eigenmaps",
    StoredClustering.STAGE: "come from clustering: run it with --method spectral-clustering",
    StoredSymmetricAffinities.STAGE: "are for embeddings: run it with a method such as laplacian-eigenmaps",
    StoredLandmarks.STAGE: "are for embeddings: run it with a method such as laplacian-eigenmaps",
}
FEWEST_VERIFIED_ROWS = 10
LEAST_MEMORY_TO_VERIFY = 2**28  # a block of wide points, and products with the rows drawn


class LandmarksOfRun(NamedTuple):
    """The landmarks (L, D) of a run and the rows (L,) of its results that they are, ascending; None off the data.

    `points` lie where the metric of the run maps rows, as at unit length under cosine.
    """

    rows: np.ndarray | None
    points: np.ndarray


class Curve(NamedTuple):
    """How a descent went, (n,) each: iterations, the objective after them, its gradient's norm before the last step."""

    iteration: np.ndarray
    objective: np.ndarray
    gradient_norm: np.ndarray


class Snapshots(NamedTuple):
    """Positions (S, N, d) in input order that a descent has stored, read when requested, after iterations (S,)."""

    iteration: np.ndarray
    positions: LazyRows


class Run:
    """A run as it stands in its store: arrays in input order, parameters, and the record of every finished stage.

    `plan` says which of the results in the store these are; None: those of the last run there.
    """

    def __init__(self, root: str | Path, plan: dict[str, Any] | None = None) -> None:
        self.store = RunStore.open(root)
        plan = self.plan = self.store.load_plan() if plan is None else plan
        try:
            self.method: str = plan["method"]
            self.keys: dict[str, str] = dict(plan["keys"])
            self.dimensions = checked_dimensions(plan["dimensions"])
            # What is open in a plan that an older version has stored is decided by its method.
            params = Parameters().with_values(known_values(plan["params"]))
            self.params = params.resolved(self.method, self.dimensions.n_points)
            self.column_names = checked_names(plan.get(COLUMNS, []), self.dimensions.n_features)
            self._origins = [Origin(**entry) for entry in plan["within"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged_object(f"{self.store.root}/{PLAN}", str(error)) from error

    def group(self, stage: str) -> StageGroup:
        """Return the group of a stage of this run."""
        if stage not in self.keys:
            raise StoreError(f"{self.method} has no stage {stage!r}; its stages: {', '.join(self.keys)}")
        return self.store.group(stage, self.keys[stage], self.dimensions.block_rows)

    def stored(self, kind: type[Stored]) -> Stored:
        """Return the reader of the results of a stage of this run."""
        return kind(self.group(kind.STAGE))

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the record of every finished stage: parameters, certificates, seconds, peak memory in bytes.

        Stages come in the order in which they run.
        """
        names = [stage.name for stage in self.route if stage.name in self.keys]
        groups = {stage: self.group(stage) for stage in names}
        return {stage: checked_record(group) for stage, group in groups.items() if group.complete}

    @property
    def next_stage(self) -> str:
        """The first stage that is not complete, the empty text for a finished run."""
        names = (stage.name for stage in self.route if stage.name in self.keys)
        return next((name for name in names if not self.group(name).complete), "")

    @property
    def route(self) -> Route:
        """The stages of the run, in the order in which they run."""
        return self.params.route(self.method, WEIGHTS.name in self.keys)

    @property
    def certificates(self) -> dict[str, dict[str, Any]]:
        """What each finished stage measured about how good its result is."""
        return {stage: record["certificates"] for stage, record in self.records().items()}

    @property
    def metric(self) -> str:
        """The metric in which points are compared; their rows, landmarks too, are stored as it maps them."""
        return self.params.points.metric

    @functools.cached_property
    def rows(self) -> ResultRows:
        """Which rows of the input results have, and the point that each is."""
        if StoredDuplicates.STAGE in self.keys:
            points = self._finished(StoredDuplicates).points.read()
            has_point = points != LEFT_OUT
            return ResultRows(len(points), None if has_point.all() else np.flatnonzero(has_point), points[has_point])
        n_input = self._origins[0].n_points if self._origins else self.dimensions.n_points
        return ResultRows(n_input, input_rows(self.store, self._origins))

    @property
    def n_input_points(self) -> int:
        """How many points the input has, those of components that were left out among them."""
        return self.rows.n_input

    @property
    def is_component(self) -> bool:
        """Whether the run has the points of one component alone, and has left out the others."""
        return bool(self._origins)

    @property
    def fills_gaps(self) -> bool:
        """Whether results have all rows of the input: NaN, no cluster and no neighbours in those left out."""
        return self.params.leaves_out_gaps and self.rows.input_rows is not None

    @property
    def input_rows(self) -> np.ndarray | None:
        """The row (M,) of the input that each row of the results belongs to; None where that is every row."""
        return None if self.fills_gaps else self.rows.input_rows

    def like_points(self, source: PointsSource) -> PointsSource:
        """Return new points with their columns in the order of those of the run, where both have names."""
        return in_order_of(source, self.column_names, f"the points of {self.store.root}")

    def of_results(self, values: np.ndarray) -> np.ndarray:
        """Return those of values (N, ...) in input order whose rows (M, ...) were not left out."""
        return self.rows.take(values)

    def of_points(self, values: np.ndarray) -> np.ndarray:
        """Return those of values (N, ...) in input order that belong to stored points: one of each of equal rows."""
        of_rows = self.rows.take(values)
        return of_rows if self.rows.of_points is None else of_rows[self.rows.of_points]

    def of_input(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Return values (M, ...) of rows that were not left out in input order (N, ...), `fill` in the others."""
        return self.rows.spread(values, fill)

    def _filled(self, results: RowArray, fill: float, description: str, numbered: bool = False) -> RowArray:
        """Return an array (M, ...) of rows not left out with all rows of the input, where results have these."""
        return self.rows.by_input_rows(results, fill, description, numbered) if self.fills_gaps else results

    @property
    def embedding(self) -> RowArray:
        """The embedding (n_points, n_components) as a zarr array, rows in input order.

        Where equal rows are one point or rows with gaps were left out, as an array whose rows are read when they are
        requested; rows with gaps are NaN.
        """
        return self._filled(self.retained_embedding, np.nan, f"the embedding in {self.store.root}")

    @property
    def retained_embedding(self) -> RowArray:
        """The embedding (M, n_components) of the rows that were not left out."""
        return self.rows.by_rows(self.stored_embedding, f"the embedding in {self.store.root}")

    @property
    def stored_embedding(self) -> ArrayReader:
        """The reader of the embedding of the stored points, which knows ways to read it that zarr does not."""
        kind: type[Any] = self.reduction or EMBEDDINGS[self.last_stage]
        return self._finished(kind).embedding

    @property
    def embeds(self) -> bool:
        """Whether the method ends in an embedding."""
        return self.reduction is not None or any(stage in self.keys for stage in EMBEDDINGS)

    @functools.cached_property
    def reduction(self) -> type[StoredReduction] | None:
        """What stores the embedding of a method that has a separate stage for it; None for other methods."""
        of_methods = filter(None, map(of_method, self.keys))
        return next((stored for stored in of_methods if issubclass(stored, StoredReduction)), None)

    @property
    def last_stage(self) -> str:
        """The stage that holds the embedding: the last one of the method that stores any."""
        if self.reduction is not None:
            return self.reduction.STAGE
        for stage in EMBEDDINGS:
            if stage in self.keys:
                return stage
        raise StoreError(
            f"{self.store.root} was last run with method {self.method}, which has no embedding: run it with another "
            "method, which reuses the same graph"
        )

    @property
    def eigenvalues(self) -> np.ndarray:
        """The eigenvalues (n_components,) that belong to the columns of the spectral or linear embedding.

        Those of L v = lambda D v; of principal components the variances, of discriminants the shares between classes.
        """
        kind: type[Any] = self.reduction or StoredEmbedding
        return self._finished(kind, "eigenvalues").eigenvalues.read()

    @property
    def labels(self) -> RowArray:
        """The clusters (n_points,) of spectral clustering, rows in input order; -1 in rows with gaps."""
        return self._filled(self.retained_labels, NO_CLASS, f"the clusters in {self.store.root}")

    @property
    def retained_labels(self) -> RowArray:
        """The clusters (M,) of the rows that were not left out."""
        return row_array(self._finished(StoredClustering, "labels").labels)

    @property
    def graph(self) -> Graph:
        """The neighbour graph, rows and neighbours in input order: `indices` and `distances` (n_points, k).

        Rows with gaps have neighbours -1 at distances NaN.
        """
        lists, where = self.retained_graph, f"the neighbour graph in {self.store.root}"
        indices = self._filled(lists.indices, LEFT_OUT, where, numbered=True)
        return Graph(indices, self._filled(lists.distances, np.nan, where))

    @property
    def retained_graph(self) -> Graph:
        """The neighbour graph of the rows that were not left out, by their numbers among these."""
        if StoredGraph.STAGE in self.keys and self.group(StoredGraph.STAGE).complete:
            stored = self.stored(StoredGraph)
            return Graph(row_array(stored.indices), row_array(stored.distances))
        return graph_in_input_order(self._finished(StoredNeighbors), self.order, self.metric)

    @property
    def affinities(self) -> RowMatrix:
        """W, the symmetric affinities (n_points, n_points), rows and columns in input order: `.tocsr()` reads it.

        Where equal rows are one point, its affinities are those of all its copies and stand in the first of its rows.
        Rows with gaps have none.
        """
        return self.spread_matrix(self.retained_affinities) if self.fills_gaps else self.retained_affinities

    def spread_matrix(self, matrix: RowMatrix) -> RowMatrix:
        """Return a matrix (M, M) of rows not left out with rows and columns of the whole input, the others empty."""
        return (
            matrix if self.rows.input_rows is None else SpreadMatrix(matrix, self.rows.input_rows, self.n_input_points)
        )

    @property
    def retained_affinities(self) -> RowMatrix:
        """W of the rows that were not left out."""
        self._finished(StoredSymmetricAffinities, "affinities")
        of_w = (StoredSymmetricAffinities.STAGE, StoredWorkPoints.STAGE, *MADE_OF)
        stored = affinity_graph({stage: self.group(stage) for stage in of_w if stage in self.keys})
        matrix = AffinityMatrix(stored, self.order, self.dimensions.n_points, self.dimensions.block_rows)
        first = self.rows.of_points
        return matrix if first is None else SpreadMatrix(matrix, first, len(self.rows))

    @property
    def landmarks(self) -> LandmarksOfRun:
        """The landmarks: `points` (L, n_features), and the `rows` (L,) that they are, None where they are no points."""
        stored = self._finished(StoredLandmarks, "landmarks")
        rows = None if stored.off_data else self.rows.numbered(stored.rows.read())
        if rows is not None and self.rows.input_rows is not None and self.fills_gaps:
            rows = self.rows.input_rows[rows]
        return LandmarksOfRun(rows, stored.points.read())

    @property
    def curve(self) -> Curve:
        """The learning curve of a descent: `iteration`, `objective` and `gradient_norm`, (n,) each."""
        iteration, objective, gradient_norm = self._finished(StoredLayout, "curve").curve.read().T
        return Curve(iteration.astype(np.int64), objective.copy(), gradient_norm.copy())

    @property
    def doubt(self) -> Doubt:
        """How far the map may be believed at each point; NaN and False in rows with gaps.

        Raises StoreError where it was not measured.
        """
        return self.doubt_of_input() if self.fills_gaps else self.retained_doubt

    @property
    def retained_doubt(self) -> Doubt:
        """The doubt (M,) of the rows that were not left out."""
        return Doubt.read(self._stored_doubt(), self.order.of_results(slice(None)))

    @property
    def retained_doubtful(self) -> np.ndarray:
        """Which of these rows (M,) could as well lie elsewhere; no other score is read."""
        return Doubt.read_doubtful(self._stored_doubt(), self.order.of_results(slice(None)))

    def _stored_doubt(self) -> StoredDoubt:
        if StoredDoubt.STAGE not in self.keys:
            raise StoreError(
                f"{self.store.root} has no doubt of its points: scalemani doubt RUN measures it, or embed with "
                "--set doubt.measured=true"
            )
        return self._finished(StoredDoubt)

    def doubt_of_input(self) -> Doubt:
        """Return the doubt with all rows (N,) of the input, NaN and False in those that were left out."""
        return self.retained_doubt.each(lambda one: self.of_input(one, False if one.dtype == bool else np.nan))

    @property
    def snapshots(self) -> Snapshots:
        """The positions that a descent has stored on its way: `positions` (S, n_points, d) after `iteration` (S,)."""
        stored = self._finished(StoredLayout, "snapshots")
        iterations = stored.snapshot_iterations
        if not iterations:
            raise StoreError(
                f"{self.store.root} has no snapshots: --set layout.snapshots=N stores the positions "
                "every N iterations of a descent, which is then made again"
            )
        where = f"snapshots in {self.store.root}"
        arrays = [
            self._filled(self.rows.by_rows(stored.snapshot(iteration), where), np.nan, where)
            for iteration in iterations
        ]

        def read(start: int, stop: int) -> np.ndarray:
            return np.stack([np.asarray(one[...]) for one in arrays[start:stop]])

        return Snapshots(
            np.array(iterations), LazyRows((len(arrays), *arrays[0].shape), np.dtype(np.float64), read, where, 1)
        )

    def verify(
        self,
        rows: int = 1000,
        memory: str | int = "4GB",
        seed: int | None = None,
        write: bool = True,
        verbose: bool = False,
    ) -> "Verification":
        """Audit the run: compute what it claims anew, by code that shares nothing with what made it.

        Digests and the invariants of all arrays are checked; recall, affinities, rows of W and Z, and forces on rows
        that are drawn, and eigenvectors by one pass over W, are computed in float64 with NumPy and SciPy.

        Parameters
        ----------
        rows : rows to draw, at least 10
        memory : budget, such as "4GB" or a number of bytes
        seed : what rows are drawn by; None: a number that nobody knew before, which the result says
        write : whether the result is stored with the run, as `verification.json` and `verification.txt`, which
            `report` then shows
        verbose : whether progress is shown on standard error

        Returns
        -------
        Verification
            `ok`, and `findings`: for each claim what the run says, what was measured, a standard error, and a verdict.
            Printed, it is a table.

        Raises
        ------
        ConfigError
            For arguments out of their range.
        StoreError
            Where the plan of the run is damaged.
        """
        from scalemani.audit.verifying import verify, write_findings

        n_rows, budget = check_count(rows, "rows", FEWEST_VERIFIED_ROWS), bytes_of(memory)
        if budget < LEAST_MEMORY_TO_VERIFY:
            raise ConfigError(f"memory must be at least {LEAST_MEMORY_TO_VERIFY} bytes for an audit, got {memory}")
        descriptions, root = {stage: arrays_of(stage) for stage in self.keys}, str(self.store.root)
        with progress_for(sys.stderr) if verbose else Progress() as progress:

            def watch(done: int, total: int) -> None:
                if done:
                    progress.advance()
                else:
                    progress.start("verify", total, "check")

            verification = verify(root, descriptions, n_rows, budget, check_seed(seed), watch)
        if write:
            write_findings(root, verification)
        return verification

    def stretch(self, n_neighbors: int | None = None, n_dimensions: int | None = None) -> "Stretch":
        """Return how the embedding stretches at each point, rows in input order, NaN in rows that were left out.

        The positions of a point and its neighbours are fitted by a linear map of their coordinates along the leading
        principal directions of these neighbours in the data, as the metric of the run maps rows.

        Parameters
        ----------
        n_neighbors : neighbours a point in the graph; None: 15, or all that the graph has
        n_dimensions : m, those directions, at most the columns d of the embedding; None: d. Fewer where the data are a
            surface in more columns, such as 2 for a sphere in three

        Returns
        -------
        Stretch
            `metric` (N, d, d), the dual pushforward metric; `area` (N,), by how much the map enlarges areas (m = 2),
            lengths (1) or m-volumes (others); the `anisotropy` (N,) of the ellipse that it makes of a circle, and the
            share that the linear map has `explained` (N,), all float64. NaN too where the neighbours lie in fewer
            directions.

        Raises
        ------
        ConfigError
            For numbers out of range, a method without a graph, points that are compared by rows or as sets or are not
            there, and where the neighbours of no point span m directions.
        StoreError
            For a run without an embedding, or that is not finished.
        """
        from scalemani.runs.stretching import stretch_of

        by_point, points = stretch_of(self, n_neighbors, n_dimensions), self.rows.points_at(np.arange(len(self.rows)))
        return type(by_point)(*(self.of_input(values[points], np.nan) for values in by_point))

    @property
    def order(self) -> InputOrder:
        """The way between the order of the results and that in which later stages store their rows."""
        return InputOrder(self._finished(StoredWorkPoints), self.rows)

    def _finished(self, kind: type[Stored], what: str = "") -> Stored:
        """Return the reader of a finished stage; `what` of it is wanted is said where the method has no such stage."""
        stage = kind.STAGE
        if stage not in self.keys and stage in HOW_TO_GET:
            raise StoreError(
                f"{self.store.root} was last run with method {self.method}, which has no {what}: these "
                f"{HOW_TO_GET[stage]}, which reuses the same graph"
            )
        stored = self.stored(kind)
        if not stored.group.complete:
            stored.group.check_mark()
            raise StoreError(f"stage {stage} of {self.store.root} is not finished: run the same command again")
        return stored


def checked_names(names: list[str], n_features: int) -> tuple[str, ...]:
    """Return the names of the columns in a plan, n_features or none; raise ValueError for any other."""
    if (
        not isinstance(names, list)
        or not all(isinstance(name, str) for name in names)
        or len(names) not in (0, n_features)
    ):
        raise ValueError(f"columns must be names of {n_features} columns")
    return tuple(names)


def checked_dimensions(values: dict[str, Any]) -> Dimensions:
    """Return the dimensions in a plan; raise ValueError where they cannot be those of any points."""
    dimensions = Dimensions(**values)
    counts = (dimensions.n_points, dimensions.n_features, dimensions.block_rows)
    whole = all(isinstance(count, int) and not isinstance(count, bool) and 0 < count < 2**63 for count in counts)
    if not whole or dimensions.block_rows % TILE_ROWS or not isinstance(dimensions.dtype, str):
        raise ValueError(f"dimensions {values}")
    np.dtype(dimensions.dtype)
    return dimensions


def checked_record(group: StageGroup) -> dict[str, Any]:
    """Return the record of a finished stage, if it has what every record has."""
    record = group.record
    numbers = isinstance(record.get("seconds"), int | float) and isinstance(record.get("peak_memory"), int)
    if not isinstance(record.get("certificates"), dict) or not numbers:
        raise damaged_object(f"{group.objects.root}/complete.json", "not the record of a stage")
    return record


def open_run(root: str | Path) -> Run:
    """Open a run for reading."""
    return Run(root)


def opened_run(run: Any) -> Run | None:
    """Return a run as it is, or the run that is at a place; None for anything else."""
    if isinstance(run, Run):
        return run
    if not isinstance(run, str | Path) or "::" in str(run) or Path(run).is_file():
        return None
    return open_run(run) if RunStore(run).is_marked else None


def entropy_limit(params: Resolved) -> float:
    """Return how far, in nats, the entropy of stored affinities may be from the requested one.

    Affinities that err by a share eps/2 each change the entropy of k of them by at most eps (log k + 1).
    """
    return params.affinities.tolerance + float(np.finfo(np.float32).eps) * (np.log(params.n_neighbors) + 1)


def poor_points(run: Run) -> np.ndarray:
    """Return which rows (n_points,) bool of the results of a run have affinities that fall short.

    Ties put the perplexity out of their reach, or their entropy is further from its logarithm than `entropy_limit`.

    Raises
    ------
    StoreError
        For a run without entropic affinities: others certify no single point.
    """
    if StoredAffinities.STAGE not in run.keys or run.params.affinities.kind != "entropic":
        raise StoreError(
            f"{run.store.root} has no certificate of each point: entropic affinities have one, in a run of a method "
            "such as t-sne or laplacian-eigenmaps"
        )
    stored = run._finished(StoredAffinities)
    short = (stored.saturated.read() != 0) | (np.abs(stored.residuals.read()) > entropy_limit(run.params))
    return short[run.order.of_results(slice(None))]
