"""Equal rows become one point whose weight is their number."""

import functools
from dataclasses import replace

import numpy as np

from scalemani.config.params import Parameters
from scalemani.config.units import format_bytes
from scalemani.config.validation import check_finite_block, check_shape
from scalemani.engine.memory_model import Batch
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import (
    MemoryBudgetError,
)
from scalemani.io.sources import PointsSource
from scalemani.io.sources.base import read_rows
from scalemani.io.sources.side_data import (
    AccompaniedPoints,
    Duplicates,
    Weights,
    points_of,
    side_data_of,
)
from scalemani.kernels.rows.equal_rows import GROUPING_BYTES, cells_of_rows, digests_of_rows, group_digests
from scalemani.runs.preprocessing.gaps import SelectedRows, joined, leave_out_gaps
from scalemani.runs.survey import LEAST_POINTS, dimensions_of, memory_of_reading


def merge_duplicates(
    source: PointsSource, params: Parameters, executor: Executor, block_rows: int | None = None
) -> PointsSource:
    """Return the distinct points of a source with their weights, where parameters ask for these; else the source.

    Points are the first of their rows, in the order of these. Which rows are one point is decided by a digest of 16
    bytes of each row, in GROUPING_BYTES a row of this process, the same for any blocks.

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
        batch = Batch("duplicates", "duplicates", memory_of_reading(dimensions))
        parts = executor.fold(look, joined, blocks, batch=batch)
    else:
        parts = executor.fold_here(look, joined, blocks, rows.sequential)
    digests = np.concatenate(parts)
    parts.clear()  # else all of them would be held twice while rows are grouped
    groups, first_rows = group_digests(digests)
    del digests
    merged = distinct_points(source, groups, first_rows)
    executor.progress.note(str(merged.side.duplicates))
    return merged


def distinct_rows(
    source: PointsSource, params: Parameters, executor: Executor, block_rows: int | None = None
) -> PointsSource:
    """Return the points of a source without the rows that `leave_out_gaps` and `merge_duplicates` take out."""
    usable = leave_out_gaps(source, params, executor, block_rows)
    return merge_duplicates(usable, params, executor, block_rows)


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
    row_weights = None if side.weights is None else side.weights.values
    labels = None if side.labels is None else side.labels.of_distinct(points_of_rows, n_points)
    weights = Weights(np.bincount(points_of_rows, row_weights, n_points).astype(np.float64))
    of_first_rows = replace(side, labels=None).of_rows(first_rows)
    duplicates = Duplicates(points_of_rows, n_points) if earlier is None else earlier.merged(points_of_rows, n_points)
    merged = replace(of_first_rows, labels=labels, weights=weights, duplicates=duplicates)
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
