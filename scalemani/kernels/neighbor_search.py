"""Candidates for the neighbours of points: by scanning cells, and among the neighbours of neighbours.

Both work on sketches alone; exact distances settle the candidates in `neighbors.refine_neighbors`.
Rows are "work rows": the points sorted by cell, so that a cell is a contiguous range of rows.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.compile import compiled, compiled_sums
from scalemani.kernels.panels import (
    PANEL_ROWS,
    QUERY_GROUP,
    build_panels,
    center_queries,
    lanes_within,
    multiply_panel,
    padded_dims,
    row_mean,
)
from scalemani.kernels.prefetch import prefetch_row
from scalemani.kernels.selection import keep_smallest

EMPTY = np.int32(-1)
LARGEST = np.finfo(np.float32).max  # the padding of panels is infinitely far
POOL_PER_CANDIDATE = 3  # room in a pool for each candidate asked for, beside that for one more panel
HASH_MULTIPLIER = np.uint32(2654435769)  # 2**32 / golden ratio: Knuth, The Art of Computer Programming 3, 6.4


class Pools(NamedTuple):
    """What each query has collected: the first `counts` of `values` and `labels`, none of them above `bounds`."""

    values: np.ndarray  # (n, capacity) float32 squared sketch distances
    labels: np.ndarray  # (n, capacity) int32 rows
    counts: np.ndarray  # (n,) int64
    bounds: np.ndarray  # (n,) float32


class Edges(NamedTuple):
    """Rows of a neighbour graph, and which of their entries the last round brought in."""

    indices: np.ndarray  # (n, k) int32 rows, -1 where there is none
    fresh: np.ndarray  # (n, k) bool


@compiled
def search_cells(
    sketches: np.ndarray, cell_offsets: np.ndarray, probes: np.ndarray, start: int, n_candidates: int
) -> np.ndarray:
    """Return the rows of smallest sketch distance among the cells that each query visits.

    sketches: (N, s) float32, all work rows. cell_offsets: (C + 1,), cell c is rows [offsets[c], offsets[c + 1]).
    probes: (n, m) distinct cells visited by each of n queries, nearest first, -1 for none; the queries are the work
    rows from `start` on. Returns (n, n_candidates) int32 in no particular order: the nearest of the rows visited,
    at least four fifths of `n_candidates` if the cells hold as many, and -1 in the rest. A query is never its own
    candidate. Each row of the answer depends on its own query only.
    """
    n_queries = probes.shape[0]
    capacity = POOL_PER_CANDIDATE * n_candidates + PANEL_ROWS
    pools = Pools(
        np.empty((n_queries, capacity), dtype=np.float32),
        np.empty((n_queries, capacity), dtype=np.int32),
        np.zeros(n_queries, dtype=np.int64),
        np.full(n_queries, np.inf, dtype=np.float32),
    )
    queries = sketches[start : start + n_queries]
    # The nearest cells first: they bring the bounds down before the other cells are looked at.
    for first, last in ((0, 1), (1, probes.shape[1])):
        visits, visit_offsets = visits_by_cell(probes[:, first:last], cell_offsets.size - 1)
        for cell in range(cell_offsets.size - 1):
            members = visits[visit_offsets[cell] : visit_offsets[cell + 1]]
            row = cell_offsets[cell]
            if members.size > 0 and cell_offsets[cell + 1] > row:
                _scan_cell(sketches[row : cell_offsets[cell + 1]], row, queries, start, members, pools, n_candidates)
    candidates = np.full((n_queries, n_candidates), EMPTY, dtype=np.int32)
    for i in range(n_queries):
        _cut_pool(pools, i, n_candidates)
        candidates[i, : pools.counts[i]] = pools.labels[i, : pools.counts[i]]
    return candidates


@compiled
def _cut_pool(pools: Pools, i: int, n_candidates: int) -> None:
    """Leave the nearest four fifths to all of `n_candidates` in the pool of query i, if it holds more."""
    if pools.counts[i] > n_candidates:
        pools.counts[i], pools.bounds[i] = keep_smallest(
            pools.values, pools.labels, i, pools.counts[i], pools.bounds[i], n_candidates
        )


@compiled
def visits_by_cell(probes: np.ndarray, n_cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the queries that visit each cell, cell after cell, ascending, and where each cell starts (C + 1,)."""
    offsets = np.zeros(n_cells + 1, dtype=np.int64)
    for i in range(probes.shape[0]):
        for j in range(probes.shape[1]):
            if probes[i, j] >= 0:
                offsets[probes[i, j] + 1] += 1
    offsets = np.cumsum(offsets)
    visits = np.empty(offsets[-1], dtype=np.int64)
    filled = offsets[:-1].copy()
    for i in range(probes.shape[0]):
        for j in range(probes.shape[1]):
            cell = probes[i, j]
            if cell >= 0:
                visits[filled[cell]] = i
                filled[cell] += 1
    return visits, offsets


@compiled
def _scan_cell(
    cell: np.ndarray, row: int, queries: np.ndarray, start: int, members: np.ndarray, pools: Pools, n_candidates: int
) -> None:
    """Offer all rows of one cell, which begins at `row`, to the `members` of `queries`, which begin at `start`."""
    center = row_mean(cell)
    panels, norms = build_panels(cell, center)
    n_padded = (members.size + QUERY_GROUP - 1) // QUERY_GROUP * QUERY_GROUP
    centered = np.zeros((n_padded, padded_dims(cell.shape[1])), dtype=np.float32)
    bases = np.zeros(n_padded, dtype=np.float32)
    center_queries(queries, members, center, centered, bases)
    products = np.empty((QUERY_GROUP, PANEL_ROWS), dtype=np.float32)
    # Queries outside, panels inside: the panels of a cell stay in the second-level cache, the pools in the first.
    for first in range(0, members.size, QUERY_GROUP):
        for p in range(panels.shape[0]):
            multiply_panel(centered, first, panels, norms, p, products)
            for j in range(min(QUERY_GROUP, members.size - first)):
                i = members[first + j]
                if pools.counts[i] + PANEL_ROWS >= pools.values.shape[1]:
                    _cut_pool(pools, i, n_candidates)
                _collect(products, j, bases[first + j], row + p * PANEL_ROWS, start + i, pools, i)


@compiled
def _collect(products: np.ndarray, j: int, base: float, row: int, own_row: int, pools: Pools, query: int) -> None:
    """Add the rows of a panel, which begins at `row`, that are within the bound of a query to its pool."""
    i, group = np.uint64(query), np.uint64(j)
    bound = min(np.float32(pools.bounds[i] - base), LARGEST)
    if lanes_within(products, j, bound) == 0:
        return
    count = np.uint64(pools.counts[i])
    label, own_label = np.int32(row), np.int32(own_row)
    for lane in range(np.uint64(PANEL_ROWS)):
        product = products[group, lane]
        pools.values[i, count] = product + base
        pools.labels[i, count] = label
        count += np.uint64((product <= bound) & (label != own_label))
        label = np.int32(label + np.int32(1))
    pools.counts[i] = np.int64(count)


@compiled
def propose_neighbors(
    sketches: np.ndarray,
    start: int,
    own: Edges,
    sources: np.ndarray,
    lists: Edges,
    limits: np.ndarray,
    n_candidates: int,
) -> np.ndarray:
    """Return the rows of smallest sketch distance among the neighbours of each query's neighbours.

    sketches: (N, s) float32, all work rows; the queries are the n rows from `start` on, with edges `own` (n, k).
    sources: (n, w <= k), where in `lists` (u, any width) the edges of each of the first w neighbours stand, -1 for
    none. limits: (n,) squared sketch distance from which on a row cannot become a neighbour. Pairs of two edges of
    which neither is fresh were looked at in an earlier round and are skipped. Returns (n, n_candidates) int32 in no
    particular order, at least four fifths of them if there are as many, -1 in the rest: never the query, never one of
    its neighbours, no row twice.
    """
    n_queries, n_neighbors = own.indices.shape
    candidates = np.full((n_queries, n_candidates), EMPTY, dtype=np.int32)
    values = np.empty((1, POOL_PER_CANDIDATE * n_candidates + PANEL_ROWS), dtype=np.float32)
    labels = np.empty(values.shape, dtype=np.int32)
    n_most_seen = 1 + n_neighbors + sources.shape[1] * lists.indices.shape[1]
    unseen = np.empty(n_most_seen, dtype=np.int32)
    bits = 4
    while (1 << bits) < 2 * n_most_seen:
        bits += 1
    seen = np.empty(1 << bits, dtype=np.int32)
    for i in range(n_queries):
        seen[:] = EMPTY
        _first_seen(seen, bits, start + i)
        for j in range(n_neighbors):
            if own.indices[i, j] >= 0:
                _first_seen(seen, bits, own.indices[i, j])
        n_unseen = _unseen_rows(i, own, sources, lists, seen, bits, unseen, sketches)
        count, bound = 0, limits[i]
        for j in range(n_unseen):
            value = sketch_distance(sketches, start + i, unseen[j])
            if value < bound:
                values[0, count] = value
                labels[0, count] = unseen[j]
                count += 1
                if count == values.shape[1]:
                    count, bound = keep_smallest(values, labels, 0, count, bound, n_candidates)
        if count > n_candidates:
            count, bound = keep_smallest(values, labels, 0, count, bound, n_candidates)
        candidates[i, :count] = labels[0, :count]
    return candidates


@compiled
def _unseen_rows(
    query: int,
    own: Edges,
    sources: np.ndarray,
    lists: Edges,
    seen: np.ndarray,
    bits: int,
    unseen: np.ndarray,
    sketches: np.ndarray,
) -> int:
    """Write the neighbours of the neighbours of a query that are not in `seen` into `unseen`; return how many.

    Their sketches are asked for at once: they lie all over memory, and are needed when the list is complete.
    """
    i, n_unseen = np.uint64(query), np.uint64(0)
    for j in range(np.uint64(sources.shape[1])):
        if sources[i, j] < 0:
            continue
        source = np.uint64(sources[i, j])
        for l in range(np.uint64(lists.indices.shape[1])):
            row = lists.indices[source, l]
            if row >= 0 and (own.fresh[i, j] or lists.fresh[source, l]) and _first_seen(seen, bits, row):
                prefetch_row(sketches, row)
                unseen[n_unseen] = row
                n_unseen += np.uint64(1)
    return np.int64(n_unseen)


@compiled
def _first_seen(seen: np.ndarray, bits: int, row: int) -> bool:
    """Put `row` into the open hash table `seen` of 2**bits places; tell whether it was new."""
    mask = np.uint32(seen.size - 1)
    place = np.uint32(np.uint32(row) * HASH_MULTIPLIER) >> np.uint32(32 - bits)
    while seen[place] != EMPTY:
        if seen[place] == row:
            return False
        place = np.uint32(place + np.uint32(1)) & mask
    seen[place] = row
    return True


@compiled_sums
def sketch_distance(sketches: np.ndarray, row_a: int, row_b: int) -> np.float32:
    """Return the squared distance of two of the `sketches` (N, s), in float32."""
    a, b, total = np.uint64(row_a), np.uint64(row_b), np.float32(0.0)
    for d in range(np.uint64(sketches.shape[1])):
        difference = sketches[a, d] - sketches[b, d]
        total += difference * difference
    return total


@compiled
def compact_rows(candidates: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows among `candidates` and where each candidate stands among them.

    candidates: (n, c) rows below `n_rows`, -1 for none. Returns (u,) int64, ascending, and (n, c) int32, -1 for none.
    """
    places = np.full(n_rows, EMPTY, dtype=np.int32)
    for i in range(candidates.shape[0]):
        for j in range(candidates.shape[1]):
            if candidates[i, j] >= 0:
                places[candidates[i, j]] = 0
    n_distinct = 0
    for row in range(n_rows):
        if places[row] == 0:
            places[row] = n_distinct
            n_distinct += 1
    distinct = np.empty(n_distinct, dtype=np.int64)
    for row in range(n_rows):
        if places[row] >= 0:
            distinct[places[row]] = row
    positions = np.empty(candidates.shape, dtype=np.int32)
    for i in range(candidates.shape[0]):
        for j in range(candidates.shape[1]):
            positions[i, j] = places[candidates[i, j]] if candidates[i, j] >= 0 else EMPTY
    return distinct, positions
