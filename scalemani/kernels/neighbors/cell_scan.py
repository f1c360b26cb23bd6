"""Candidates for the neighbours of points, by scanning the sketches in the cells near them.

Rows are "work rows": the points sorted by cell, so that a cell is a contiguous range of rows. Exact distances choose
among the candidates in `rerank`.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.instructions import CACHE_LINE_BYTES, ITEM_BYTES, prefetch_line
from scalemani.kernels.neighbors.cells import cells_that_hold
from scalemani.kernels.rows.products import (
    PANEL_ROWS,
    QUERY_GROUP,
    build_panels,
    center_queries,
    middle_row,
    multiply_panel,
    number_lanes,
    whole_groups,
)
from scalemani.kernels.rows.smallest import POOL_MARGIN, append_within, keep_smallest

EMPTY = np.int32(-1)
ROWS_AT_ONCE = 8192  # of cells that are scanned one after the other: 2 MiB of sketches
QUERIES_AT_ONCE = 256  # of those that may visit all cells
PREFETCHED_BYTES = 128  # of the values and of the labels at the end of a pool, where the next are written
POOL_PER_CANDIDATE = 3  # room in a pool for each requested candidate, in addition to that for one more panel


class Pools(NamedTuple):
    """What each query has collected: the first `counts` of `values` and `labels`, none of them above `bounds`."""

    values: np.ndarray  # (n, capacity) float32 squared sketch distances
    labels: np.ndarray  # (n, capacity) int32 rows
    counts: np.ndarray  # (n,) int64
    bounds: np.ndarray  # (n,) float32


class RowSlices(Protocol):
    """Rows of which slices can be had: an array, or what reads them from somewhere."""

    def __getitem__(self, rows: slice, /) -> np.ndarray:
        """Return a slice of rows."""


class Visits(NamedTuple):
    """Which queries visit each cell: `queries` cell after cell, ascending in each, from `offsets` (C + 1,) on."""

    queries: np.ndarray
    offsets: np.ndarray


def search_cells(
    sketches: RowSlices,
    cell_offsets: np.ndarray,
    probes: np.ndarray,
    start: int,
    n_candidates: int,
    queries: np.ndarray | None = None,
    limits: np.ndarray | None = None,
) -> np.ndarray:
    """Return the rows of smallest sketch distance among the cells that each query visits.

    Each row of the answer depends on its query only.

    Parameters
    ----------
    sketches : (N, s) float32, of all work rows
    cell_offsets : (C + 1,) int64, cell c is rows [offsets[c], offsets[c + 1])
    probes : (n, m) int32, distinct cells that each of n queries visits, nearest first, -1 for none
    start : the queries are the work rows from `start` on
    queries : (n, s) float32, the queries where they are no work rows; `start` is then behind the last of these
    limits : (n,) float32, the squared sketch distance beyond which no row is a candidate; None: there is no limit

    Returns
    -------
    (n, n_candidates) int32, in no particular order: the nearest of the rows visited, at least four fifths of
    `n_candidates` if the cells hold as many within the limits, and -1 in the rest; never the query itself
    """
    n_queries = probes.shape[0]
    capacity = POOL_PER_CANDIDATE * n_candidates + PANEL_ROWS + POOL_MARGIN
    pools = Pools(
        np.empty((n_queries, capacity), dtype=np.float32),
        np.empty((n_queries, capacity), dtype=np.int32),
        np.zeros(n_queries, dtype=np.int64),
        np.full(n_queries, np.inf, dtype=np.float32) if limits is None else limits.copy(),
    )
    if queries is None:
        queries = sketches[start : start + n_queries]
    # The nearest cells first: they bring the bounds down before the other cells are looked at.
    for columns in (probes[:, :1], probes[:, 1:]):
        visits = _visits_by_cell(columns, cell_offsets.size - 1)
        for low, high in _cell_ranges(visits, cell_offsets):
            rows, offsets = sketches[cell_offsets[low] : cell_offsets[high]], cell_offsets[low : high + 1]
            _scan_cells(rows, offsets, visits, low, (queries, start), pools, n_candidates)
        _cut_pools(pools, n_candidates)
    candidates = np.full((n_queries, n_candidates), EMPTY, dtype=np.int32)
    _hand_over(pools, candidates)
    return candidates


def search_enough_cells(
    sketches: RowSlices,
    cell_offsets: np.ndarray,
    centroids: np.ndarray,
    probes: np.ndarray,
    start: int,
    n_candidates: int,
    queries: np.ndarray | None = None,
) -> np.ndarray:
    """Return what `search_cells` does, but let queries visit further cells where theirs hold too few rows.

    Parameters
    ----------
    sketches, cell_offsets, probes, start, n_candidates, queries : as in `search_cells`
    centroids : (C, s) float32, of the cells, which are visited nearest first until they hold `n_candidates` rows and
        the query itself

    Returns
    -------
    (n, n_candidates) int32, as of `search_cells`
    """
    candidates = search_cells(sketches, cell_offsets, probes, start, n_candidates, queries)
    sizes = np.diff(cell_offsets)
    visited = np.where(probes >= 0, sizes[probes], 0).sum(axis=1)
    for first, last in _ranges_of(np.flatnonzero(visited <= n_candidates)):
        some = sketches[start + first : start + last] if queries is None else queries[first:last]
        further = cells_that_hold(n_candidates + 1, some, centroids, sizes)
        candidates[first:last] = search_cells(sketches, cell_offsets, further, start + first, n_candidates, some)
    return candidates


def _ranges_of(numbers: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the ranges [first, last) of consecutive numbers, at most QUERIES_AT_ONCE long."""
    for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1):
        for first in range(0, len(run), QUERIES_AT_ONCE):
            part = run[first : first + QUERIES_AT_ONCE]
            yield int(part[0]), int(part[-1]) + 1


def _cell_ranges(visits: Visits, cell_offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges [low, high) of cells that hold all visited ones: a cell, or several of ROWS_AT_ONCE rows at most."""
    visited = np.flatnonzero(np.diff(visits.offsets))
    ends = cell_offsets[visited + 1]
    first = 0
    while first < len(visited):
        fitting = np.searchsorted(ends, cell_offsets[visited[first]] + ROWS_AT_ONCE, side="right")
        last = max(first, int(fitting) - 1)
        yield int(visited[first]), int(visited[last]) + 1
        first = last + 1


def _visits_by_cell(probes: np.ndarray, n_cells: int) -> Visits:
    visits, offsets = group_by(probes.ravel(), n_cells)
    return Visits(visits // max(probes.shape[1], 1), offsets)


@compiled
def _scan_cells(
    rows: np.ndarray,
    offsets: np.ndarray,
    visits: Visits,
    first_cell: int,
    visitors: tuple[np.ndarray, int],
    pools: Pools,
    n_candidates: int,
) -> None:
    """Offer `rows`, those of the cells from `first_cell` on that begin at `offsets`, to the queries that visit them.

    visitors: the queries, and the work row at which they begin.
    """
    queries, start = visitors
    for cell in range(offsets.size - 1):
        visit = first_cell + cell
        members = visits.queries[visits.offsets[visit] : visits.offsets[visit + 1]]
        row = offsets[cell]
        if members.size > 0 and offsets[cell + 1] > row:
            cell_rows = rows[row - offsets[0] : offsets[cell + 1] - offsets[0]]
            _scan_cell(cell_rows, row, queries, start, members, pools, n_candidates)


@compiled
def _cut_pools(pools: Pools, n_candidates: int) -> None:
    for i in range(pools.counts.size):
        _cut_pool(pools, i, n_candidates)


@compiled
def _hand_over(pools: Pools, candidates: np.ndarray) -> None:
    for i in range(candidates.shape[0]):
        candidates[i, : pools.counts[i]] = pools.labels[i, : pools.counts[i]]


@compiled
def _cut_pool(pools: Pools, i: int, n_candidates: int) -> None:
    """Leave the nearest four fifths to all of `n_candidates` in the pool of query i, if it holds more."""
    if pools.counts[i] > n_candidates:
        pools.counts[i], pools.bounds[i] = keep_smallest(
            pools.values, pools.labels, i, pools.counts[i], pools.bounds[i], n_candidates
        )


@compiled
def _scan_cell(
    cell: np.ndarray, row: int, queries: np.ndarray, start: int, members: np.ndarray, pools: Pools, n_candidates: int
) -> None:
    """Offer all rows of one cell, which begins at `row`, to the `members` of `queries`, which begin at `start`."""
    center = middle_row(cell)
    panels, norms = build_panels(cell, center)
    n_padded = whole_groups(members.size)
    centered = np.empty((n_padded, cell.shape[1]), dtype=np.float32)
    bases = np.zeros(n_padded, dtype=np.float32)
    center_queries(queries, members, center, centered, bases)
    products = np.empty((QUERY_GROUP, PANEL_ROWS), dtype=np.float32)
    numbers = np.empty(PANEL_ROWS, dtype=np.int32)
    values, labels, counts, bounds = pools  # fields taken in a loop would be counted as references
    capacity = values.shape[1]
    # Queries outside, panels inside: the panels of a cell stay in the second-level cache, the pools in the first.
    for first in range(0, members.size, QUERY_GROUP):
        for i in members[first : first + QUERY_GROUP]:
            offset = ITEM_BYTES * (i * capacity + counts[i])
            for line in range(0, PREFETCHED_BYTES, CACHE_LINE_BYTES):
                prefetch_line(values.ctypes.data + offset + line)
                prefetch_line(labels.ctypes.data + offset + line)
        for p in range(panels.shape[0]):
            multiply_panel(centered, bases, first, panels, norms, p, products)
            number_lanes(numbers, row + p * PANEL_ROWS)
            for j in range(min(QUERY_GROUP, members.size - first)):
                i = members[first + j]
                if counts[i] + PANEL_ROWS + POOL_MARGIN > capacity:
                    _cut_pool(pools, i, n_candidates)
                if numbers[0] <= start + i < numbers[0] + PANEL_ROWS:
                    products[j, start + i - numbers[0]] = np.inf  # no query is a candidate for itself
                end = i * capacity + counts[i]
                counts[i] += append_within(products, j, bounds[i], numbers, values, labels, end)
