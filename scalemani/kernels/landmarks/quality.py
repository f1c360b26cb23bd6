"""How well landmarks serve points: what a kernel loses on them, and how well-posed the weights over them are."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from scalemani.kernels.landmarks.weights import default_regularization

EXHAUSTED = 1e-10  # variance that landmarks leave each other, below which it is rounding: as for their selection


class NystromKernel(NamedTuple):
    """Landmarks (r, D) float64 whose features are independent, with the Cholesky factor (r, r), upper, of their kernel.

    The kernel is exp(-|x - x'|^2 / (2 sigma^2)).
    """

    landmarks: np.ndarray
    factor: np.ndarray
    sigma: float


def nystrom_kernel(landmarks: np.ndarray, sigma: float) -> NystromKernel:
    """Return the kernel of landmarks (L, D), factorised by pivots; those that the others determine are left out.

    References
    ----------
    Higham, Analysis of the Cholesky decomposition of a semi-definite matrix, 1990.
    """
    places = np.asarray(landmarks, dtype=np.float64)
    factor, pivots, rank, _ = lapack.dpstrf(gaussian_kernel(places, places, sigma), tol=EXHAUSTED)
    return NystromKernel(places[pivots[:rank] - 1], np.triu(factor[:rank, :rank]), sigma)


def nystrom_residuals(points: np.ndarray, kernel: NystromKernel) -> np.ndarray:
    """Return what Nystrom's formula leaves of the kernel of each point with itself: (n,) float64 in [0, 1].

    1 - k_xJ K_JJ^-1 k_Jx: 0 where the landmarks J determine the point's feature. The mean over all points is the error
    tr(K - K_XJ K_JJ^-1 K_JX) as a share of the trace.

    Parameters
    ----------
    points : (n, D) real
    kernel : of the landmarks

    References
    ----------
    [DPP] equation 1.
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
    """Return the condition numbers of the systems that give points their weights over landmarks.

    Parameters
    ----------
    points : (n, D) real
    landmarks : (L, D) real
    indices : (n, K_Z) int, the landmarks of each point
    regularization : as in `local_weights`, whose matrices G + eps tr(G)/K_Z I these are

    Returns
    -------
    (n,) float64, at least 1; NaN where a point is one of its landmarks: its weights solve no system
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
