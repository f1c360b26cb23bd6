"""How far a map can be believed at each point: its neighbours, those of them elsewhere, and distances to others.

Lists of a point are (M, k) rows of the points, affinities (M, k) rows of W padded by zeros.
"""

import numpy as np

from scalemani.kernels.graph.product import Rows
from scalemani.kernels.machine.compile import compiled, inlined

LLOYD_STEPS = 10


def padded_rows(rows: Rows, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and values (M, k) of rows in CSR form; behind the last one, the `own` row (M,) with zero."""
    indptr, indices, values = rows
    places = indptr[:-1, np.newaxis] + np.arange(max(1, int(np.diff(indptr).max(initial=0))))
    inside = places < indptr[1:, np.newaxis]
    places = np.where(inside, places, 0)
    columns = np.where(inside, indices[places] if len(indices) else 0, own[:, np.newaxis])
    return columns, np.where(inside, values[places] if len(values) else 0.0, 0.0).astype(np.float64)


@compiled
def centers_elsewhere(places: np.ndarray, weights: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the centre (M, d) of those neighbours of each point that lie elsewhere in a map.

    They are the second of two clusters that k-means finds among the places (M, k, d) of its neighbours by their weights
    (M, k), from the `own` place (M, d) of the point and its farthest neighbour; a cluster without weight stays.
    """
    n_points, longest, n_dims = places.shape
    centers, means, totals = np.empty((2, n_dims)), np.empty((2, n_dims)), np.empty(2)
    found = np.empty((n_points, n_dims))
    for i in range(n_points):
        farthest, most = 0, -1.0
        for k in range(longest):
            square = square_between(places[i, k], own[i])
            if weights[i, k] > 0 and square > most:
                farthest, most = k, square
        centers[0], centers[1] = own[i], places[i, farthest]
        for _ in range(LLOYD_STEPS):
            means[:], totals[:] = 0.0, 0.0
            for k in range(longest):
                of = 1 if square_between(places[i, k], centers[1]) < square_between(places[i, k], centers[0]) else 0
                totals[of] += weights[i, k]
                for d in range(n_dims):
                    means[of, d] += weights[i, k] * places[i, k, d]
            for of in range(2):
                if totals[of] > 0:
                    centers[of] = means[of] / totals[of]
        found[i] = centers[1]
    return found


@inlined
def square_between(one: np.ndarray, other: np.ndarray) -> float:
    """Return the squared distance of two places (d,)."""
    square = 0.0
    for d in range(one.shape[0]):
        square += (one[d] - other[d]) ** 2
    return square


def shares_within(lists: np.ndarray, longer: np.ndarray) -> np.ndarray:
    """Return the share (M,) of each list (M, k) that is in a longer one (M, K); entries of a list are distinct."""
    both = np.sort(np.concatenate([lists, longer], axis=1), axis=1)
    return np.asarray((both[:, 1:] == both[:, :-1]).sum(axis=1) / lists.shape[1])


def agreements(in_data: np.ndarray, in_map: np.ndarray) -> np.ndarray:
    """Return how well distances (M, m) to some points agree between data and map: a correlation (M,) in [-1, 1].

    Of the nearer half of these points, distances in the map stand in the order of the data, against the least half of
    them in ascending order [Xia, Lee and Li, scDEED, Nature Communications 15, 2024]; 0 where either are all equal.
    """
    half = max(1, in_data.shape[1] // 2)
    nearest = np.argsort(in_data, axis=1, kind="stable")[:, :half]
    one, other = np.take_along_axis(in_map, nearest, axis=1), np.sort(in_map, axis=1)[:, :half]
    one, other = (values - values.mean(axis=1, keepdims=True) for values in (one, other))
    sizes = np.sqrt((one * one).sum(axis=1) * (other * other).sum(axis=1))
    return np.clip((one * other).sum(axis=1) / np.where(sizes > 0, sizes, 1.0), -1.0, 1.0)
