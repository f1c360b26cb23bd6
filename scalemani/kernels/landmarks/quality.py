"""How well landmarks serve points: how near they are, what a kernel loses on them, how well-posed weights are."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.nearest import nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.selection import random_landmarks
from scalemani.kernels.landmarks.weights import default_regularization
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.distances import comparable, squared_row_distance

EXHAUSTED = 1e-10  # variance that landmarks leave each other, below which it is rounding: as for their selection

SAMPLED_POINTS = 1024  # by which it is known how far points lie out, and from their nearest landmark
USUAL = 0.98  # share of these that decides: a few outliers do not
WIDE = 2.0  # times the usual distance, from which on a point lies in no gap of the landmarks but off the data


# The sum of the kernels of L random points at one of them. On rolls, lines, Gaussians and digits the mean distance to
# the nearest landmark is then within three hundredths of the best over sigma, and more than a tenth of proposals is
# taken.
KERNELS_AT_A_POINT = 2.0
SIGMA_QUERIES = 100  # points at which kernels are added up


class Coverage(NamedTuple):
    """How far nearly all points lie from their nearest landmark, and, as `radius`, from the center (D,) of the points.

    The nearest landmark of one that is a landmark is another one: it is what a point that is left out would have.
    """

    spacing: float
    center: np.ndarray
    radius: float


def sampled_coverage(points: PointsByRow, landmarks: np.ndarray, seed: int) -> Coverage:
    """Return the coverage of a random sample of N points by landmarks (L, D)."""
    if len(points) > SAMPLED_POINTS:
        rows = np.unique(generator(seed, "landmarks/usual").integers(0, len(points), SAMPLED_POINTS))
    else:
        rows = np.arange(len(points))
    return coverage(points[rows], landmarks)


def coverage(points: np.ndarray, landmarks: np.ndarray) -> Coverage:
    """Return the coverage of points (n, D) by landmarks (L, D): quantiles, which few outliers hardly move."""
    center, prepared = np.median(points, axis=0).astype(np.float64), prepare_landmarks(landmarks)
    near, out = np.empty(len(points)), np.empty(len(points))
    for some in slices(len(points), TILE_ROWS):
        squares = nearest_landmarks(points[some], prepared, min(2, len(landmarks)))[1]
        near[some] = np.sqrt(np.where(squares[:, 0] > 0, squares[:, 0], squares[:, -1]))
        out[some] = np.linalg.norm(points[some] - center, axis=1)
    return Coverage(usual(near), center, float(np.quantile(out, USUAL, method="lower")))


def usual(distances: np.ndarray) -> float:
    """Return what `USUAL` of the distances that are not zero do not exceed; infinite where all are zero."""
    apart = distances[distances > 0]
    return float(np.quantile(apart, USUAL, method="lower")) if len(apart) else np.inf


def far_from_landmarks(points: np.ndarray, landmarks: np.ndarray, distance: float) -> np.ndarray:
    """Return the rows (m,) of points (n, D) that are farther than a distance from every landmark (L, D).

    Most points are near to several landmarks, so that few of them are looked at: much less than what it takes to find
    the nearest one.
    """
    rows, columns = comparable(points, landmarks)
    near = np.zeros(len(rows), np.bool_)
    _mark_near(rows, columns, distance**2, near)
    return np.flatnonzero(~near)


@compiled
def _mark_near(rows: np.ndarray, landmarks: np.ndarray, square: float, near: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        for j in range(landmarks.shape[0]):
            if squared_row_distance(rows, i, landmarks, j, square) <= square:
                near[i] = True
                break


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
    """Return the sigma at which Gaussian kernels of L random points add up to two at one of them, its own left out.

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
