"""Moments of points that are combinations of landmarks, and the columns of Z that are independent.

With Z (N, L), the centred points Y (N, D) and G = Z^T Y, components and discriminants are those of problems over the
landmarks. No matrix of N columns is formed. Source: [LLL] 4.6.2 and 4.6.3.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.errors import RankError
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.spectral.eigenproblem import sign_rule

RANK_TOLERANCE = 1e-12  # of the unit diagonal of Z^T Z, scaled: columns of Z closer to the span of others add rounding

LEAST_SHARE = 1e-10  # of the largest eigenvalue: what is below is rounding, and no component


class Components(NamedTuple):
    """`eigenvalues` (d,), descending; `vectors` (L, d), coordinates of landmarks, or axes (D, d)."""

    eigenvalues: np.ndarray
    vectors: np.ndarray


class RitzPairs(NamedTuple):
    """Leading Ritz pairs in the span of Z: `values` (m,); `vectors` (L, m), whose combinations Z v have unit length."""

    values: np.ndarray
    vectors: np.ndarray


@compiled
def add_moments(
    points: np.ndarray,
    center: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    moments: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Add the part of some rows to Z^T (Y - center) and Z^T 1, in place.

    Parameters
    ----------
    points : (n, D) real, rows of Y
    center : (D,) float64
    indices, values : (n, K_Z) int and float64, rows of Z
    moments, weights : (L, D) and (L,) float64
    """
    difference = np.empty(points.shape[1])
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            difference[j] = np.float64(points[i, j]) - center[j]
        for k in range(indices.shape[1]):
            landmark, value = indices[i, k], values[i, k]
            weights[landmark] += value
            row = moments[landmark]
            for j in range(points.shape[1]):
                row[j] += value * difference[j]


def independent(gram: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of Z (r,) that span all of them, and the upper triangular R (r, r) with R^T R their Gram matrix.

    A pivoted Cholesky factorisation of Z^T Z with its diagonal scaled to one stops where nothing is left but rounding.
    """
    dense = gram.toarray(order="F")
    lengths = np.sqrt(np.diag(dense))
    scales = np.where(lengths > 0, lengths, 1.0)
    dense /= scales
    dense /= scales[:, np.newaxis]
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(dense, tol=RANK_TOLERANCE, lower=0, overwrite_a=1)
    chosen = pivots[:rank] - 1
    return chosen, np.triu(factor[:rank, :rank]) * scales[chosen]


def whitened(matrix: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return R^-T A R^-1 (r, r), symmetric bit for bit, of symmetric A (r, r) and a triangular R of `independent`."""
    half = scipy.linalg.solve_triangular(factor, matrix, trans="T")
    both = scipy.linalg.solve_triangular(factor, half.T, trans="T")
    return (both + both.T) / 2


def centered_products(kernel: np.ndarray, gram: sp.csr_matrix) -> np.ndarray:
    """Return Z^T J K J Z (L, L) of Z^T K Z, J = I - 1 1^T / N, without a matrix of N rows: rows of Z sum to one.

    Parameters
    ----------
    kernel : (L, L) float64, Z^T K Z
    gram : (L, L), Z^T Z
    """
    weights = np.asarray(gram.sum(axis=1)).ravel()  # Z^T 1
    sums = kernel.sum(axis=1)  # Z^T K 1
    n_points = weights.sum()
    shift = np.outer(weights, sums - 0.5 * sums.sum() / n_points * weights) / n_points
    centered: np.ndarray = kernel - shift - shift.T
    return centered


def kernel_components(
    kernel: np.ndarray, gram: sp.csr_matrix, n_components: int, n_following: int = 0
) -> tuple[Components, RitzPairs, float]:
    """Return the leading eigenpairs of A v = lambda Z^T Z v as scores v sqrt(lambda), and the least eigenvalue.

    Parameters
    ----------
    kernel : (L, L) float64, A, the reduced centred kernel
    gram : (L, L), Z^T Z
    n_following : how many pairs beyond these are returned with them as pairs of J K J, fewer where there are fewer

    Raises
    ------
    RankError
        Where fewer eigenvalues are above zero.
    """
    spanning, factor = independent(gram)
    values, vectors = scipy.linalg.eigh(whitened(kernel[np.ix_(spanning, spanning)], factor))
    positive = int(np.count_nonzero(values > LEAST_SHARE * max(values[-1], 0.0)))
    if n_components > positive:
        raise RankError(
            f"{n_components} components were requested of a kernel that has {positive} eigenvalues above zero on these "
            "landmarks: ask for fewer, or take more landmarks or another kernel, as by affinities.sigma"
        )
    leading = slice(min(n_components + n_following, len(values)))
    unit = np.zeros((len(kernel), leading.stop))
    unit[spanning] = scipy.linalg.solve_triangular(factor, vectors[:, ::-1][:, leading])
    pairs = RitzPairs(values[::-1][leading].copy(), sign_rule(unit))
    leading_values = pairs.values[:n_components]
    return (
        Components(leading_values, pairs.vectors[:, :n_components] * np.sqrt(leading_values)),
        pairs,
        float(values[0]),
    )
