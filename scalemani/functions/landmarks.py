"""Landmarks and Z of points in memory: `select_landmarks` and `landmark_weights`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.errors import ConfigError, DataError, nearest_name
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.landmarks.minibatch import (
    MinibatchState,
    minibatch_start,
    minibatch_step,
    snap_rows,
    snap_start,
    snap_step,
)
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.landmarks.seeding import kmeans_plus_plus, minmax_landmarks
from scalemani.kernels.landmarks.uniform import (
    first_of_equal_rows,
    n_spread_candidates,
    random_landmarks,
    spread_landmarks,
)
from scalemani.kernels.landmarks.weights import local_weights
from scalemani.sources import points_in_memory
from scalemani.validation import check_count, check_magnitude, check_seed

KMEANS_PASSES = 3  # over the points, or fewer when each centroid has seen enough of them
POINTS_PER_CENTROID = 300
MIN_BATCH = 4096
BATCH_PER_LANDMARK = 4


class Landmarks(NamedTuple):
    """Landmarks (L, D) in the dtype of the points, and their rows (L,) int64 (None if they are no data points)."""

    points: np.ndarray
    indices: np.ndarray | None


def select_landmarks(points: Any, n_landmarks: int, method: str = "random", random_state: Any = 0) -> Landmarks:
    """Select landmarks among points in memory; no two have equal coordinates.

    Parameters
    ----------
    points : (N, D) array-like of real numbers, or whatever else `open_points` takes: it is read whole
    n_landmarks : L, from 1 to N
    method : "random": uniformly without replacement; "spread": L + L/2 at random, less one of each closest pair;
        "kmeans" and "kmeans++": mini-batch k-means from random or k-means++ seeds, each centroid then replaced by the
        nearest data point; "kmeans++ seeding": those seeds alone; "minmax": farthest first
    random_state : seed; the same one gives the same landmarks. None draws one

    Returns
    -------
    Landmarks, rows ascending

    Raises
    ------
    ConfigError
        For an unknown method, and `n_landmarks` or `random_state` out of range.
    DataError
        For points that cannot be used (see `scalemani.validation.check_points`), points that are all equal, and fewer
        distinct points than landmarks.

    Source: Vladymyrov and Carreira-Perpinan, Locally linear landmarks, 2013, section 4.4 of the thesis.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.arange(20.0).reshape(10, 2)
    >>> select_landmarks(points, 3, method="minmax", random_state=1).indices.shape
    (3,)
    """
    if not isinstance(method, str) or method not in LANDMARK_METHODS:
        raise ConfigError(f"method {method!r} is unknown; {nearest_name(method, LANDMARK_METHODS)}")
    seed = check_seed(random_state)
    table = points_in_memory(points)
    n_selected = check_count(n_landmarks, "n_landmarks", 1, len(table), "the number of points")
    if len(table) > 1:
        check_magnitude(table.min(axis=0), table.max(axis=0), table.dtype)
    rows = np.sort(LANDMARK_METHODS[method](table, n_selected, seed))
    return Landmarks(table[rows], rows)


def landmark_weights(points: Any, landmarks: Any, n_neighbors: int = 5) -> sp.csr_matrix:
    """Return Z: each point as a combination of its nearest landmarks, with weights that sum to one.

    Parameters
    ----------
    points : (N, D) array-like, the data or new points, or whatever else `open_points` takes: they are read whole
    landmarks : (L, D) array-like with distinct rows, or the result of `select_landmarks`
    n_neighbors : K_Z, landmarks per point, from 1 to L

    Returns
    -------
    (N, L) CSR matrix of float64, columns ascending in each row; a point that is a landmark has its unit vector exactly

    Raises
    ------
    ConfigError
        For `n_neighbors` out of range.
    DataError
        For arrays that cannot be used, differing numbers of columns, and repeated landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> landmark_weights(np.array([[0.25]]), np.array([[0.0], [1.0]]), n_neighbors=2).toarray().round(3)
    array([[0.75, 0.25]])
    """
    table = points_in_memory(points)
    selected = points_in_memory(landmarks.points if isinstance(landmarks, Landmarks) else landmarks, "landmarks")
    if table.shape[1] != selected.shape[1]:
        raise DataError(f"points have {table.shape[1]} columns, landmarks {selected.shape[1]}; they must have the same")
    n_used = check_count(n_neighbors, "n_neighbors", 1, len(selected), "the number of landmarks")
    _check_distinct(selected)
    minima = np.minimum(table.min(axis=0), selected.min(axis=0))
    maxima = np.maximum(table.max(axis=0), selected.max(axis=0))
    if not np.array_equal(minima, maxima):
        check_magnitude(minima, maxima, np.result_type(table, selected), "points and landmarks")
    indices, _ = nearest_landmarks(table, selected, n_used)
    values = local_weights(table, selected, indices)
    offsets = np.arange(0, indices.size + 1, n_used, dtype=np.int64)
    weights = sp.csr_matrix((values.ravel(), indices.ravel(), offsets), shape=(len(table), len(selected)))
    weights.eliminate_zeros()
    weights.sort_indices()
    return weights


def _check_distinct(landmarks: np.ndarray) -> None:
    distinct = first_of_equal_rows(landmarks)
    if len(distinct) < len(landmarks):
        repeated = int(np.setdiff1d(np.arange(len(landmarks)), distinct)[0])
        raise DataError(
            f"landmarks must be distinct, got {len(landmarks) - len(distinct)} repeated rows, the first of them row "
            f"{repeated}; select them with select_landmarks, or pass numpy.unique(landmarks, axis=0)"
        )


def _random(points: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    return random_landmarks(len(points), n_landmarks, seed, points.__getitem__)


def _spread(points: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    n_candidates = n_spread_candidates(n_landmarks, len(points))
    while True:
        try:
            candidates = random_landmarks(len(points), n_candidates, seed, points.__getitem__, "spread")
        except DataError:  # repeated points can leave fewer than L + M, which is an error only below L
            if n_candidates == n_landmarks:
                raise
            n_candidates = n_landmarks + (n_candidates - n_landmarks) // 2
            continue
        return candidates[spread_landmarks(points[candidates], n_landmarks, seed)]


def _kmeans(points: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    return _clustered(points, _random(points, n_landmarks, seed), seed)


def _kmeans_plus_plus(points: np.ndarray, n_landmarks: int, seed: int) -> np.ndarray:
    return _clustered(points, kmeans_plus_plus(points, n_landmarks, seed), seed)


def _clustered(points: np.ndarray, seeds: np.ndarray, seed: int) -> np.ndarray:
    """Run mini-batch k-means from the rows `seeds` and return the rows nearest to its centroids."""
    n_landmarks = len(seeds)
    state = _converged(points, minibatch_start(points, points[seeds]), seed)
    chosen = snap_rows(snap_step(snap_start(n_landmarks), state, points, 0))
    chosen = chosen[chosen >= 0]
    distinct = chosen[first_of_equal_rows(points[chosen])]
    # Centroids whose nearest points were all taken are replaced by points far from the landmarks there are.
    return distinct if len(distinct) == n_landmarks else kmeans_plus_plus(points, n_landmarks, seed, distinct, "snap")


def _converged(points: np.ndarray, state: MinibatchState, seed: int) -> MinibatchState:
    n_points, n_landmarks = len(points), len(state.counts)
    n_batch = min(n_points, max(MIN_BATCH, BATCH_PER_LANDMARK * n_landmarks))
    n_taken = min(KMEANS_PASSES * n_points, POINTS_PER_CENTROID * n_landmarks)
    n_batches = max(1, -(-n_points // n_batch))
    for step in range(-(-n_taken // n_batch)):
        order = generator(seed, "landmarks/kmeans", step // n_batches).permutation(n_points)
        start = step % n_batches * n_batch
        state = minibatch_step(state, points[np.sort(order[start : start + n_batch])])
    return state


LANDMARK_METHODS: dict[str, Callable[[Any, int, int], np.ndarray]] = {
    "random": _random,
    "spread": _spread,
    "kmeans": _kmeans,
    "kmeans++": _kmeans_plus_plus,
    "kmeans++ seeding": kmeans_plus_plus,
    "minmax": minmax_landmarks,
}
