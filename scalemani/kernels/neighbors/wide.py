"""Exact nearest neighbours of wide points: matrix products say which pairs may be near, exact distances settle them.

Sketches hold little of points of many thousand features, and a pair of such rows does not stay in the first-level
cache. A product of two tiles reads every row once for hundreds of pairs.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.neighbors.rerank import LIMIT_SLACK, PRODUCT_SHARE, Neighbors, lists_to_fill
from scalemani.kernels.rows.distances import squared_row_distance
from scalemani.kernels.rows.smallest import insert_neighbor

WIDE_ROW_BYTES = 2**15  # two rows of more leave no room for others in the first-level cache of 2026's processors
ROWS_AT_ONCE = 256


def wide_neighbors(
    queries: np.ndarray,
    query_labels: np.ndarray,
    rows: np.ndarray,
    start: int,
    known: Neighbors,
    limits: np.ndarray,
) -> Neighbors:
    """Return the nearest of the known neighbours and a block of rows, by exact distance, ties by index.

    The answer is that of `exact_neighbors`, as long as float32 rounding stays under PRODUCT_SHARE.

    Parameters
    ----------
    queries : (n, D) points
    query_labels : (n,) int, the index of each query, which is never its own neighbour; -1 for a query that is no row
    rows : (u, D) points of the same dtype
    known : (n, k) neighbours, none of them among the rows
    limits : (n,) distances beyond which no neighbour is wanted, inf for none; the lists are complete up to them

    Returns
    -------
    Neighbors (n, k) in the dtypes of `known`
    """
    found, reaches = lists_to_fill(known, limits)
    center = np.mean(rows, axis=0, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # exact distances settle what overflows here
        products = Products.of(queries, center)
        for first in range(0, len(rows), ROWS_AT_ONCE):
            tile = rows[first : first + ROWS_AT_ONCE]
            bounds = products.least_squares(tile)
            settle_near(bounds, queries, query_labels, tile, start + first, found, reaches)
    return found


class Products(NamedTuple):
    """Points about a centre: what their products with others need."""

    centered: np.ndarray  # (n, D) float32
    squares: np.ndarray  # (n,) float64, their squared lengths
    center: np.ndarray  # (D,) float64

    @classmethod
    def of(cls, points: np.ndarray, center: np.ndarray) -> "Products":
        """Return points about a centre."""
        centered = np.empty(points.shape, np.float32)
        np.subtract(points, center, out=centered, dtype=np.float64, casting="same_kind")
        return cls(centered, np.einsum("ij,ij->i", centered, centered, dtype=np.float64), center)

    def least_squares(self, rows: np.ndarray) -> np.ndarray:
        """Return bounds (n, u) float64 below the squared distances of the points to rows (u, D), -inf for unknown."""
        others = Products.of(rows, self.center)
        lengths = self.squares[:, None] + others.squares
        bounds = (1 - PRODUCT_SHARE) * lengths - 2.0 * (self.centered @ others.centered.T)
        bounds[~np.isfinite(bounds)] = -np.inf
        return bounds


@compiled
def settle_near(
    bounds: np.ndarray,
    queries: np.ndarray,
    query_labels: np.ndarray,
    rows: np.ndarray,
    start: int,
    known: Neighbors,
    reaches: np.ndarray,
) -> None:
    """Insert the rows that are near enough into the lists of the queries; lists and `reaches` change in place.

    Parameters
    ----------
    bounds : (n, u) float64, below the squared distances; -inf where nothing is known
    queries, query_labels, rows, start : as in `wide_neighbors`
    known : (n, k) neighbours
    reaches : (n,) float64, distances beyond which no row is wanted
    """
    indices, distances = known.indices, known.distances
    rounded = np.empty(1, dtype=distances.dtype)
    for i in range(query_labels.size):
        for row in range(rows.shape[0]):
            limit = reaches[i] ** 2 * LIMIT_SLACK
            if bounds[i, row] > limit or start + row == query_labels[i]:
                continue
            square = squared_row_distance(queries, i, rows, row, limit)
            if square <= limit:
                rounded[0] = np.sqrt(square)  # in the dtype of the lists, so that ties stay ties
                insert_neighbor(indices, distances, i, start + row, rounded[0])
                reaches[i] = min(reaches[i], distances[i, -1])
