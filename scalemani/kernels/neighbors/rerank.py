"""Lists of nearest neighbours: candidates ranked by exact distance, two sets of lists merged, the recall of lists."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.grouping import repeated_in_rows
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.distances import Rows, prefetch_for_distance
from scalemani.kernels.rows.reduced import Distance, distance_of, reduced_distance, reduced_of
from scalemani.kernels.rows.smallest import insert_neighbor

LEAST_BATCH = 16  # candidates measured before the limit is drawn in
PREFETCH_AHEAD = 6  # candidates, each some 30 ns of work
# Taking the root, rounding it to float32 and squaring again must not put the limit below the square it stands for.
LIMIT_SLACK = 1.0 + 4 * float(np.finfo(np.float32).eps)


class Neighbors(NamedTuple):
    """Neighbours in ascending distance, ties by index, self excluded; -1 and inf where there are fewer."""

    indices: np.ndarray  # (n, k) int32 or int64
    distances: np.ndarray  # (n, k) float64 or float32


def no_neighbors(n_queries: int, n_neighbors: int) -> Neighbors:
    """Return empty lists (n_queries, n_neighbors): indices -1 in int32, distances inf in float64."""
    shape = (n_queries, n_neighbors)
    return Neighbors(np.full(shape, -1, dtype=np.int32), np.full(shape, np.inf))


class Entries(NamedTuple):
    """A batch of candidates that may join the list of a query: row 0 as they were measured, row 1 in order."""

    labels: np.ndarray  # (2, batch) of the dtype of the lists
    distances: np.ndarray  # (2, batch) of the dtype of the lists, so that ties stay ties


@compiled
def refine_neighbors(
    distance: Distance, queries: Rows, rows: Rows, labels: np.ndarray, candidates: np.ndarray, known: Neighbors
) -> tuple[Neighbors, np.ndarray]:
    """Return the nearest of the known neighbours and the candidates, by exact distance, and which are new.

    Parameters
    ----------
    distance : how rows are compared
    queries : (n, D) real, dense or sparse, or sets
    rows : (u, D) of the same dtype, as the queries are
    labels : (u,) int, the index of each row
    candidates : (n, c) int, positions in `rows`, -1 for none; no candidate is the query. One that comes twice, or that
        is known, is taken once
    known : (n, k) neighbours

    Returns
    -------
    neighbors : Neighbors (n, k) in the dtypes of `known`, each index once if those known are
    fresh : (n, k) bool, true where a candidate entered
    """
    indices, distances = known.indices.copy(), known.distances.copy()
    fresh = np.zeros(indices.shape, dtype=np.bool_)
    n_neighbors, n_candidates = indices.shape[1], candidates.shape[1]
    batch = max(n_neighbors, LEAST_BATCH)
    entries = Entries(np.empty((2, batch), dtype=indices.dtype), np.empty((2, batch), dtype=distances.dtype))
    for i in range(indices.shape[0]):
        for start in range(0, n_candidates, batch):
            limit = reduced_of(distance, np.float64(distances[i, n_neighbors - 1])) * LIMIT_SLACK
            n_entries = np.uint64(0)
            for j in range(start, min(start + batch, n_candidates)):
                ahead = candidates[i, min(j + PREFETCH_AHEAD, n_candidates - 1)]
                if ahead >= 0:
                    prefetch_for_distance(rows, ahead)
                candidate = candidates[i, j]
                if candidate < 0:
                    continue
                reduced = reduced_distance(distance, queries, i, rows, candidate, limit)
                if reduced <= limit:
                    entries.labels[0, n_entries] = labels[candidate]
                    entries.distances[0, n_entries] = distance_of(distance, reduced)
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
        for l in range(j):  # an entry that comes twice has two places
            tied = (distances[raw, l] == distance) & (labels[raw, l] <= label)
            rank += np.int32((distances[raw, l] < distance) | tied)
        for l in range(j, np.uint64(n_entries)):
            tied = (distances[raw, l] == distance) & (labels[raw, l] < label)
            rank += np.int32((distances[raw, l] < distance) | tied)
        labels[ordered, np.uint64(rank)], distances[ordered, np.uint64(rank)] = label, distance


@compiled
def _join_entries(
    indices: np.ndarray, distances: np.ndarray, fresh: np.ndarray, query: int, entries: Entries, n_entries: int
) -> None:
    """Merge an ordered batch into the lists of a query, from the end, so that nothing is overwritten unread."""
    labels, measured, ordered = entries.labels, entries.distances, 1
    i, column = np.int64(query), indices.shape[1] - 1
    old, new = _last_of_nearest(indices, distances, i, entries, np.int64(n_entries))
    while new >= 0:
        # an empty column comes after everything: its distance is infinite
        later = old >= 0 and (
            distances[i, old] > measured[ordered, new]
            or (distances[i, old] == measured[ordered, new] and indices[i, old] > labels[ordered, new])
        )
        if later:
            indices[i, column], distances[i, column] = indices[i, old], distances[i, old]
            fresh[i, column] = fresh[i, old]
            old -= 1
        else:
            indices[i, column], distances[i, column] = labels[ordered, new], measured[ordered, new]
            fresh[i, column] = True
            new -= 1
        column -= 1


@compiled
def _last_of_nearest(
    indices: np.ndarray, distances: np.ndarray, query: int, entries: Entries, n_entries: int
) -> tuple[int, int]:
    """Return the numbers of the last old neighbour and of the last ordered entry among the k nearest of both.

    The ordered entries that are old neighbours, or come twice, are taken out: equal indices have equal distances, and
    so meet in the order.
    """
    labels, measured, ordered = entries.labels, entries.distances, 1
    i, old, new, taken = query, 0, 0, 0
    while old + taken < indices.shape[1]:
        nearer = new < n_entries and measured[ordered, new] <= distances[i, old]
        tied = nearer and measured[ordered, new] == distances[i, old]
        if nearer and not (tied and labels[ordered, new] >= indices[i, old]):
            labels[ordered, taken], measured[ordered, taken] = labels[ordered, new], measured[ordered, new]
            taken += np.int64(taken == 0 or labels[ordered, taken - 1] != labels[ordered, taken])
            new += 1
        elif tied and labels[ordered, new] == indices[i, old]:
            new += 1
        else:
            old += 1
    return old - 1, taken - 1


@compiled
def merge_neighbors(a: Neighbors, b: Neighbors, n_neighbors: int) -> Neighbors:
    """Return the nearest neighbours in two sets of lists of the same queries.

    Parameters
    ----------
    a, b : neighbours (n, any width); an index that is in both lists of a query is taken once

    Returns
    -------
    Neighbors (n, k) in the dtypes of `a`, ascending by distance, ties by index
    """
    n_queries = a.indices.shape[0]
    indices = np.full((n_queries, n_neighbors), -1, dtype=a.indices.dtype)
    distances = np.full((n_queries, n_neighbors), np.inf, dtype=a.distances.dtype)
    for i in range(n_queries):
        for lists in (a, b):
            for j in range(lists.indices.shape[1]):
                index = lists.indices[i, j]
                if index >= 0 and not _contains(indices[i], index):
                    insert_neighbor(indices, distances, i, index, lists.distances[i, j])
    return Neighbors(indices, distances)


@compiled
def _contains(indices: np.ndarray, index: int) -> bool:
    for other in indices:  # noqa: SIM110 - a loop is what numba compiles
        if other == index:
            return True
    return False


def recall_by_row(neighbors: Neighbors, true_distances: np.ndarray) -> np.ndarray:
    """Return the share of neighbours that are no farther than the true k-th neighbour: ties count.

    Parameters
    ----------
    neighbors : (n, k), those of a search; an index that comes twice counts once
    true_distances : (n, k) float32 or float64, to the true neighbours, ascending

    Returns
    -------
    (n,) float64 in [0, 1]. Distances that differ by the rounding of float32 count as equal
    """
    counted = (neighbors.indices >= 0) & ~repeated_in_rows(neighbors.indices)
    reached = true_distances[:, -1:].astype(np.float64) * (1.0 + np.finfo(np.float32).eps)
    return np.mean((neighbors.distances <= reached) & counted, axis=1)
