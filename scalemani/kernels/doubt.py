"""How far a map can be believed at each point: its neighbours, those of them elsewhere, and distances to others.

Lists of a point are (M, k) rows of the points.
"""

import numpy as np

from scalemani.kernels.graph.product import Rows
from scalemani.kernels.machine.compile import compiled, inlined

LLOYD_STEPS = 10


@compiled
def centers_elsewhere(positions: np.ndarray, rows: Rows, own: np.ndarray) -> np.ndarray:
    """Return the centre (M, d) of those neighbours of each point that lie elsewhere in a map (N, d).

    They are the second of two clusters that k-means finds among the neighbours that `rows` (M, N) in CSR form name, by
    their affinities, from the place of the `own` point (M,) and its farthest neighbour; a cluster without weight stays.
    """
    indptr, indices, affinities = rows
    n_dims = positions.shape[1]
    centers, means, totals = np.empty((2, n_dims)), np.empty((2, n_dims)), np.empty(2)
    found = np.empty((own.shape[0], n_dims))
    for i in range(own.shape[0]):
        centers[0] = centers[1] = positions[own[i]]
        most = -1.0
        for entry in range(indptr[i], indptr[i + 1]):
            square = square_between(positions[indices[entry]], centers[0])
            if affinities[entry] > 0 and square > most:
                most = square
                centers[1] = positions[indices[entry]]
        for _ in range(LLOYD_STEPS):
            means[:], totals[:] = 0.0, 0.0
            for entry in range(indptr[i], indptr[i + 1]):
                place, weight = positions[indices[entry]], affinities[entry]
                of = 1 if square_between(place, centers[1]) < square_between(place, centers[0]) else 0
                totals[of] += weight
                for d in range(n_dims):
                    means[of, d] += weight * place[d]
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
