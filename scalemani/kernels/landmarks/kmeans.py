"""k-means of points that fit in memory, and the pieces of one Lloyd iteration over blocks of points that do not.

The clusters are a result here: restarts, iterations to convergence, float64. `landmarks.minibatch` stops early, since
its centroids only have to be spread like the points; `neighbors.cells` needs no more than compact cells.
"""

import warnings
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.distances import squared_distance

N_RESTARTS = 10
MAX_ITERATIONS = 300
TOLERANCE = 1e-4  # of the squared movement of the centres, in units of the mean variance of the columns


class Clusters(NamedTuple):
    """A partition of points: labels (n,) int32, centers (K, d) float64, inertia (sum of squared distances to them)."""

    labels: np.ndarray
    centers: np.ndarray
    inertia: float


def kmeans(
    points: np.ndarray,
    n_clusters: int,
    seed: int,
    n_restarts: int = N_RESTARTS,
    max_iterations: int = MAX_ITERATIONS,
) -> Clusters:
    """Return the best of several runs of Lloyd's algorithm, each from k-means++ seeds.

    scikit-learn's implementation at one thread: its parallel sums depend in the last bits on the number of threads.

    Parameters
    ----------
    points : (n, d) real, finite, computed with in float64
    n_clusters : K, at most n
    seed : of the starts
    n_restarts : runs, default 10; the one of least inertia is returned
    max_iterations : of each run, default 300

    Returns
    -------
    Clusters

    Raises
    ------
    DataError
        When there are fewer distinct points than clusters.

    References
    ----------
    Lloyd, Least squares quantization in PCM, 1982. Arthur and Vassilvitskii, k-means++: the advantages of careful
    seeding, 2007.
    """
    from sklearn.cluster import KMeans  # its import takes seconds that only clustering should pay
    from sklearn.exceptions import ConvergenceWarning

    table = np.ascontiguousarray(points, dtype=np.float64)
    if n_clusters > len(table):
        raise DataError(
            f"{n_clusters} clusters were asked for, but there are {len(table)} points; ask for at most that"
        )
    draw = int(generator(seed, "kmeans").integers(2**32))
    model = KMeans(
        n_clusters,
        init="k-means++",
        n_init=n_restarts,
        max_iter=max_iterations,
        tol=TOLERANCE,
        random_state=draw,
        algorithm="lloyd",
    )
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(table)
    n_found = len(np.unique(model.labels_))
    if n_found < n_clusters:
        n_distinct = len(np.unique(table, axis=0))
        if n_distinct < n_clusters:
            raise DataError(
                f"{n_clusters} clusters were asked for, but these {len(table)} points have only {n_distinct} distinct "
                f"rows; ask for at most {n_distinct} clusters"
            )
    return Clusters(model.labels_.astype(np.int32), model.cluster_centers_, float(model.inertia_))


def assign(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest centre of each point, by direct differences: the same for any blocking of the points.

    Parameters
    ----------
    points : (n, d) real, finite
    centers : (K, d) real, finite

    Returns
    -------
    labels : (n,) int32, ties by index
    squared_distances : (n,) float64
    """
    table = np.ascontiguousarray(points, dtype=np.float64)
    labels = np.empty(len(table), dtype=np.int32)
    distances = np.empty(len(table), dtype=np.float64)
    _assign(table, np.ascontiguousarray(centers, dtype=np.float64), labels, distances)
    return labels, distances


class LloydPart(NamedTuple):
    """What a block of points adds to one Lloyd iteration; parts of blocks add up field by field."""

    sums: np.ndarray  # (K, d) float64
    counts: np.ndarray  # (K,) int64
    inertia: float


def lloyd_part(points: np.ndarray, centers: np.ndarray) -> LloydPart:
    """Return what a block of points (n, d) adds to one iteration from `centers` (K, d) float64."""
    labels, distances = assign(points, centers)
    counts = np.bincount(labels, minlength=len(centers)).astype(np.int64)
    table = np.asarray(points, dtype=np.float64)
    sums = np.stack([np.bincount(labels, weights=column, minlength=len(centers)) for column in table.T], axis=1)
    return LloydPart(sums, counts, float(distances.sum()))


def moved_centers(centers: np.ndarray, part: LloydPart) -> np.ndarray:
    """Return the centres after an iteration.

    Parameters
    ----------
    centers : (K, d) real, before it
    part : the sum of the parts of all blocks

    Returns
    -------
    (K, d) float64, the mean of the points of each centre; a centre without points stays
    """
    moved = np.array(centers, dtype=np.float64)
    taken = part.counts > 0
    moved[taken] = part.sums[taken] / part.counts[taken, np.newaxis]
    return moved


@compiled
def _assign(points: np.ndarray, centers: np.ndarray, labels: np.ndarray, distances: np.ndarray) -> None:
    for i in range(points.shape[0]):
        nearest, least = 0, np.inf
        for k in range(centers.shape[0]):
            distance = squared_distance(points[i], centers[k], least)
            if distance < least:
                nearest, least = k, distance
        labels[i] = nearest
        distances[i] = least
