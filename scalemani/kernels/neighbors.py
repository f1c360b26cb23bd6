"""Exact distances for candidate neighbours, exact search, merging and recall."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.compile import compiled
from scalemani.kernels.distances import squared_row_distance
from scalemani.kernels.prefetch import prefetch_row
from scalemani.kernels.selection import insert_neighbor

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
    """The neighbours that a query has, and behind them a batch of those it may get."""

    labels: np.ndarray  # (k + batch,) int64
    distances: np.ndarray  # (k + batch,) of the dtype of the lists, so that ties stay ties
    fresh: np.ndarray  # (k + batch,) bool


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
    entries = Entries(
        np.empty(n_neighbors + batch, dtype=np.int64),
        np.empty(n_neighbors + batch, dtype=distances.dtype),
        np.empty(n_neighbors + batch, dtype=np.bool_),
    )
    prefetched = rows.itemsize * rows.shape[1] <= PREFETCH_BYTES
    for i in range(queries.shape[0]):
        for start in range(0, n_candidates, batch):
            limit = np.float64(distances[i, n_neighbors - 1]) ** 2 * LIMIT_SLACK
            n_entries = np.uint64(n_neighbors)
            for j in range(start, min(start + batch, n_candidates)):
                ahead = candidates[i, min(j + PREFETCH_AHEAD, n_candidates - 1)]
                if prefetched and ahead >= 0:
                    prefetch_row(rows, ahead)
                candidate = candidates[i, j]
                if candidate < 0:
                    continue
                square = squared_row_distance(queries, i, rows, candidate, limit)
                if square <= limit:
                    entries.labels[n_entries] = labels[candidate]
                    entries.distances[n_entries] = np.sqrt(square)
                    n_entries += np.uint64(1)
            if n_entries > n_neighbors:
                _rank_entries(indices, distances, fresh, i, entries, n_entries)
    return Neighbors(indices, distances), fresh


@compiled
def _rank_entries(
    indices: np.ndarray, distances: np.ndarray, fresh: np.ndarray, query: int, entries: Entries, n_entries: int
) -> None:
    """Merge the batch of `entries` into the lists of a query.

    Every entry counts those before it: quadratic, but vector work, and several times quicker than insertion, which
    mispredicts a branch for each.
    """
    i, n_neighbors = np.uint64(query), np.uint64(indices.shape[1])
    for j in range(np.uint64(n_entries)):
        entries.fresh[j] = True
    for j in range(n_neighbors):
        entries.labels[j], entries.distances[j], entries.fresh[j] = indices[i, j], distances[i, j], fresh[i, j]
        indices[i, j], distances[i, j], fresh[i, j] = -1, np.inf, False
    for j in range(np.uint64(n_entries)):
        label, distance, rank = entries.labels[j], entries.distances[j], np.int64(0)
        for l in range(np.uint64(n_entries)):
            tied = (entries.distances[l] == distance) & (entries.labels[l] < label)
            rank += np.int64((entries.distances[l] < distance) | tied)
        if label >= 0 and rank < indices.shape[1]:
            place = np.uint64(rank)
            indices[i, place], distances[i, place], fresh[i, place] = label, distance, entries.fresh[j]


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
