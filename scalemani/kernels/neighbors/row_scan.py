"""Exact nearest neighbours where a function compares two rows: all pairs, a tile of rows at a time."""

import numpy as np

from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.neighbors.rerank import LIMIT_SLACK, Neighbors
from scalemani.kernels.rows.reduced import Distance, distance_of, reduced_distance, reduced_of
from scalemani.kernels.rows.smallest import insert_neighbor

TILE_BYTES = 2**17  # of rows in float64, which all queries are compared with: they stay in the second-level cache


def compared_neighbors(
    distance: Distance,
    queries: np.ndarray,
    query_labels: np.ndarray,
    rows: np.ndarray,
    start: int,
    known: Neighbors,
    limits: np.ndarray,
) -> Neighbors:
    """Return what `exact.nearest_among` does, of dense points that a function compares."""
    lists = Neighbors(known.indices.copy(), known.distances.copy())
    reaches = np.minimum(limits, lists.distances[:, -1].astype(np.float64))
    wide = np.ascontiguousarray(queries, np.float64)
    for tile in slices(len(rows), tile_rows(rows.shape[1])):
        others = np.ascontiguousarray(rows[tile], np.float64)
        scan_rows(distance, wide, query_labels, others, start + tile.start, lists, reaches)
    return lists


def tile_rows(n_features: int) -> int:
    """Return how many rows with so many features a tile has."""
    return max(1, TILE_BYTES // (8 * n_features))


@compiled
def scan_rows(
    distance: Distance,
    queries: np.ndarray,
    query_labels: np.ndarray,
    rows: np.ndarray,
    start: int,
    lists: Neighbors,
    reaches: np.ndarray,
) -> None:
    """Insert the rows that are near enough into the lists of the queries.

    Parameters
    ----------
    distance : by a function
    queries, rows : (n, D) and (m, D) float64
    query_labels : (n,) int, the index of each query; -1 for a query that is no row
    start : the index of the first row
    lists : (n, k) neighbours, changed in place
    reaches : (n,) float64, distances beyond which no row is wanted; changed in place
    """
    indices, distances = lists.indices, lists.distances
    rounded, measured = np.empty(1, dtype=distances.dtype), np.empty(rows.shape[0])
    for i in range(query_labels.size):
        measure_rows(distance, queries, i, rows, rows.shape[0], measured)
        limit = reduced_of(distance, reaches[i]) * LIMIT_SLACK
        for row in range(rows.shape[0]):
            if measured[row] > limit or start + row == query_labels[i]:
                continue
            rounded[0] = distance_of(distance, measured[row])  # in the dtype of the lists, so that ties stay ties
            insert_neighbor(indices, distances, i, start + row, rounded[0])
            reaches[i] = min(reaches[i], distances[i, -1])
            limit = reduced_of(distance, reaches[i]) * LIMIT_SLACK


@compiled
def measure_rows(
    distance: Distance, queries: np.ndarray, query: int, rows: np.ndarray, n_rows: int, measured: np.ndarray
) -> None:
    """Write the reduced distances (n_rows,) float64 of a query to the first rows of a table."""
    for row in range(n_rows):
        measured[row] = reduced_distance(distance, queries, query, rows, row, np.inf)
