"""Equal rows made one point before anything else is known of the points: one pass over the source, by digests."""

import functools
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from dask.utils import format_bytes

from scalemani.config.params import Parameters
from scalemani.config.validation import check_finite_block
from scalemani.engine.needs import Batch, MemoryNeed
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import MemoryBudgetError
from scalemani.io.sources import PointsSource
from scalemani.io.sources.base import nonzeros_of, read_rows
from scalemani.io.sources.side_data import AccompaniedPoints, Duplicates, Weights, points_of, side_data_of
from scalemani.kernels.rows.equal_rows import GROUPING_BYTES, cells_of_rows, digests_of_rows, group_digests
from scalemani.runs.survey import COPIES_AT_WORK, check_reading, check_source, dimensions_of


class SelectedRows:
    """Some rows (M,) of another source, ascending: a source like any other."""

    remote = False  # the rows are in this process

    def __init__(self, points: PointsSource, rows: np.ndarray) -> None:
        self._points, self._rows = points, rows
        self.shape = (len(rows), points.shape[1])
        self.dtype, self.description = points.dtype, points.description
        self.preferred_rows, self.sequential = None, points.sequential
        self.remark, self.held_bytes = getattr(points, "remark", ""), getattr(points, "held_bytes", 0)

    @property
    def nonzeros(self) -> int | None:
        """About as many of those of all rows as there are rows; None where the points are dense."""
        found = nonzeros_of(self._points)
        return None if found is None else round(found * self.shape[0] / self._points.shape[0])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the selection: (stop - start, D)."""
        found = np.empty((stop - start, self.shape[1]), self.dtype)
        for first, last in self._panels(start, stop):
            rows = self._rows[first:last]
            read, chosen = self._points.read(rows[0], rows[-1] + 1), rows - rows[0]
            read.take(chosen, axis=0, out=found[first - start : last - start], mode="clip")  # "raise" makes a copy
        return found

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) of the selection as sparse rows."""
        panels = []
        for first, last in self._panels(start, stop):
            rows = self._rows[first:last]
            panels.append(read_rows(self._points, rows[0], rows[-1] + 1, sparse=True)[rows - rows[0]])
        return sp.csr_matrix(sp.vstack(panels, format="csr"))

    def _panels(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return parts of a selection whose rows span no more rows of the source than are asked for."""
        panels, first = [], start
        while first < stop:
            bound = np.searchsorted(self._rows[first:stop], self._rows[first] + (stop - start))
            panels.append((first, first + int(bound)))
            first += int(bound)
        return panels


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
    check_source(source)
    dimensions = dimensions_of(source, executor, block_rows)
    check_reading(dimensions, executor, source)
    check_grouping(dimensions.n_points, executor, source.description)
    executor.progress.start("duplicates", dimensions.n_blocks)
    rows, blocks = points_of(source), range(dimensions.n_blocks)
    look = functools.partial(digests_of_block, rows, dimensions, tolerance)
    if rows.remote:
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


def distinct_points(source: PointsSource, points_of_rows: np.ndarray, first_rows: np.ndarray) -> AccompaniedPoints:
    """Return the distinct points of a source, with the side data of these, and their weights.

    Parameters
    ----------
    source : (n, D)
    points_of_rows : (n,) the point of each row
    first_rows : (N,) the first row of each point, ascending
    """
    side, n_points = side_data_of(source), len(first_rows)
    given = None if side.weights is None else side.weights.values
    labels = None if side.labels is None else side.labels.of_distinct(points_of_rows, n_points)
    weights = Weights(np.bincount(points_of_rows, given, n_points).astype(np.float64))
    kept = replace(side, labels=None).of_rows(first_rows)
    merged = replace(kept, labels=labels, weights=weights, duplicates=Duplicates(points_of_rows, n_points))
    return AccompaniedPoints(SelectedRows(points_of(source), first_rows), merged)


def check_grouping(n_rows: int, executor: Executor, description: str) -> None:
    """Refuse more rows than can be compared within the budget of a process, before any is read."""
    least, need = (
        min((budget.memory for budget in executor.processes if budget.memory), default=None),
        GROUPING_BYTES * n_rows,
    )
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
    check_finite_block(rows, start)
    return [digests_of_rows(cells_of_rows(rows, tolerance) if tolerance > 0 else rows)]


def joined(one: list[np.ndarray], other: list[np.ndarray]) -> list[np.ndarray]:
    """Return the digests of consecutive blocks; the list of the first is lengthened."""
    one.extend(other)
    return one
