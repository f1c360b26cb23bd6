"""Exact distances for candidate neighbours, exact search, merging and recall."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.prefetch import prefetch_row
from scalemani.kernels.rows.distances import squared_row_distance
from scalemani.kernels.rows.smallest import insert_neighbor

LEAST_BATCH = 16  # candidates measured before the limit is drawn in
PREFETCH_AHEAD = 6  # candidates, each some 30 ns of work
PREFETCH_BYTES = 4096  # the hardware prefetcher keeps up with longer rows by itself
# Taking the root, rounding it to float32 and squaring again must not put the limit below the square it stands for.
LIMIT_SLACK = 1.0 + 4 * float(np.finfo(np.float32).eps)


class Neighbors(NamedTuple):
    """Neighbours in ascending distance, ties by index, self excluded; -1 and inf where there are fewer."""

    indices: np.ndarray  # (n, k) int32 or int64
    distances: np.ndarray  # (n, k) float64 or float32


def no_neighbors(n_queries: int, n_neighbors: int) -> Neighbors:
    """Return empty lists of (n_queries, n_neighbors): -1 int32 and inf float64."""
    shape = (n_queries, n_neighbors)
    return Neighbors(np.full(shape, -1, dtype=np.int32), np.full(shape, np.inf))


class Entries(NamedTuple):
    """Those that may join the neighbours of a query: first as they were measured, then in order."""

    labels: np.ndarray  # (2, batch) of the dtype of the lists
    distances: np.ndarray  # (2, batch) of the dtype of the lists, so that ties stay ties


@compiled
def refine_neighbors(
    queries: np.ndarray, rows: np.ndarray, labels: np.ndarray, candidates: np.ndarray, known: Neighbors
) -> tuple[Neighbors, np.ndarray]:
    """Return the nearest of the known neighbours and the candidates, by exact distance, and which are new.

    queries: (n, D). rows: (u, D), same dtype, and labels: (u,) the index of each. candidates: (n, c) places in `rows`,
    -1 for none; no candidate is the query, comes twice, or is among the `known` neighbours (n, k) of its query.
    Returns Neighbors of the shapes and dtypes of `known`, and (n, k) bool, true where a candidate entered.
    """
    indices, distances = known.indices.copy(), known.distances.copy()
    fresh = np.zeros(indices.shape, dtype=np.bool_)
    n_neighbors, n_candidates = indices.shape[1], candidates.shape[1]
    batch = max(n_neighbors, LEAST_BATCH)
    entries = Entries(np.empty((2, batch), dtype=indices.dtype), np.empty((2, batch), dtype=distances.dtype))
    prefetched = rows.itemsize * rows.shape[1] <= PREFETCH_BYTES
    for i in range(queries.shape[0]):
        for start in range(0, n_candidates, batch):
            limit = np.float64(distances[i, n_neighbors - 1]) ** 2 * LIMIT_SLACK
            n_entries = np.uint64(0)
            for j in range(start, min(start + batch, n_candidates)):
                ahead = candidates[i, min(j + PREFETCH_AHEAD, n_candidates - 1)]
                if prefetched and ahead >= 0:
                    prefetch_row(rows, ahead)
                candidate = candidates[i, j]
                if candidate < 0:
                    continue
                square = squared_row_distance(queries, i, rows, candidate, limit)
                if square <= limit:
                    entries.labels[0, n_entries] = labels[candidate]
                    entries.distances[0, n_entries] = np.sqrt(square)
                    n_entries += np.uint64(1)
            if n_entries > 0:
                _order_entries(entries, n_entries)
                _join_entries(indices, distances, fresh, i, entries, n_entries)
    return Neighbors(indices, distances), fresh


@compiled
def _order_entries(entries: Entries, n_entries: int) -> None:
    """Write a batch in ascending order, ties by index, behind the batch as it was measured.

    Every entry counts those before it: quadratic, but vector work, and several times quicker than insertion, which
    mispredicts a branch for each.
    """
    labels, distances = entries.labels, entries.distances
    raw, ordered = np.uint64(0), np.uint64(1)
    for j in range(np.uint64(n_entries)):
        label, distance, rank = labels[raw, j], distances[raw, j], np.int32(0)
        for l in range(np.uint64(n_entries)):
            tied = (distances[raw, l] == distance) & (labels[raw, l] < label)
            rank += np.int32((distances[raw, l] < distance) | tied)
        labels[ordered, np.uint64(rank)], distances[ordered, np.uint64(rank)] = label, distance


@compiled
def _join_entries(
    indices: np.ndarray, distances: np.ndarray, fresh: np.ndarray, query: int, entries: Entries, n_entries: int
) -> None:
    """Merge an ordered batch into the lists of a query, from the end, so that nothing is overwritten unread."""
    labels, measured, ordered = entries.labels, entries.distances, 1
    i, place = np.int64(query), indices.shape[1] - 1
    held, new = _last_kept(indices, distances, i, entries, np.int64(n_entries))
    while new >= 0:
        # an empty place stands behind everything: its distance is infinite
        later = held >= 0 and (
            distances[i, held] > measured[ordered, new]
            or (distances[i, held] == measured[ordered, new] and indices[i, held] > labels[ordered, new])
        )
        if later:
            indices[i, place], distances[i, place], fresh[i, place] = (
                indices[i, held],
                distances[i, held],
                fresh[i, held],
            )
            held -= 1
        else:
            indices[i, place], distances[i, place] = labels[ordered, new], measured[ordered, new]
            fresh[i, place] = True
            new -= 1
        place -= 1


@compiled
def _last_kept(
    indices: np.ndarray, distances: np.ndarray, query: int, entries: Entries, n_entries: int
) -> tuple[int, int]:
    """Return the places of the last neighbour and of the last ordered entry that stand among the k nearest of both."""
    i, held, new = query, 0, 0
    while held + new < indices.shape[1]:
        first = new < n_entries and (
            entries.distances[1, new] < distances[i, held]
            or (entries.distances[1, new] == distances[i, held] and entries.labels[1, new] < indices[i, held])
        )
        if first:
            new += 1
        else:
            held += 1
    return held - 1, new - 1


@compiled
def merge_neighbors(a: Neighbors, b: Neighbors, n_neighbors: int) -> Neighbors:
    """Return the nearest `n_neighbors` of two sets of lists (n, any width) of the same queries.

    Ascending by distance, ties by index; an index that stands in both lists is taken once. Dtypes are those of `a`.
    """
    n_queries = a.indices.shape[0]
    indices = np.full((n_queries, n_neighbors), -1, dtype=a.indices.dtype)
    distances = np.full((n_queries, n_neighbors), np.inf, dtype=a.distances.dtype)
    for i in range(n_queries):
        for lists in (a, b):
            for j in range(lists.indices.shape[1]):
                index = lists.indices[i, j]
                if index >= 0 and not _holds(indices[i], index):
                    insert_neighbor(indices, distances, i, index, lists.distances[i, j])
    return Neighbors(indices, distances)


@compiled
def _holds(indices: np.ndarray, index: int) -> bool:
    """Tell whether `index` stands in `indices`."""
    for held in indices:  # noqa: SIM110 - a loop is what numba compiles
        if held == index:
            return True
    return False


def recall_at_k(found_distances: np.ndarray, true_distances: np.ndarray) -> float:
    """Return the share of found neighbours (n, k) no farther than the true k-th neighbour (n, k), ascending.

    Ties count as found, and so do distances that differ by the rounding of float32.
    """
    if found_distances.size == 0:
        return 1.0
    reached = true_distances[:, -1:].astype(np.float64) * (1.0 + np.finfo(np.float32).eps)
    return float(np.mean(found_distances <= reached))
