"""Neighbours compared by plain distances: no sketches, no limits, no code of the searches that are to be judged."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.spatial.distance import cdist

from scalemani.config.functions import is_function, load_function
from scalemani.config.judged import distances_between
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.kernels.rows.compressed import Points, jaccard_distances

QUERIES_AT_ONCE, ROWS_AT_ONCE = 64, 256
ROUNDINGS_OF_SQUARE = 4  # twice that of either distance that is compared
CANCELLED = 1e-4  # of squared lengths: a squared distance below has lost four digits of sixteen to their difference
ROUNDING = 1e-9  # of a squared distance in float64: neighbours closer than this tie


class Comparison(NamedTuple):
    """What a part of the points says of lists of neighbours.

    `nearest` (m, k) float64: squared distances of the m queries to the nearest points of the part but themselves, in no
    order, inf where it has fewer; `listed` (m, k): those to the neighbours listed, inf where they are in other parts.
    Distances of another metric stand in their place as they are.
    """

    nearest: np.ndarray
    listed: np.ndarray


def compared(
    queries: Points, rows: np.ndarray, lists: np.ndarray, points: Points, first_row: int, metric: str = ""
) -> Comparison:
    """Compare lists of neighbours with all points of a part.

    Parameters
    ----------
    queries : (m, D) real, dense or sparse, or boolean: sets, whose distances are Jaccard's
    rows : (m,) int64, their rows among all points
    lists : (m, k) integer rows, the neighbours that are listed for them
    points : (n, D) real, the points of the part, likewise
    metric : one that compares rows, whose distances take the place of squared Euclidean ones

    Returns
    -------
    Comparison, computed in float64
    """
    width = lists.shape[1]
    nearest, listed = np.full(lists.shape, np.inf), np.full(lists.shape, np.inf)
    for tile in slices(points.shape[0], ROWS_AT_ONCE):
        others = in_float64(points[tile])
        numbers = first_row + tile.start + np.arange(others.shape[0])
        for part in slices(queries.shape[0], QUERIES_AT_ONCE):
            some = in_float64(queries[part])
            away = distances_in(metric, some, others) if metric else plain_squares(some, others)
            away[rows[part][:, np.newaxis] == numbers] = np.inf
            both = np.hstack([nearest[part], away])
            nearest[part] = np.partition(both, width - 1, axis=1)[:, :width]
            places = lists[part].astype(np.int64) - numbers[0]
            inside = (places >= 0) & (places < len(numbers))
            at_places = np.take_along_axis(away, np.where(inside, places, 0), axis=1)
            listed[part] = np.where(inside, at_places, listed[part])
    return Comparison(nearest, listed)


def nearest_by(
    metric: str, queries: np.ndarray, labels: np.ndarray, points: np.ndarray, first_row: int, known: Neighbors
) -> Neighbors:
    """Return the nearest of the known neighbours and the points of a part in a metric that compares rows, in no order.

    Parameters
    ----------
    queries, points : (m, D) and (n, D) real
    labels : (m,) int, the rows of the queries among all points; -1 for a query that is none
    first_row : the row of the first point
    known : (m, k) neighbours, none of them among the points; float64
    """
    indices, distances = known.indices.copy(), known.distances.copy()
    width = indices.shape[1]
    for tile in slices(len(points), ROWS_AT_ONCE):
        others = points[tile].astype(np.float64)
        rows = (first_row + tile.start + np.arange(len(others))).astype(indices.dtype)
        for part in slices(len(queries), QUERIES_AT_ONCE):
            away = distances_in(metric, queries[part].astype(np.float64), others)
            away[labels[part][:, np.newaxis] == rows] = np.inf
            both = np.hstack([distances[part], away])
            of_both = np.hstack([indices[part], np.broadcast_to(rows, away.shape)])
            nearest = np.argpartition(both, width - 1, axis=1)[:, :width]
            distances[part], indices[part] = (np.take_along_axis(one, nearest, axis=1) for one in (both, of_both))
    return Neighbors(np.where(np.isfinite(distances), indices, -1), distances)


def listed_distances(metric: str, queries: np.ndarray, lists: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the distances (m, k) float64 of queries (m, D) to points (n, D) that lists (m, k) name, in a metric."""
    rows = zip(queries[:, np.newaxis].astype(np.float64), points[lists].astype(np.float64), strict=True)
    return np.array([distances_in(metric, query, listed)[0] for query, listed in rows]).reshape(lists.shape)


def distances_in(metric: str, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the distances (m, n) of rows float64 in a metric that compares them; a function of users runs compiled."""
    return loops_over(metric)(one, other) if is_function(metric) else distances_between(metric, one, other)


@functools.cache
def loops_over(metric: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return what calls a function of users for all pairs of rows."""
    function = load_function(metric)
    dispatcher: Any = function if hasattr(function, "py_func") else numba.njit(nogil=True)(function)

    def of_all_pairs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        away = np.empty((one.shape[0], other.shape[0]))
        for i in range(one.shape[0]):
            for j in range(other.shape[0]):
                away[i, j] = dispatcher(one[i], other[j])
        return away

    compiled: Callable[[np.ndarray, np.ndarray], np.ndarray] = numba.njit(nogil=True)(of_all_pairs)
    return compiled


def plain_squares(queries: Points, others: Points) -> np.ndarray:
    """Return the squared distances (m, n) of points (m, D) and (n, D) float64, or Jaccard distances of boolean ones."""
    if queries.dtype == np.bool_:
        return jaccard_distances(queries, others)
    if not sp.issparse(queries):
        lengths = np.add.outer(*(np.einsum("ij,ij->i", rows, rows) for rows in (queries, others)))
        squares = lengths - 2.0 * (queries @ others.T)
        cancelled = ~np.all(squares >= CANCELLED * lengths, axis=1)
        squares[cancelled] = cdist(queries[cancelled], others, "sqeuclidean")
        return squares
    lengths = np.add.outer(*(np.asarray(rows.multiply(rows).sum(axis=1)).ravel() for rows in (queries, others)))
    squares = lengths - 2.0 * (queries @ others.T).toarray()
    for query, other in np.argwhere(squares < CANCELLED * lengths):
        difference = queries[query] - others[other]
        squares[query, other] = difference.multiply(difference).sum()
    return squares


def in_float64(rows: Points) -> Points:
    """Return rows (n, D) in float64; sets stay boolean."""
    return rows if rows.dtype == np.bool_ else rows.astype(np.float64)


def merged(one: Comparison, other: Comparison) -> Comparison:
    """Return what two parts of the points say together."""
    width = one.nearest.shape[1]
    nearest = np.partition(np.hstack([one.nearest, other.nearest]), width - 1, axis=1)[:, :width]
    return Comparison(nearest, np.minimum(one.listed, other.listed))


def recall_of(whole: Comparison, lists: np.ndarray, dtype: DTypeLike = np.float64) -> float:
    """Return the share of listed neighbours that are no farther than the true k-th: in [0, 1].

    Parameters
    ----------
    lists : (m, k) integer rows; a row that a list repeats, that of the query and -1 count as missed
    dtype : of the distances by which the search has ordered them; what is equal in it ties
    """
    ordered = np.argsort(lists, axis=1, kind="stable")
    sorted_lists = np.take_along_axis(lists, ordered, axis=1)
    repeated = np.zeros(lists.shape, bool)
    np.put_along_axis(repeated, ordered, np.diff(sorted_lists, axis=1, prepend=sorted_lists[:, :1] - 1) == 0, axis=1)
    rounding = max(ROUNDING, ROUNDINGS_OF_SQUARE * float(np.finfo(dtype).eps))
    reached = whole.nearest.max(axis=1, keepdims=True) * (1 + rounding)
    return float(np.mean((whole.listed <= reached) & ~repeated & np.isfinite(whole.listed)))
