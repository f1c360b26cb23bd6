"""Rows with gaps: which they are, and points without them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.config.params import Parameters
from scalemani.config.validation import check_finite_block
from scalemani.engine.workers.executor import Executor
from scalemani.errors import (
    DataError,
)
from scalemani.io.sources import PointsSource
from scalemani.io.sources.base import check_rows, innermost, read_rows, with_innermost
from scalemani.io.sources.side_data import (
    LEFT_OUT,
    AccompaniedPoints,
    Duplicates,
    points_of,
    side_data_of,
)
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS, map_rows
from scalemani.runs.survey import LEAST_POINTS, dimensions_of

SHOWN_COLUMNS = 1000  # with gaps, and the rows of each


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
        columns = [f"{names[column]} ({self.counts[column]})" for column in np.flatnonzero(self.counts).tolist()]
        more = ["..."] if len(columns) > SHOWN_COLUMNS else []
        empty = [f"rows without a direction by {metric} ({self.n_empty})"] if self.n_empty else []
        return ", ".join((*columns[:SHOWN_COLUMNS], *more, *empty)) or "none"


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
    usable = np.flatnonzero(~gaps_of_rows(rows, metric, start).rows)
    return map_rows(rows if len(usable) == stop - start else rows[usable], metric), usable


def find_gaps(points: PointsSource, metric: str, executor: Executor, block_rows: int | None = None) -> Gaps:
    """Return the gaps of all rows of points that give them as NaN; refuse what is no gap and cannot be used."""
    unmapped = innermost(points)
    dimensions = dimensions_of(unmapped, executor, block_rows)
    executor.progress.start("gaps", dimensions.n_blocks)

    def look(block: int) -> list[Gaps]:
        start, stop = dimensions.rows(block)
        return [gaps_of_rows(read_rows(unmapped, start, stop, dimensions.sparse), metric, start)]

    parts = executor.fold_here(look, joined, range(dimensions.n_blocks), unmapped.sequential)
    return Gaps.of_all(parts)


def without_gaps(points: PointsSource, gaps: Gaps, first_point: int = 0) -> tuple[PointsSource, np.ndarray]:
    """Return the rows of points without a gap, and the point (n,) of each row, numbered from the first one on."""
    usable = np.flatnonzero(~gaps.rows)
    numbers = np.full(len(gaps.rows), LEFT_OUT)
    numbers[usable] = first_point + np.arange(len(usable))
    return with_innermost(points, SelectedRows(innermost(points), usable)), numbers


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


class SelectedRows(PointsSource):
    """Some rows (M,) of another source, ascending: a source like any other.

    `together` rows of the source may be read at once for those among them, also where fewer are requested.
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
        """Return parts of a selection, each read from no more rows of the source than are requested or allowed."""
        parts, first, width = [], start, max(stop - start, self._together)
        while first < stop:
            last = first + int(np.searchsorted(self._rows[first:stop], self._rows[first] + width))
            rows = self._rows[first:last]
            parts.append(read_rows(self._points, rows[0], rows[-1] + 1, sparse)[rows - rows[0]])
            first = last
        return parts


def joined(one: list[Any], other: list[Any]) -> list[Any]:
    """Return the results of consecutive blocks; the list of the first is lengthened."""
    one.extend(other)
    return one
