"""The landmark graph: what is around landmarks, which of them are joined, and eigenmaps that points follow.

The Bhattacharyya distance of two landmarks is that of the Gaussians of these points: two landmarks on
neighbouring sheets may be as near as two on one sheet, these Gaussians are not. All points follow by Nystrom's formula
with the normalised kernel.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph

from scalemani.errors import DisconnectedGraphError
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.landmarks.nearest import basis_of_landmarks, nearest_landmarks, nearest_rows
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.spectral.eigenmaps import Eigenmaps, exact_eigenmaps

LANDMARKS_TOGETHER = 64  # whose points are in memory
SINGULAR = 1e-10  # least over largest eigenvalue at which a covariance cannot be inverted
ADDED_SHARE = 1e-3  # of the mean variance, which is added to the diagonal of a singular covariance


class LocalGeometry(NamedTuple):
    """What is around landmarks.

    covariances (L, D, D) float64, or their diagonals (L, D); counts (L,) int64, points that they are of; regularized
    (L,) bool, those that are singular without an addition to the diagonal.
    """

    covariances: np.ndarray
    counts: np.ndarray
    regularized: np.ndarray


def local_geometry(
    points: PointsByRow, landmarks: np.ndarray, neighborhood: int, diagonal: bool = False
) -> LocalGeometry:
    """Return the covariances of the `neighborhood` points nearest to each landmark (L, D), distinct, around their mean.

    Points exactly as far as the last one belong too, so that no order of the points decides: the counts are m or more.
    All points are read tile by tile, and again where more of them are equally far than were listed.

    Covariances are positive definite: a thousandth of the mean variance is added to the diagonal of singular ones
    (where all points are repeated, of the mean variance of all landmarks).
    """
    (n_landmarks, width), n_near = landmarks.shape, min(neighborhood, len(points))
    nearest, belong = nearest_points(points, landmarks, n_near)
    counts = belong.sum(axis=1)
    covariances = np.empty((n_landmarks, width) if diagonal else (n_landmarks, width, width))
    for some in slices(n_landmarks, LANDMARKS_TOGETHER):
        rows, places = np.unique(nearest[some], return_inverse=True)
        table, places = points[rows].astype(np.float64), places.reshape(nearest[some].shape)
        for number in range(some.start, some.stop):
            # Next to a landmark differences lose no digits.
            around = table[places[number - some.start][belong[number]]] - landmarks[number]
            around -= around.mean(axis=0)
            covariances[number] = (np.square(around).sum(axis=0) if diagonal else around.T @ around) / len(around)
    if diagonal:
        return _positive_definite(covariances, covariances, counts, np.ones(width))
    return _positive_definite(covariances, np.linalg.eigvalsh(covariances), counts, np.eye(width))


def nearest_points(points: PointsByRow, landmarks: np.ndarray, n_near: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points near each landmark, (L, m) int64 rows, and which of them (L, m) are no farther than its n-th."""
    n_listed, basis = min(n_near + 1, len(points)), basis_of_landmarks(landmarks)
    while True:
        rows, squares = nearest_rows(points, landmarks, n_listed, basis)
        if n_listed == len(points) or np.all(squares[:, -1] > squares[:, n_near - 1]):
            return rows, squares <= squares[:, n_near - 1 : n_near]
        n_listed = min(2 * n_listed, len(points))


def _positive_definite(
    covariances: np.ndarray, values: np.ndarray, counts: np.ndarray, identity: np.ndarray
) -> LocalGeometry:
    """Return covariances with eigenvalues (L, D) made positive definite by adding to the diagonal of singular ones.

    Where there is no variance at all, that of all landmarks decides what is added.
    """
    singular = values.min(axis=1) <= SINGULAR * values.max(axis=1)
    variances = np.maximum(values, 0.0).mean(axis=1)
    usual = float(variances.mean()) or 1.0
    added = np.where(singular, ADDED_SHARE * np.where(variances > 0.0, variances, usual), 0.0)
    return LocalGeometry(covariances + np.multiply.outer(added, identity), counts, singular)


ROWS_TOGETHER = 16  # of distances between landmarks, in one step


def bhattacharyya_distances(landmarks: np.ndarray, covariances: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the Bhattacharyya distances of some landmarks to all: (m, L) float64, zero of each to itself.

    Parameters
    ----------
    landmarks : (L, D) real
    covariances : (L, D, D) positive definite, or (L, D) positive where they are diagonal
    rows : (m,) int64, of landmarks

    References
    ----------
    [DPP] 3.3, equation 7.
    """
    places = np.asarray(landmarks, dtype=np.float64)
    logarithms = _log_determinants(covariances)
    distances = np.empty((len(rows), len(places)))
    for number, row in enumerate(rows):
        between = 0.5 * (covariances + covariances[row])
        differences = places - places[row]
        if covariances.ndim == 2:
            squares = (differences**2 / between).sum(axis=1)
        else:
            solved = np.linalg.solve(between, differences[:, :, np.newaxis])[:, :, 0]
            squares = np.einsum("ld,ld->l", differences, solved)
        ratios = _log_determinants(between) - 0.5 * (logarithms + logarithms[row])
        distances[number] = np.maximum(0.125 * squares + 0.5 * ratios, 0.0)
        distances[number, row] = 0.0
    return distances


def bhattacharyya_neighbors(
    landmarks: np.ndarray, covariances: np.ndarray, n_neighbors: int, workspace: Workspace = IN_MEMORY
) -> np.ndarray:
    """Return the landmarks nearest to each by the Bhattacharyya distance, itself left out.

    Parameters
    ----------
    landmarks, covariances : as of `bhattacharyya_distances`
    n_neighbors : below L

    Returns
    -------
    (L, n_neighbors) int64, nearest first; of equal distances the lower number comes first
    """

    def nearest(rows: slice) -> np.ndarray:
        numbers = np.arange(rows.start, rows.stop)
        distances = bhattacharyya_distances(landmarks, covariances, numbers)
        distances[np.arange(len(numbers)), numbers] = np.inf
        return np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]

    return np.concatenate(list(workspace.over(nearest, slices(len(landmarks), ROWS_TOGETHER)))).astype(np.int64)


def _log_determinants(covariances: np.ndarray) -> np.ndarray:
    if covariances.ndim == 2:
        return np.log(covariances).sum(axis=1)
    return np.linalg.slogdet(covariances)[1]


SPACING_NEIGHBOR = 7  # as for self-tuning affinities


def landmark_kernel(landmarks: np.ndarray, neighbors: np.ndarray, sigma: float) -> sp.csr_matrix:
    """Return exp(-|x_i - x_j|^2 / (2 sigma^2)) where one of two landmarks is a neighbour of the other, and for i = j.

    Parameters
    ----------
    landmarks : (L, D) real
    neighbors : (L, k) int, by any distance; the kernel is of Euclidean ones
    sigma : in the unit of the points

    Returns
    -------
    (L, L) float64, symmetric
    """
    n_landmarks, n_neighbors = neighbors.shape
    heads, tails = np.repeat(np.arange(n_landmarks), n_neighbors), neighbors.ravel()
    differences = (landmarks[heads].astype(np.float64) - landmarks[tails]) / sigma
    values = np.exp(-0.5 * np.einsum("ed,ed->e", differences, differences))
    edges = sp.csr_matrix((values, (heads, tails)), shape=(n_landmarks, n_landmarks))
    return sp.csr_matrix(edges.maximum(edges.T) + sp.eye_array(n_landmarks, format="csr"))


def connected_eigenmaps(kernel: sp.csr_matrix, n_components: int) -> Eigenmaps:
    """Return the Laplacian eigenmaps of the landmarks' graph (L, L), the trivial one left out.

    Raises
    ------
    DisconnectedGraphError
        For a graph in pieces, whose vectors are one basis of its null space among many. An edge that is zero to
        rounding joins nothing.
    """
    joined = kernel > np.finfo(np.float64).eps
    n_pieces, labels = scipy.sparse.csgraph.connected_components(joined, directed=False)
    if n_pieces > 1:
        smallest = int(np.bincount(labels).min())
        raise DisconnectedGraphError(
            f"the graph of {kernel.shape[0]} landmarks falls into {n_pieces} pieces, the smallest of {smallest}: "
            "raise landmark_graph.n_neighbors, or landmark_graph.sigma where that is small, or take "
            "embedding.solver=refine"
        )
    return exact_eigenmaps(kernel, n_components)


def spacing(landmarks: np.ndarray) -> float:
    """Return the median distance of landmarks (L, D) to their seventh nearest, or to the last of fewer: a bandwidth."""
    n_nearest = min(SPACING_NEIGHBOR, len(landmarks) - 1)
    return float(np.sqrt(np.median(nearest_landmarks(landmarks, landmarks, n_nearest + 1)[1][:, -1])))


REACH_ROUNDING = 1e-9  # of a squared distance by products: what lies that near to the reach lies within it


class KernelSums(NamedTuple):
    """Of sampled points, sums over others: of kernel times vectors (s, d), and of the kernel (s,)."""

    images: np.ndarray
    degrees: np.ndarray


class SampledPoints(NamedTuple):
    """Points (s, D) float64 of a sample, less a `center` (D,), their reach (s,) and rows (s, d) of an embedding."""

    center: np.ndarray
    points: np.ndarray
    reach: np.ndarray
    vectors: np.ndarray


def kernel_sums(
    sampled: SampledPoints, points: np.ndarray, reach: np.ndarray, vectors: np.ndarray, sigma: float
) -> KernelSums:
    """Return the sums of sampled points over points (n, D), of which each is joined to all that either one reaches.

    Between points no farther apart than the reach of one of them the kernel is exp(-|x - y|^2 / (2 sigma^2)), else 0.
    Where all points are landmarks it is `landmark_kernel`.

    Parameters
    ----------
    reach, vectors : (n,) and (n, d) float64, of the points
    """
    others = points - sampled.center
    squares = np.einsum("ij,ij->i", sampled.points, sampled.points)[:, np.newaxis] - 2 * sampled.points @ others.T
    squares += np.einsum("ij,ij->i", others, others)
    farthest = np.maximum(np.square(sampled.reach)[:, np.newaxis], np.square(reach))
    kernel = np.exp(np.minimum(-0.5 * (squares / sigma) / sigma, 0.0))
    kernel[squares > farthest * (1 + REACH_ROUNDING)] = 0.0
    return KernelSums(kernel @ vectors, kernel.sum(axis=1))


def sampled_residual(
    sums: KernelSums, vectors: np.ndarray, eigenvalues: np.ndarray, n_points: int
) -> tuple[float, float]:
    """Return |P v - (1 - lambda) v| of the worst column v and its standard error, of the kernel W between all points.

    P = D^-1 W, D = diag(W 1), lengths are those of D^1/2 v, and |v| is one: an eigenvalue of D^-1/2 W D^-1/2 lies that
    near to 1 - lambda. Columns of zeros, which have no extension, are left out.

    Parameters
    ----------
    vectors : (s, d) rows of v of points drawn at random
    eigenvalues : (d,) lambda
    n_points : N, from which they are drawn
    """
    degrees, n_sampled = sums.degrees[:, np.newaxis], len(vectors)
    missed = degrees * np.square(sums.images / degrees - (1.0 - eigenvalues) * vectors)
    lengths = degrees * np.square(vectors)
    extended = lengths.any(axis=0)
    if not extended.any():
        return 0.0, 0.0
    missed, lengths = missed[:, extended], lengths[:, extended]
    shares = missed.sum(axis=0) / lengths.sum(axis=0)
    worst = int(np.argmax(shares))
    # Of a quotient of means, by the part of first order.
    away = (missed[:, worst] - shares[worst] * lengths[:, worst]) / lengths[:, worst].mean()
    error = np.sqrt((1.0 - n_sampled / n_points) * away.var() / max(1, n_sampled - 1))
    residual = float(np.sqrt(shares[worst]))
    return residual, float(0.5 * error / residual) if residual > 0 else 0.0


def nystrom_gains(eigenvalues: np.ndarray) -> np.ndarray:
    """Return 1 / (1 - lambda) of eigenvalues (d,) of the Laplacian; 0 from 1 on, where there is no extension."""
    gains = 1.0 - eigenvalues
    defined = gains > np.finfo(np.float64).eps
    return np.where(defined, 1.0 / np.where(defined, gains, 1.0), 0.0)
