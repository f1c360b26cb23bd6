"""Candidates for the neighbours of points among the neighbours of their neighbours, by sketches alone.

Source: Dong, Charikar and Li, Efficient k-nearest neighbor graph construction for generic similarity measures, 2011
(NN-descent). Pairs of which neither edge is fresh are skipped as there. Every point collects its candidates separately,
so that rows can be computed side by side.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.instructions import prefetch_row
from scalemani.kernels.rows.reduced import ComparedTable, proposed_distance
from scalemani.kernels.rows.smallest import POOL_MARGIN, keep_smallest

NONE = np.int32(-1)
POOL_PER_CANDIDATE = 4  # room for each requested candidate: a pool is cut when it is full
PREFETCH_AHEAD = np.uint64(8)  # sketches, each some 10 ns of work: they are scattered over memory
WORD_BITS, BIT_MASK, ONE, ZERO = np.uint64(6), np.uint64(63), np.uint64(1), np.uint64(0)


class NeighborLists(NamedTuple):
    """Rows of a neighbour graph, and which of their entries the last round brought in."""

    indices: np.ndarray  # (n, k) int32 rows, -1 where there is none
    fresh: np.ndarray  # (n, k) bool


@compiled
def propose_neighbors(
    table: ComparedTable,
    start: int,
    known: np.ndarray,
    visited: NeighborLists,
    lists: NeighborLists,
    limits: np.ndarray,
    n_candidates: int,
) -> np.ndarray:
    """Return the rows of smallest sketch distance in the lists that each query looks through.

    Parameters
    ----------
    table : of all work rows: sketches (N, s) float32 or int8, or the rows (N, D) float64 that a function compares
    start : the queries are the n work rows from `start` on
    known : (n, k) int32, all neighbours of the queries, -1 for none: these are no candidates
    visited : (n, w), which rows of `lists` each query looks through, -1 for none; fresh where it has not done so yet
    lists : (u, any width) lists of neighbours
    limits : (n,) float32, squared sketch distance, or distance, from which on a row cannot become a neighbour

    Returns
    -------
    (n, n_candidates) int32, in no particular order: at least four fifths of `n_candidates` if there are as many, -1 in
    the rest; never the query, never one of its neighbours, no row twice
    """
    (distance, sketches), (n_queries, n_known) = table, known.shape
    candidates = np.full((n_queries, n_candidates), NONE, dtype=np.int32)
    values = np.empty((1, POOL_PER_CANDIDATE * n_candidates + POOL_MARGIN), dtype=np.float32)
    labels = np.empty(values.shape, dtype=np.int32)
    # the query and its neighbours, then what is new to it; one entry more, since rows are written before they count
    rows = np.empty(2 + n_known + visited.indices.shape[1] * lists.indices.shape[1], dtype=np.int32)
    seen = np.zeros((sketches.shape[0] + 63) // 64, dtype=np.uint64)
    for i in range(n_queries):
        first = _known_rows(start + i, i, known, seen, rows)
        n_rows = _new_rows(i, visited, lists, seen, rows, first)
        for j in range(np.uint64(n_rows)):
            seen[np.uint64(rows[j]) >> WORD_BITS] = ZERO
        count, bound = 0, limits[i]
        for j in range(np.uint64(first), np.uint64(n_rows)):
            prefetch_row(sketches, rows[min(j + PREFETCH_AHEAD, np.uint64(n_rows - 1))])
            value = proposed_distance(distance, sketches, start + i, rows[j])
            values[0, count], labels[0, count] = value, rows[j]
            count += np.int64(value < bound)
            if count + POOL_MARGIN == values.shape[1]:
                count, bound = keep_smallest(values, labels, 0, count, bound, n_candidates)
        if count > n_candidates:
            count, bound = keep_smallest(values, labels, 0, count, bound, n_candidates)
        candidates[i, :count] = labels[0, :count]
    return candidates


@compiled
def _known_rows(row: int, query: int, known: np.ndarray, seen: np.ndarray, rows: np.ndarray) -> int:
    """Write a query and its neighbours into `rows` and mark them in `seen`; return how many they are."""
    i, count = np.uint64(query), ONE
    rows[ZERO] = row
    for j in range(np.uint64(known.shape[1])):
        if known[i, j] >= 0:
            rows[count] = known[i, j]
            count += ONE
    for j in range(count):
        seen[np.uint64(rows[j]) >> WORD_BITS] |= ONE << (np.uint64(rows[j]) & BIT_MASK)
    return np.int64(count)


@compiled
def _new_rows(
    query: int, visited: NeighborLists, lists: NeighborLists, seen: np.ndarray, rows: np.ndarray, first: int
) -> int:
    """Append the rows of the lists that a query visits and that are not marked in `seen`; mark them; return how many.

    A bit for every row: counting a row that was seen as none is quicker than branching on it, which no processor can
    predict.
    """
    i, count = np.uint64(query), np.uint64(first)
    for j in range(np.uint64(visited.indices.shape[1])):
        if visited.indices[i, j] < 0:
            continue
        source = np.uint64(visited.indices[i, j])
        for l in range(np.uint64(lists.indices.shape[1])):
            row = lists.indices[source, l]
            if row >= 0 and (visited.fresh[i, j] or lists.fresh[source, l]):
                word, bit = np.uint64(row) >> WORD_BITS, ONE << (np.uint64(row) & BIT_MASK)
                marks = seen[word]
                rows[count] = row
                count += np.uint64((marks & bit) == ZERO)
                seen[word] = marks | bit
    return np.int64(count)


@compiled
def append_sources(start: int, places: np.ndarray, fresh: np.ndarray, lists: NeighborLists) -> None:
    """Append rows to the second halves of the lists of their neighbours, while there is room; changed in place.

    Parameters
    ----------
    start : the n rows are those from `start` on
    places : (n, w) int, which of the lists each of their neighbours has, -1 for none
    fresh : (n, w) bool, of these neighbours
    lists : (u, 2 w), -1 where there is room
    """
    indices, flags = lists.indices, lists.fresh
    width = np.uint64(places.shape[1])
    for i in range(np.uint64(places.shape[0])):
        for a in range(width):
            if places[i, a] >= 0:
                row, b = np.uint64(places[i, a]), width
                while b < np.uint64(2) * width and indices[row, b] >= 0:
                    b += np.uint64(1)
                if b < np.uint64(2) * width:
                    indices[row, b] = start + np.int64(i)
                    flags[row, b] = fresh[i, a]
