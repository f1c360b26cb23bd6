"""Moments of points that are combinations of landmarks, and the columns of Z that are independent.

With Z (N, L), the centred points Y (N, D) and G = Z^T Y, components and discriminants are those of problems over the
landmarks. No matrix of N columns is formed. Source: [LLL] 4.6.2 and 4.6.3.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.kernels.machine.compile import compiled

RANK_TOLERANCE = 1e-12  # of the unit diagonal of Z^T Z, scaled: columns of Z closer to the span of others add rounding


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
