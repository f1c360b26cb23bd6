"""Exact nearest neighbours of sparse points: products with tiles of rows say which may be near, distances settle them.

A tile holds 64 rows side by side, for the columns alone in which one of them has a value: a few thousand of many. A
nonzero of a query is then multiplied with all 64 at once, and where no row of the tile has its column, with none.
"""

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.neighbors.rerank import LIMIT_SLACK, Neighbors
from scalemani.kernels.rows.compressed import CompressedRows, compressed_rows, set_distance
from scalemani.kernels.rows.reduced import Distance, compares_sets, distance_of, reduced_distance, reduced_of
from scalemani.kernels.rows.smallest import insert_neighbor

LANES = 64
# What products in float32 may add to a squared distance, as a share of the squared lengths that went into it: some 20
# times the rounding of sums over some thousand nonzeros that is seen in practice. It costs a few more exact distances;
# too little would lose neighbours.
PRODUCT_SHARE = 1e-4
_LANES = np.uint64(LANES)


def sparse_neighbors(
    distance: Distance,
    queries: sp.csr_matrix,
    query_labels: np.ndarray,
    rows: sp.csr_matrix,
    start: int,
    known: Neighbors,
    limits: np.ndarray,
) -> Neighbors:
    """Return what `exact.nearest_among` does, of sparse points whose columns ascend in each row."""
    lists = Neighbors(known.indices.copy(), known.distances.copy())
    reaches = np.minimum(limits, lists.distances[:, -1].astype(np.float64))
    scan_tiles(
        distance,
        compressed_rows(queries),
        query_labels,
        compressed_rows(rows, queried=False),
        start,
        lists,
        reaches,
    )
    return lists


@compiled
def scan_tiles(
    distance: Distance,
    queries: CompressedRows,
    query_labels: np.ndarray,
    rows: CompressedRows,
    start: int,
    lists: Neighbors,
    reaches: np.ndarray,
) -> None:
    """Insert the rows that are near enough into the lists of the queries.

    Parameters
    ----------
    distance, queries, query_labels, rows, start : as in `sparse_neighbors`
    lists : (n, k) neighbours, changed in place
    reaches : (n,) float64, distances beyond which no row is wanted; changed in place
    """
    indices, distances, n_rows = lists.indices, lists.distances, rows.indptr.size - 1
    products, slots = np.empty(LANES, np.float32), np.full(queries.spread.size, -1, np.int32)
    rounded = np.empty(1, dtype=distances.dtype)
    for first in range(0, n_rows, LANES):
        count = min(LANES, n_rows - first)
        packed = _packed_tile(rows, first, count, slots)
        for i in range(query_labels.size):
            _multiply_tile(queries, i, slots, packed, products)
            for lane in range(count):
                row = first + lane
                limit = reduced_of(distance, reaches[i]) * LIMIT_SLACK
                squares = queries.squares[i] + rows.squares[row]
                bound = (1.0 - PRODUCT_SHARE) * squares - 2.0 * np.float64(products[lane])
                if compares_sets(distance):  # their products are whole numbers
                    bound = set_distance(np.float64(products[lane]), squares)
                if bound > limit or start + row == query_labels[i]:  # what overflowed in float32 is no number
                    continue
                reduced = reduced_distance(distance, queries, i, rows, row, limit)
                if reduced <= limit:
                    rounded[0] = distance_of(distance, reduced)  # in the dtype of the lists, so that ties stay ties
                    insert_neighbor(indices, distances, i, start + row, rounded[0])
                    reaches[i] = min(reaches[i], distances[i, -1])
        for entry in range(rows.indptr[first], rows.indptr[first + count]):
            slots[rows.columns[entry]] = -1


@compiled
def _packed_tile(rows: CompressedRows, first: int, count: int, slots: np.ndarray) -> np.ndarray:
    """Return `count` rows from `first` on side by side, (columns that they have, 64) float32, and number these."""
    n_used = 0
    for entry in range(rows.indptr[first], rows.indptr[first + count]):
        if slots[rows.columns[entry]] < 0:
            slots[rows.columns[entry]] = n_used
            n_used += 1
    packed = np.zeros((n_used, LANES), np.float32)
    for lane in range(count):
        for entry in range(rows.indptr[first + lane], rows.indptr[first + lane + 1]):
            packed[slots[rows.columns[entry]], lane] = rows.values[entry]
    return packed


@compiled
def _multiply_tile(
    queries: CompressedRows, query: int, slots: np.ndarray, packed: np.ndarray, products: np.ndarray
) -> None:
    """Write the products of a query with the rows of a tile: (64,) float32."""
    products[:] = np.float32(0.0)
    for entry in range(np.uint64(queries.indptr[query]), np.uint64(queries.indptr[query + 1])):
        slot = slots[np.uint64(queries.columns[entry])]
        if slot >= 0:
            value = np.float32(queries.values[entry])
            for lane in range(_LANES):
                products[lane] += value * packed[np.uint64(slot), lane]
