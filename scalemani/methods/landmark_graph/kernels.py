"""The landmarks' own graph: what is around landmarks, which of them are joined, and eigenmaps that points follow.

Covariances of the points around landmarks take two passes over tiles: one for the radius of each neighbourhood, one
for its moments. The Bhattacharyya distance of two landmarks is that of the Gaussians of these points: two landmarks on
neighbouring sheets may be as near as two on one sheet, these Gaussians are not. All points follow by Nystrom's formula
with the normalised kernel.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph
from scipy.spatial.distance import cdist

from scalemani.errors import DisconnectedGraphError
from scalemani.kernels.arrays.tiles import TILE_ROWS, run, slices
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.landmarks.nearest import BoundedPairs, bounded_pairs, nearest_landmarks, prepare_landmarks
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.distances import squared_row_distance
from scalemani.kernels.spectral.eigenmaps import Eigenmaps, exact_eigenmaps, graph_degrees

LANDMARKS_TOGETHER = 128  # of one task: their bounds to a tile of points take half a megabyte
ROUNDED_UP = 1.0 + 2.0**-20  # limits, beyond what float32 takes off them
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
    points: PointsByRow,
    landmarks: np.ndarray,
    neighborhood: int,
    diagonal: bool = False,
    workspace: Workspace = IN_MEMORY,
) -> LocalGeometry:
    """Return the covariances of the `neighborhood` points nearest to each landmark (L, D), distinct, around their mean.

    The search is exact: bounds by sketches skip points that cannot be among the nearest, and all others are measured.
    Points exactly as far as the last one belong too, so that no order of the points decides: the counts are m or more.
    All points are read tile by tile, twice.

    Covariances are positive definite: a thousandth of the mean variance is added to the diagonal of singular ones
    (where all points are repeated, of the mean variance of all landmarks). The bits are the same for any workspace.
    """
    (n_landmarks, width), n_near = landmarks.shape, min(neighborhood, len(points))
    listed = np.full((n_landmarks, n_near), np.inf)
    _over_pairs(lambda pairs, some: _keep_smallest(pairs, listed[some]), points, landmarks, workspace)
    reaches = listed[:, 0].copy()
    moments = _Moments(
        np.zeros(n_landmarks, dtype=np.int64),
        np.zeros((n_landmarks, width)),
        np.zeros((n_landmarks, width, 1 if diagonal else width)),
    )

    def accumulate(pairs: BoundedPairs, some: slice) -> None:
        _accumulate(pairs, reaches[some], _Moments(*(part[some] for part in moments)))

    _over_pairs(accumulate, points, landmarks, workspace)
    counts, sums, products = moments
    column = counts[:, np.newaxis]
    means = sums / column
    if diagonal:
        variances = np.maximum(products[:, :, 0] / column - means**2, 0.0)
        return _positive_definite(variances, variances, counts, np.ones(width))
    covariances = products / column[:, :, np.newaxis] - means[:, :, np.newaxis] * means[:, np.newaxis]
    return _positive_definite(covariances, np.linalg.eigvalsh(covariances), counts, np.eye(width))


class _Moments(NamedTuple):
    """Of the points around each landmark, less the landmark: counts (L,), sums (L, D), of products (L, D, D or 1)."""

    counts: np.ndarray
    sums: np.ndarray
    products: np.ndarray


def _over_pairs(
    function: Callable[[BoundedPairs, slice], None], points: PointsByRow, landmarks: np.ndarray, workspace: Workspace
) -> None:
    """Call function(pairs, some) of all tiles of points in their order, each with all groups of landmarks."""
    prepared, groups = prepare_landmarks(landmarks), slices(len(landmarks), LANDMARKS_TOGETHER)
    for tile in slices(len(points), TILE_ROWS):
        against = bounded_pairs(points[np.arange(tile.start, tile.stop)], prepared)
        run(workspace.over(lambda some, against=against: function(against(some), some), groups))


@compiled
def _keep_smallest(pairs: BoundedPairs, listed: np.ndarray) -> None:
    """Keep the smallest squared distances of each landmark in a heap, the largest first."""
    rows, landmarks, products, norms, unit = pairs
    unit /= ROUNDED_UP
    n_listed, limits = listed.shape[1], (listed[:, 0] / unit).astype(np.float32)
    for i in range(rows.shape[0]):
        if not _any_within(products, norms[i], limits, i):
            continue
        for j in range(landmarks.shape[0]):
            if products[i, j] + norms[i] > limits[j]:
                continue
            value = squared_row_distance(rows, i, landmarks, j, listed[j, 0])
            if not value < listed[j, 0]:
                continue
            place = 0
            while 2 * place + 1 < n_listed:
                child = 2 * place + 1
                if child + 1 < n_listed and listed[j, child + 1] > listed[j, child]:
                    child += 1
                if listed[j, child] <= value:
                    break
                listed[j, place] = listed[j, child]
                place = child
            listed[j, place] = value
            limits[j] = np.float32(listed[j, 0] / unit)


@compiled
def _accumulate(pairs: BoundedPairs, reaches: np.ndarray, moments: _Moments) -> None:
    """Add the moments of the points within reach: of differences, which next to a landmark lose no digits."""
    rows, landmarks, products, norms, unit = pairs
    unit /= ROUNDED_UP
    counts, sums, squares = moments
    width, full, limits = rows.shape[1], squares.shape[2] > 1, (reaches / unit).astype(np.float32)
    difference = np.empty(width)
    for i in range(rows.shape[0]):
        if not _any_within(products, norms[i], limits, i):
            continue
        for j in range(landmarks.shape[0]):
            if products[i, j] + norms[i] > limits[j]:
                continue
            if squared_row_distance(rows, i, landmarks, j, reaches[j]) > reaches[j]:
                continue
            counts[j] += 1
            for c in range(width):
                difference[c] = np.float64(rows[i, c]) - np.float64(landmarks[j, c])
                sums[j, c] += difference[c]
            for c in range(width):
                if full:
                    for d in range(width):
                        squares[j, c, d] += difference[c] * difference[d]
                else:
                    squares[j, c, 0] += difference[c] * difference[c]


@compiled
def _any_within(products: np.ndarray, norm: np.float32, limits: np.ndarray, row: int) -> bool:
    """Return whether any bound of a row is within its limit, or is no number: counts vectorise, branches do not."""
    i, count = np.uint64(row), np.int32(0)
    for j in range(np.uint64(limits.shape[0])):
        count += np.int32(not products[i, j] + norm > limits[j])
    return count > 0


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
        own = np.arange(rows.start, rows.stop)
        distances = bhattacharyya_distances(landmarks, covariances, own)
        distances[np.arange(len(own)), own] = np.inf
        return np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]

    return np.concatenate(list(workspace.over(nearest, slices(len(landmarks), ROWS_TOGETHER)))).astype(np.int64)


def _log_determinants(covariances: np.ndarray) -> np.ndarray:
    if covariances.ndim == 2:
        return np.asarray(np.log(covariances).sum(axis=1))
    return np.asarray(np.linalg.slogdet(covariances)[1])


SPACING_NEIGHBOR = 7  # as for self-tuning affinities


class LandmarkMaps(NamedTuple):
    """Eigenvalues (d,) of the Laplacian, vectors (L, d) = D^1/2 v of D^-1/2 W D^-1/2, degrees (L,), all float64."""

    eigenvalues: np.ndarray
    vectors: np.ndarray
    degrees: np.ndarray


def landmark_kernel(landmarks: np.ndarray, neighbors: np.ndarray, sigma: float) -> sp.csr_matrix:
    """Return exp(-|x_i - x_j|^2 / (2 sigma^2)) where one of two landmarks is a neighbour of the other, and for i = j.

    Parameters
    ----------
    landmarks : (L, D) real
    neighbors : (L, k) int, by whatever distance; the kernel is of Euclidean ones
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


def connected_eigenmaps(kernel: sp.csr_matrix, n_components: int, remedy: str) -> Eigenmaps:
    """Return the Laplacian eigenmaps of the landmarks' graph (L, L), the trivial one left out.

    Parameters
    ----------
    remedy : what joins a graph that is in pieces, in the words of the caller's parameters

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
            f"{remedy}"
        )
    return exact_eigenmaps(kernel, n_components)


def landmark_maps(kernel: sp.csr_matrix, n_components: int, remedy: str) -> LandmarkMaps:
    """Return the eigenmaps of the landmarks' graph (L, L), scaled for Nystrom's formula; as `connected_eigenmaps`.

    References
    ----------
    [DPP] equation 8.
    """
    found, degrees = connected_eigenmaps(kernel, n_components, remedy), graph_degrees(kernel)
    return LandmarkMaps(found.eigenvalues, np.sqrt(degrees)[:, np.newaxis] * found.embedding, degrees)


def extend_by_nystrom(points: np.ndarray, landmarks: np.ndarray, maps: LandmarkMaps, sigma: float) -> np.ndarray:
    """Return K~^T Phi Lambda^-1, the coordinates of points by the kernel that is normalised by its means.

    Lambda holds the eigenvalues 1 - lambda of the normalised kernel: with them, and the kernel of all pairs, a landmark
    gets its own coordinates, which it does not with the eigenvalues lambda of the Laplacian.

    Parameters
    ----------
    points : (n, D) real
    landmarks : (L, D) real
    sigma : of the kernel, in the unit of the points

    Returns
    -------
    (n, d) float64. Where lambda is 1 or more there is no extension and the column is zero; points beyond the reach of
    all landmarks are at the origin

    References
    ----------
    [DPP] equations 9 and 10; Bengio and others, Out-of-sample extensions for LLE, Isomap, MDS, eigenmaps, and spectral
    clustering, 2004.
    """
    kernel = np.exp(-0.5 * cdist(points / sigma, landmarks / sigma, "sqeuclidean"))
    sums = kernel.sum(axis=1)
    normalized = kernel / np.sqrt(np.where(sums > 0.0, sums, 1.0)[:, np.newaxis] * maps.degrees)
    return np.asarray((normalized @ maps.vectors) * nystrom_gains(maps.eigenvalues))


def spacing(landmarks: np.ndarray) -> float:
    """Return the median distance of landmarks (L, D) to their seventh nearest, or to the last of fewer: a bandwidth."""
    n_nearest = min(SPACING_NEIGHBOR, len(landmarks) - 1)
    return float(np.sqrt(np.median(nearest_landmarks(landmarks, landmarks, n_nearest + 1)[1][:, -1])))


def nystrom_gains(eigenvalues: np.ndarray) -> np.ndarray:
    """Return 1 / (1 - lambda) of eigenvalues (d,) of the Laplacian; 0 from 1 on, where there is no extension."""
    gains = 1.0 - eigenvalues
    defined = gains > np.finfo(np.float64).eps
    return np.where(defined, 1.0 / np.where(defined, gains, 1.0), 0.0)
