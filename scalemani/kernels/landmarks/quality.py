"""How well landmarks serve points: how near they are, what a kernel loses on them, how well-posed weights are."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.nearest import PreparedLandmarks, nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.selection import random_landmarks
from scalemani.kernels.landmarks.weights import default_regularization
from scalemani.kernels.neighbors.isolation import AROUND, Gaps, gaps_of, n_around, ratios_to, spacings_of, usual_ratio
from scalemani.kernels.rows.compressed import PointsByRow

EXHAUSTED = 1e-10  # variance that landmarks leave each other, below which it is rounding: as for their selection

SAMPLED_POINTS = 2048  # by which it is known how far points lie from their nearest landmark


# The sum of the kernels of L random points at one of them. On rolls, lines, Gaussians and digits the mean distance to
# the nearest landmark is then within three hundredths of the best over sigma, and more than a tenth of proposals is
# taken.
KERNELS_AT_A_POINT = 2.0
SIGMA_QUERIES = 100  # points at which kernels are added up


def sampled_spacings(points: PointsByRow, landmarks: np.ndarray, seed: int) -> np.ndarray:
    """Return the spacings (L,) of landmarks (L, D), by a random sample of N points."""
    if len(points) > SAMPLED_POINTS:
        rows = np.unique(generator(seed, "landmarks/usual").integers(0, len(points), SAMPLED_POINTS))
    else:
        rows = np.arange(len(points))
    return landmark_spacings(points[rows], landmarks)


def landmark_spacings(points: np.ndarray, landmarks: np.ndarray) -> np.ndarray:
    """Return how far points around each landmark (L,) usually lie from landmarks, by a sample (n, D) of them.

    The nearest landmarks of one that is a landmark are others: they are what a point that is left out would have. Such
    points count, as rules that spread landmarks choose those that lie apart.
    """
    prepared, n_landmarks = prepare_landmarks(landmarks), len(landmarks)
    gaps, n_near = landmark_gaps(prepared), n_around(n_landmarks - 1)
    ratios = np.empty(len(points))
    for some in slices(len(points), TILE_ROWS):
        indices, squares = nearest_landmarks(points[some], prepared, min(n_near + 1, n_landmarks))
        distances, itself = np.sqrt(squares), squares[:, :1] == 0
        others, lengths = indices[:, -n_near:], distances[:, -n_near:]
        around = np.where(itself, gaps.left_out(others, lengths), gaps.lengths[indices[:, :n_near]])
        ratios[some] = ratios_to(np.where(itself, lengths, distances[:, :n_near]), around)
    return spacings_of(gaps, usual_ratio(ratios))


def landmark_gaps(prepared: PreparedLandmarks) -> Gaps:
    """Return the gaps of landmarks (L, D) among each other; of a single one, one."""
    landmarks, n_landmarks = prepared.landmarks, len(prepared.landmarks)
    if n_landmarks == 1:
        return Gaps(np.ones(1), np.ones(1))
    width = min(AROUND + 2, n_landmarks)
    parts = [nearest_landmarks(landmarks[some], prepared, width)[1] for some in slices(n_landmarks, TILE_ROWS)]
    return gaps_of(np.sqrt(np.concatenate(parts))[:, 1:])  # the first is the landmark itself, or a copy


def isolation(points: np.ndarray, prepared: PreparedLandmarks, spacings: np.ndarray) -> np.ndarray:
    """Return how far points (n, D) lie from the landmarks nearest to them, by their spacings (L,): (n,) float64."""
    return isolation_among(*nearest_landmarks(points, prepared, n_around(len(spacings) - 1)), spacings)


def isolation_among(indices: np.ndarray, squares: np.ndarray, spacings: np.ndarray) -> np.ndarray:
    """Return what `isolation` does, of points whose nearest landmarks (n, >= k) are known, with squared distances."""
    near = slice(n_around(len(spacings) - 1))
    return ratios_to(np.sqrt(squares[:, near]), spacings[indices[:, near]])


class NystromKernel(NamedTuple):
    """Landmarks (r, D) float64 whose features are independent, with the Cholesky factor (r, r), upper, of their kernel.

    The kernel is exp(-|x - x'|^2 / (2 sigma^2)).
    """

    landmarks: np.ndarray
    factor: np.ndarray
    sigma: float


def nystrom_kernel(landmarks: np.ndarray, sigma: float) -> NystromKernel:
    """Return the kernel of landmarks (L, D), factorised by pivots; those that the others determine are left out.

    Source: Higham, Analysis of the Cholesky decomposition of a semi-definite matrix, 1990.
    """
    places = np.asarray(landmarks, dtype=np.float64)
    factor, pivots, rank, _ = lapack.dpstrf(gaussian_kernel(places, places, sigma), tol=EXHAUSTED)
    return NystromKernel(places[pivots[:rank] - 1], np.triu(factor[:rank, :rank]), sigma)


def nystrom_residuals(points: np.ndarray, kernel: NystromKernel) -> np.ndarray:
    """Return what Nystrom's formula leaves of the kernel of each point (n, D) with itself: (n,) float64 in [0, 1].

    1 - k_xJ K_JJ^-1 k_Jx: 0 where the landmarks J determine the point's feature. The mean over all points is the error
    tr(K - K_XJ K_JJ^-1 K_JX) as a share of the trace. Source: [DPP] equation 1.
    """
    crossed = gaussian_kernel(kernel.landmarks, np.asarray(points, dtype=np.float64), kernel.sigma)
    explained = solve_triangular(kernel.factor, crossed, trans="T", overwrite_b=True, check_finite=False)
    return np.clip(1.0 - np.einsum("rn,rn->n", explained, explained), 0.0, 1.0)


def gaussian_kernel(points: np.ndarray, others: np.ndarray, sigma: float) -> np.ndarray:
    """Return exp(-|x - x'|^2 / (2 sigma^2)) of points (n, D) and others (m, D), float64: (n, m)."""
    center = others.mean(axis=0)  # next to it products lose no digits to where the points lie
    one, other = (points - center) / sigma, (others - center) / sigma
    kernel = one @ other.T
    kernel -= 0.5 * np.einsum("ij,ij->i", one, one)[:, np.newaxis]
    kernel -= 0.5 * np.einsum("ij,ij->i", other, other)
    return np.exp(np.minimum(kernel, 0.0, out=kernel), out=kernel)


def local_conditions(
    points: np.ndarray, landmarks: np.ndarray, indices: np.ndarray, regularization: float | None = None
) -> np.ndarray:
    """Return the condition numbers (n,) of the systems that give points (n, D) their weights over landmarks (L, D).

    `indices` (n, K_Z) are the landmarks of each point; the matrices are those of `local_weights`, G + eps tr(G)/K_Z I.
    NaN where a point is one of its landmarks: its weights solve no system.
    """
    n_neighbors, n_columns = indices.shape[1], points.shape[1]
    eps = default_regularization(n_neighbors, n_columns) if regularization is None else regularization
    conditions = np.empty(len(points))
    for number, (point, nearest) in enumerate(zip(points, indices, strict=True)):
        differences = landmarks[nearest].astype(np.float64) - point
        if not differences.any(axis=1).all():
            conditions[number] = np.nan
            continue
        # Of the products of differences, eigenvalues are the squares of singular values, which keep their digits.
        values = np.zeros(n_neighbors)
        singular = np.linalg.svd(differences / np.abs(differences).max(), compute_uv=False)
        values[: len(singular)] = np.square(singular)
        added = eps * values.sum() / n_neighbors
        conditions[number] = (values[0] + added) / (values[-1] + added)
    return conditions


def spacing_sigma(points: PointsByRow, n_landmarks: int, seed: int) -> float:
    """Return the sigma at which Gaussian kernels of L random points add up to two at one of them, without its kernel.

    Few points cannot add up to that: the sum is then half of what it is at most, (L - 1) / 2.

    Parameters
    ----------
    points : N points, of which L with distinct coordinates are read
    n_landmarks : L

    Raises
    ------
    DataError
        For fewer distinct points than landmarks.
    """
    from scipy.spatial.distance import cdist  # 0.2 s, which readers of coverages do not wait for

    rows = random_landmarks(points, n_landmarks, seed, "sigma")
    if n_landmarks == 1:
        return 1.0  # a single landmark repels none that follows
    some = points[rows]
    queries = some[np.linspace(0, len(rows) - 1, min(len(rows), SIGMA_QUERIES)).astype(np.int64)]
    tiles = slices(len(rows), TILE_ROWS)
    squares = np.concatenate([cdist(queries, some[tile], "sqeuclidean") for tile in tiles], 1)
    unit = float(np.sqrt(squares.max()))
    squares /= unit**2
    wanted = 1.0 + min(KERNELS_AT_A_POINT, 0.5 * (n_landmarks - 1))
    low, high = np.log(np.finfo(np.float64).eps), np.log(1.0 / np.finfo(np.float64).eps)
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        above = np.exp(-0.5 * squares * np.exp(-2 * middle)).sum(axis=1).mean() > wanted
        low, high = (low, middle) if above else (middle, high)
    return float(unit * np.exp(low))
