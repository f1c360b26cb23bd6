"""Points before a run knows what they are: parameters follow them, Dask computes them, equal rows become one."""

import contextlib
import functools
import itertools
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
import scipy.sparse as sp
from dask.utils import format_bytes

from scalemani.config.params import Parameters
from scalemani.config.stages import GIVEN_LISTS, PRECOMPUTED
from scalemani.config.validation import check_finite_block, check_shape
from scalemani.engine.needs import Batch, MemoryNeed
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import (
    ConfigError,
    DataError,
    MemoryBudgetError,
    PoisonTaskError,
    ScalemaniError,
    StoreLockedError,
)
from scalemani.io.sources import DaskPoints, DistanceMatrix, GivenAffinities, NeighborLists, PixelRows, PointsSource
from scalemani.io.sources.base import check_rows, innermost, read_rows, with_innermost
from scalemani.io.sources.lazy import ComputedPoints
from scalemani.io.sources.side_data import (
    LEFT_OUT,
    AccompaniedPoints,
    Duplicates,
    GivenLists,
    Pairs,
    Weights,
    map_points,
    points_of,
    side_data_of,
    with_side_data,
)
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.equal_rows import GROUPING_BYTES, cells_of_rows, digests_of_rows, group_digests
from scalemani.kernels.rows.metrics import EUCLIDEAN, METRICS, map_rows
from scalemani.runs.plan import DiskUse, check_disk
from scalemani.runs.survey import COPIES_AT_WORK, LEAST_POINTS, dimensions_of
from scalemani.store.locks import LOCK
from scalemani.store.run_store import RunStore

OF_PIXELS = ("gaussian", "ensemble")  # affinities that are made of the pixels themselves
COPY = "computed-"  # begins the name of the folder of a copy, in that of the run
STAGE = "computing"
SHOWN_COLUMNS = 1000  # with gaps, and the rows of each


def follow_source(asked: Parameters, source: PointsSource) -> tuple[Parameters, PointsSource]:
    """Return parameters that ask for what is given, and this in the geometry of their metric.

    Of lists or distances it has as many neighbours as are asked for.
    """
    if isinstance(source, AccompaniedPoints):
        if source.side.weights is not None and asked.neighbors.by_window:
            raise ConfigError(
                "pixels have no weights: leave out --weights (sample_weight), or take another neighbors.method"
            )
        params, points = follow_source(follow_lists(asked, source.side.lists), source.points)
        found, joining = source.with_points(points_of(points)), side_data_of(points).pairs
        return params, found if joining is None else with_side_data(found, pairs=joining)
    source = map_points(asked.points.metric, source)
    if asked.neighbors.by_window:
        return follow_image(asked, source), source
    if isinstance(source, GivenAffinities) != asked.affinities.precomputed:
        raise ConfigError(
            "affinities go with affinities.kind=precomputed, and points or neighbours with another kind: this kind is "
            f"{asked.affinities.kind}, and what was given is {source.description}"
        )
    if isinstance(source, GivenAffinities):
        return asked.with_values({"points": {"metric": PRECOMPUTED}}), source
    if not isinstance(source, NeighborLists | DistanceMatrix):
        return asked, source
    given = source.n_neighbors
    wanted = asked.neighbors.n_neighbors or (
        given if isinstance(source, NeighborLists) else min(given, asked.n_neighbors)
    )
    if wanted > given:
        raise ConfigError(
            f"neighbors.n_neighbors must be at most {given}, the neighbours a point that are given, got {wanted}"
        )
    asked = asked.with_values({"neighbors": {"n_neighbors": wanted}})
    if isinstance(source, NeighborLists):
        return asked, source if wanted == given else source.nearest(wanted)
    lists = source.nearest(wanted)
    pairs = source.closest_pairs(lists) if asked.components.disconnected == "connect" else None
    return asked, lists if pairs is None else with_side_data(lists, pairs=Pairs(pairs))


def follow_lists(asked: Parameters, lists: GivenLists | None) -> Parameters:
    """Return parameters that ask for as many neighbours as lists beside the points have, or fewer."""
    if lists is None:
        return asked
    if asked.neighbors.method != GIVEN_LISTS:
        raise ConfigError(
            f"neighbour lists were given, and neighbors.method={asked.neighbors.method} finds others: leave out one of "
            "the two"
        )
    listed = lists.indices.shape[1]
    wanted = asked.neighbors.n_neighbors or listed
    if wanted > listed:
        raise ConfigError(
            f"neighbors.n_neighbors must be at most {listed}, the neighbours a point that are given, got {wanted}"
        )
    return asked.with_values({"neighbors": {"n_neighbors": wanted}})


def follow_image(asked: Parameters, source: PointsSource) -> Parameters:
    """Return parameters that know the image whose pixels are given; refuse an image that its window does not fit."""
    if asked.points.metric != EUCLIDEAN or asked.affinities.kind not in (None, *OF_PIXELS):
        raise ConfigError(
            f"neighbors.method=window takes points.metric={EUCLIDEAN} and affinities.kind={' or '.join(OF_PIXELS)}, "
            f"got {asked.points.metric} and {asked.affinities.kind}: change these, or take another neighbors.method"
        )
    if isinstance(source, PixelRows):
        _, rows, columns = source.image
        asked = asked.with_values({"neighbors": {"image_rows": rows, "image_columns": columns}})
    given = asked.neighbors
    if given.image_rows is None or given.image_columns is None:
        raise ConfigError(
            f"neighbors.method=window takes an image, got {source.description}: give an image or a video, or with a "
            "table of pixels neighbors.image_rows and neighbors.image_columns"
        )
    frames, rows, columns = given.image(source.shape[0])
    if frames * rows * columns != source.shape[0]:
        raise DataError(
            f"{source.description} has {source.shape[0]} pixels, which are no frames of {rows} x {columns}: correct "
            "neighbors.image_rows and neighbors.image_columns"
        )
    if min(rows, columns) < given.window:
        raise DataError(
            f"an image of {rows} x {columns} pixels is smaller than its window of {given.window} x {given.window}: "
            "lower neighbors.window, or give a larger image"
        )
    if frames > 1 and given.frames >= frames:
        raise ConfigError(f"neighbors.frames must be below the {frames} frames of the video, got {given.frames}")
    return asked


@contextlib.contextmanager
def computed_once(
    source: PointsSource, root: str | Path, executor: Executor, block_rows: int | None = None
) -> Iterator[PointsSource]:
    """Yield points whose rows are read from a copy where Dask computes them; others as they are.

    A run reads its points several times: to know what they are before anything is decided, and to store them. The copy
    lies in the folder of the run, takes as much as the points in memory would, and goes when the block ends; where
    there was no run before and none has begun, so does the folder.

    Parameters
    ----------
    source : (N, D), the points
    block_rows : rows a block, as in `run`

    Raises
    ------
    DataError
        Where a chunk cannot be computed, or is not what its array said.
    MemoryBudgetError, DiskSpaceError
        Where the largest chunk does not fit the budget, or the copy not the disk; nothing is written then.
    """
    points = innermost(source)
    if not isinstance(points, DaskPoints) or points.shape[0] == 0:
        yield source
        return
    dimensions = dimensions_of(points, executor, block_rows)
    copied = DiskUse(0, dimensions.n_points * dimensions.row_bytes)
    check_disk(root, RunStore(root).objects.free_bytes(), {STAGE: copied}, ", or store the points and give their path")
    store = RunStore.create(root)
    executor.check_reach(root)
    remove_abandoned(store)
    name = f"{COPY}{uuid.uuid4().hex}"
    objects = store.objects.below(name)
    objects.prepare()
    try:
        with objects.lock():
            computed = ComputedPoints(objects.root, dimensions.block_rows, points)
            keep_chunks(points, computed, executor)
            yield with_innermost(source, computed)
    finally:
        store.objects.delete_below(name)
        store.remove_empty()


def remove_abandoned(store: RunStore) -> None:
    """Remove copies of processes that were killed: nobody holds their locks. One without a lock is being made."""
    for name in store.objects.names():
        if name.startswith(COPY) and LOCK in store.objects.names(name):
            with contextlib.suppress(StoreLockedError), store.objects.below(name).lock():
                store.objects.delete_below(name)


def keep_chunks(points: DaskPoints, kept: ComputedPoints, executor: Executor) -> None:
    """Compute all chunks and keep their rows: on the workers, or in this process through the client that has them."""
    executor.progress.start(STAGE, len(points.starts) - 1, "chunk")
    holder = points.holder
    bounds = list(itertools.pairwise(points.starts))
    try:
        if holder is not None and not executor.shares_scheduler(holder):
            # Workers of a cluster that runs no tasks of ours may not reach the folder.
            executor.map_locally(
                lambda bound: kept.keep(bound[0], bound[1], points.read(*bound)), bounds, sequential=True
            )
            return
        writers = [dask.delayed(functools.partial(kept.keep, *bound), pure=False, traverse=False) for bound in bounds]
        values = [write(chunk) for write, chunk in zip(writers, points.lazy_chunks(), strict=True)]
        need = MemoryNeed(per_task=COPIES_AT_WORK * points.held_bytes)  # of a chunk, which threads compute side by side
        executor.compute(values, min(budget.fit(need) for budget in executor.processes), STAGE, holder)
    except PoisonTaskError as error:
        raise DataError(
            f"{points.description} cannot be computed: workers died whenever they worked on one of its chunks, which "
            "may take more memory than a worker has: give smaller chunks, or workers more memory"
        ) from error
    except (ScalemaniError, MemoryError):
        raise
    except Exception as error:  # whatever the user's own functions raise
        raise DataError(
            f"{points.description} cannot be computed: {type(error).__name__}: {error}. Workers take what "
            "pickle can send; the error above this one says where it arose"
        ) from error


class SelectedRows(PointsSource):
    """Some rows (M,) of another source, ascending: a source like any other.

    `together` rows of the source may be read at once for those among them, also where fewer are asked for.
    """

    def __init__(self, points: PointsSource, rows: np.ndarray, together: int = 1) -> None:
        self._points, self._rows, self._together = points, rows, together
        self.shape = (len(rows), points.shape[1])
        self.dtype, self.description = points.dtype, points.description
        self.sequential, self.remark, self.held_bytes = points.sequential, points.remark, points.held_bytes
        self.column_names = points.column_names
        if points.nonzeros is not None:  # about as many of those of all rows as there are rows
            self.nonzeros = round(points.nonzeros * len(rows) / points.shape[0])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the selection: (stop - start, D)."""
        return np.concatenate([np.empty((0, self.shape[1]), self.dtype), *self._parts(start, stop, sparse=False)])

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) of the selection as sparse rows."""
        return sp.csr_matrix(sp.vstack(self._parts(start, stop, sparse=True), format="csr"))

    def _parts(self, start: int, stop: int, sparse: bool) -> list[Any]:
        """Return parts of a selection, each read from no more rows of the source than are asked for or may be."""
        parts, first, width = [], start, max(stop - start, self._together)
        while first < stop:
            last = first + int(np.searchsorted(self._rows[first:stop], self._rows[first] + width))
            rows = self._rows[first:last]
            parts.append(read_rows(self._points, rows[0], rows[-1] + 1, sparse)[rows - rows[0]])
            first = last
        return parts


class Gaps(NamedTuple):
    """Which rows (n,) have a gap, how many rows have one in each column (D,), and rows without a direction."""

    rows: np.ndarray
    counts: np.ndarray
    n_empty: int

    @classmethod
    def of_all(cls, parts: "Sequence[Gaps]") -> "Gaps":
        """Return the gaps of consecutive rows."""
        rows, counts, n_empty = zip(*parts, strict=True)
        return cls(np.concatenate(rows), np.sum(counts, axis=0), sum(n_empty))

    def listed(self, points: PointsSource, metric: str) -> str:
        """Return how many rows of points have a gap in each column that has some, by its name or number."""
        names = points.column_names or range(len(self.counts))
        found = [f"{names[column]} ({self.counts[column]})" for column in np.flatnonzero(self.counts).tolist()]
        more = ["..."] if len(found) > SHOWN_COLUMNS else []
        empty = [f"rows without a direction by {metric} ({self.n_empty})"] if self.n_empty else []
        return ", ".join((*found[:SHOWN_COLUMNS], *more, *empty)) or "none"


def gaps_of_rows(rows: Points, metric: str, first_row: int) -> Gaps:
    """Return the gaps of rows (n, D); refuse what is no gap and cannot be used."""
    missing = rows != rows  # NaN alone is not itself, of dense rows and of sparse ones
    gaps, filled = np.asarray(missing.sum(axis=1)).ravel() > 0, rows
    if gaps.any():
        filled = rows.copy()
        values = filled.data if sp.issparse(filled) else filled
        values[np.isnan(values)] = 0
    check_finite_block(filled, first_row)
    check_rows(filled, metric, first_row, with_empty=False)
    empty = np.zeros(len(gaps), bool)
    for refusal in METRICS[metric].refusals:
        if refusal.empty:
            empty |= refusal.concerns(filled) & ~gaps
    return Gaps(gaps | empty, np.asarray(missing.sum(axis=0)).ravel(), int(empty.sum()))


def usable_rows(points: PointsSource, metric: str, start: int, stop: int, sparse: bool) -> tuple[Points, np.ndarray]:
    """Return those of rows [start, stop) that have no gap, as the metric maps them, and which of these rows they are.

    Parameters
    ----------
    points : (N, D), mapped for the metric; where they cannot have gaps, rows that are not finite are refused
    """
    if not points.gaps:
        rows = read_rows(points, start, stop, sparse)
        check_finite_block(rows, start, columns=points.column_names)
        return rows, np.arange(stop - start)
    rows = read_rows(innermost(points), start, stop, sparse)
    kept = np.flatnonzero(~gaps_of_rows(rows, metric, start).rows)
    return map_rows(rows if len(kept) == stop - start else rows[kept], metric), kept


def find_gaps(points: PointsSource, metric: str, executor: Executor, block_rows: int | None = None) -> Gaps:
    """Return the gaps of all rows of points that give them as NaN; refuse what is no gap and cannot be used."""
    given = innermost(points)
    dimensions = dimensions_of(given, executor, block_rows)
    executor.progress.start("gaps", dimensions.n_blocks)

    def look(block: int) -> list[Gaps]:
        start, stop = dimensions.rows(block)
        return [gaps_of_rows(read_rows(given, start, stop, dimensions.sparse), metric, start)]

    found = executor.fold_locally(look, joined, range(dimensions.n_blocks), given.sequential)
    return Gaps.of_all(found)


def without_gaps(points: PointsSource, gaps: Gaps, first_point: int = 0) -> tuple[PointsSource, np.ndarray]:
    """Return the rows of points without a gap, and the point (n,) of each row, numbered from the first one on."""
    kept = np.flatnonzero(~gaps.rows)
    numbers = np.full(len(gaps.rows), LEFT_OUT)
    numbers[kept] = first_point + np.arange(len(kept))
    return with_innermost(points, SelectedRows(innermost(points), kept)), numbers


def leave_out_gaps(
    source: PointsSource, params: Parameters, executor: Executor, block_rows: int | None = None
) -> PointsSource:
    """Return the rows of a source without a gap and which these are, where parameters ask for it; else the source.

    Parameters
    ----------
    source : (n, D), rows as the metric maps them, that gives gaps as NaN
    block_rows : rows a block, as in `run`

    Raises
    ------
    DataError
        For rows that cannot be used, gaps aside, and where too few have no gap.
    """
    if not params.leaves_out_gaps:
        return source
    metric = params.points.metric
    gaps = find_gaps(source, metric, executor, block_rows)
    points, numbers = without_gaps(points_of(source), gaps)
    if points.shape[0] < LEAST_POINTS:
        raise DataError(
            f"{points.shape[0]} of {len(numbers)} rows of {source.description} have no gap, at least {LEAST_POINTS} "
            "are needed: leave out the columns with most gaps"
        )
    duplicates = Duplicates(numbers, points.shape[0], gaps.listed(source, metric))
    executor.progress.note(str(duplicates))
    return AccompaniedPoints(
        points, replace(side_data_of(source).of_rows(np.flatnonzero(~gaps.rows)), duplicates=duplicates)
    )


def merge_duplicates(
    source: PointsSource, params: Parameters, executor: Executor, block_rows: int | None = None
) -> PointsSource:
    """Return the distinct points of a source with their weights, where parameters ask for these; else the source.

    Points are the first of their rows, in the order of these. Which rows are one point is found from a digest of 16
    bytes of each row, in GROUPING_BYTES a row of this process, whatever the blocks.

    Parameters
    ----------
    source : (n, D), rows as the metric maps them
    block_rows : rows a block, as in `run`

    Raises
    ------
    DataError
        For rows that cannot be used.
    MemoryBudgetError
        Where the digests do not fit the budget.
    """
    tolerance = params.duplicates.tolerance
    if tolerance is None:
        return source
    check_shape(source.shape, source.description, LEAST_POINTS)
    dimensions = dimensions_of(source, executor, block_rows)
    check_grouping(dimensions.n_points, executor, source.description)
    executor.progress.start("duplicates", dimensions.n_blocks)
    rows, blocks = points_of(source), range(dimensions.n_blocks)
    look = functools.partial(digests_of_block, rows, dimensions, tolerance)
    if executor.reads_on_workers(rows):
        need = MemoryNeed(per_task=COPIES_AT_WORK * dimensions.block_rows * dimensions.row_bytes)
        found = executor.fold(look, joined, blocks, batch=Batch("duplicates", "duplicates", need))
    else:
        found = executor.fold_locally(look, joined, blocks, rows.sequential)
    digests = np.concatenate(found)
    found.clear()  # else all of them would be held twice while rows are grouped
    groups, first_rows = group_digests(digests)
    del digests
    merged = distinct_points(source, groups, first_rows)
    executor.progress.note(str(merged.side.duplicates))
    return merged


def distinct_rows(
    source: PointsSource, params: Parameters, executor: Executor, block_rows: int | None = None
) -> PointsSource:
    """Return the points of a source without the rows that `leave_out_gaps` and `merge_duplicates` take out."""
    kept = leave_out_gaps(source, params, executor, block_rows)
    return merge_duplicates(kept, params, executor, block_rows)


def distinct_points(source: PointsSource, points_of_rows: np.ndarray, first_rows: np.ndarray) -> AccompaniedPoints:
    """Return the distinct points of a source, with the side data of these, and their weights.

    Parameters
    ----------
    source : (n, D)
    points_of_rows : (n,) the point of each row
    first_rows : (N,) the first row of each point, ascending
    """
    side, n_points = side_data_of(source), len(first_rows)
    side, earlier = replace(side, duplicates=None), side.duplicates
    given = None if side.weights is None else side.weights.values
    labels = None if side.labels is None else side.labels.of_distinct(points_of_rows, n_points)
    weights = Weights(np.bincount(points_of_rows, given, n_points).astype(np.float64))
    kept = replace(side, labels=None).of_rows(first_rows)
    duplicates = Duplicates(points_of_rows, n_points) if earlier is None else earlier.merged(points_of_rows, n_points)
    merged = replace(kept, labels=labels, weights=weights, duplicates=duplicates)
    return AccompaniedPoints(SelectedRows(points_of(source), first_rows), merged)


def check_grouping(n_rows: int, executor: Executor, description: str) -> None:
    """Refuse more rows than can be compared within the budget of a process, before any is read."""
    least, need = executor.least_memory, GROUPING_BYTES * n_rows
    if least is not None and need > least:
        raise MemoryBudgetError(
            f"finding equal rows among the {n_rows} of {description} takes {format_bytes(need)}, "
            f"{GROUPING_BYTES} bytes a row, and a process may take {format_bytes(least)}: raise --memory, or leave "
            "out --deduplicate (duplicates.tolerance)"
        )


def digests_of_block(source: PointsSource, dimensions: Dimensions, tolerance: float, block: int) -> list[np.ndarray]:
    """Return the digests (n, 2) of the rows of a block, or of their cells where the tolerance is above zero."""
    start, stop = dimensions.rows(block)
    rows = read_rows(source, start, stop, dimensions.sparse)
    check_finite_block(rows, start, columns=source.column_names)
    return [digests_of_rows(cells_of_rows(rows, tolerance) if tolerance > 0 else rows)]


def joined(one: list[Any], other: list[Any]) -> list[Any]:
    """Return what was found of consecutive blocks; the list of the first is lengthened."""
    one.extend(other)
    return one
