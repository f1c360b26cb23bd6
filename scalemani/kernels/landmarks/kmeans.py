"""k-means of points that fit in memory, and the pieces of one Lloyd iteration over blocks of points that do not.

The clusters of `kmeans` are a result: restarts, iterations to convergence, float64. Mini-batch k-means chooses
landmarks and stops early, since its centroids only have to be spread like the points; its batches come from wherever
the points are stored. `neighbors.cell_index` needs no more than compact cells.
"""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.landmarks.nearest import (
    basis_of_landmarks,
    nearest_landmarks,
    nearest_rows,
    prepare_landmarks,
)
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.distances import squared_row_distance
from scalemani.kernels.rows.sketches import SketchBasis

SNAP_CANDIDATES = 8  # nearest points listed for each centroid: centroids that share their nearest then have another

N_RESTARTS = 10
MAX_ITERATIONS = 300
TOLERANCE = 1e-4  # of the squared movement of the centres, in units of the mean variance of the columns


@dataclass(frozen=True)
class ScaledPoints:
    """Points (N, D) less a mean (D,) and divided by a scale, in float32, read by row numbers."""

    points: PointsByRow
    mean: np.ndarray
    scale: float

    def __len__(self) -> int:
        """Return N."""
        return len(self.points)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Return the points (m, D) at rows (m,)."""
        return ((self.points[rows] - self.mean) / self.scale).astype(np.float32)


class Minibatch(NamedTuple):
    """What one batch hands to the next."""

    points: ScaledPoints
    basis: SketchBasis  # of the sketches that prune distances of scaled points
    centroids: np.ndarray  # (L, D) float64, scaled
    counts: np.ndarray  # (L,) int64, points taken so far

    def unscaled(self) -> np.ndarray:
        """Return the centroids (L, D) float64 where the points lie."""
        return self.centroids * self.points.scale + self.points.mean


def minibatch_start(points: PointsByRow, sample: np.ndarray, seeds: np.ndarray) -> Minibatch:
    """Return the state before the first batch.

    Parameters
    ----------
    points : N points
    sample : (S, D) real, points that fix the origin and the directions of the sketches, none of which changes the
        result beyond rounding
    seeds : (L, D) real, first centroids, as from `random_landmarks` or `kmeans_plus_plus`
    """
    basis = basis_of_landmarks(sample)
    scaled = ScaledPoints(points, basis.mean, float(np.abs(seeds - basis.mean).max()) or 1.0)
    of_scaled = basis._replace(mean=np.zeros_like(basis.mean), scale=1.0)
    return Minibatch(scaled, of_scaled, (seeds - scaled.mean) / scaled.scale, np.zeros(len(seeds), dtype=np.int64))


def minibatch_step(state: Minibatch, rows: np.ndarray) -> Minibatch:
    """Return the state after a batch of points at rows (n,): each centroid is the mean of all it was the nearest to.

    The batch's points of a centroid are taken at once, so that their order does not matter. A centroid that is nearest
    to no point stays where it is.

    References
    ----------
    Sculley, Web-scale k-means clustering, 2010, algorithm 1.
    """
    batch = state.points[rows]
    labels = nearest_landmarks(batch, prepare_landmarks(state.centroids.astype(np.float32), state.basis), 1)[0][:, 0]
    sums, counts = state.centroids * state.counts[:, np.newaxis], state.counts.copy()
    _add_rows(batch, labels, sums, counts)
    taken = counts > 0
    centroids = state.centroids.copy()
    centroids[taken] = sums[taken] / counts[taken, np.newaxis]
    return state._replace(centroids=centroids, counts=counts)


def snapped_rows(state: Minibatch) -> np.ndarray:
    """Return distinct rows (L,) int64: a centroid's nearest that no closer one has taken, -1 where all are taken."""
    nearest, squares = nearest_rows(state.points, state.centroids.astype(np.float32), SNAP_CANDIDATES, state.basis)
    chosen = np.full(len(nearest), -1, dtype=np.int64)
    taken: set[int] = set()
    pairs = np.argsort(squares, axis=None, kind="stable")
    for centroid, row in zip(pairs // nearest.shape[1], nearest.ravel()[pairs], strict=True):
        if chosen[centroid] < 0 and row not in taken:
            chosen[centroid] = row
            taken.add(int(row))
    return chosen


@compiled
def _add_rows(rows: np.ndarray, labels: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        label = labels[i]
        counts[label] += 1
        for j in range(rows.shape[1]):
            sums[label, j] += rows[i, j]


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
) -> Clusters:
    """Return the best of several runs of Lloyd's algorithm, each from k-means++ seeds.

    scikit-learn's implementation at one thread: its parallel sums depend in the last bits on the number of threads.

    Parameters
    ----------
    points : (n, d) real, finite, computed with in float64
    n_clusters : K, at most n
    n_restarts : runs, of 300 iterations at most, default 10; the one of least inertia is returned

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
            f"{n_clusters} clusters were requested, but there are {len(table)} points; request at most that"
        )
    draw = int(generator(seed, "kmeans").integers(2**32))
    model = KMeans(
        n_clusters,
        init="k-means++",
        n_init=n_restarts,
        max_iter=MAX_ITERATIONS,
        tol=TOLERANCE,
        random_state=draw,
        algorithm="lloyd",
    )
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(table)
    n_labels = len(np.unique(model.labels_))
    if n_labels < n_clusters:
        n_distinct = len(np.unique(table, axis=0))
        if n_distinct < n_clusters:
            raise DataError(
                f"{n_clusters} clusters were requested, but these {len(table)} points have only {n_distinct} distinct "
                f"rows; request at most {n_distinct} clusters"
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
            distance = squared_row_distance(points, i, centers, k, least)
            if distance < least:
                nearest, least = k, distance
        labels[i] = nearest
        distances[i] = least
