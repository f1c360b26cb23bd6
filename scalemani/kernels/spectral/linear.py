"""Principal components and discriminants of points that are combinations of landmarks.

With Z (N, L), the centred points Y (N, D) and G = Z^T Y: principal components are X = Z V with V the leading vectors of
G G^T v = lambda Z^T Z v; discriminants are X = Y M with M = G^T P, in the span of the rows of G. No matrix of N columns
is formed. Source: [LLL] 4.6.2 and 4.6.3.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from scalemani.errors import RankError
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.spectral.eigenproblem import sign_rule

RANK_TOLERANCE = 1e-12  # of the unit diagonal of Z^T Z, scaled: columns of Z closer to the span of others add rounding
ROW_SPACE_TOLERANCE = 1e-10  # of the largest singular value: directions below hold rounding, of constant features say
SCATTER_TOLERANCE = 1e-12  # of the largest eigenvalue of the scatter
LEAST_WITHIN = 1e-10  # share of a discriminant's variance within classes, from which on classes count as points


class Components(NamedTuple):
    """`eigenvalues` (d,), descending; `vectors` (L, d), coordinates of landmarks, or axes (D, d)."""

    eigenvalues: np.ndarray
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


def principal_components(gram: sp.csr_matrix, moments: np.ndarray, n_components: int) -> Components:
    """Return the leading eigenvalues of G G^T v = lambda Z^T Z v and the landmarks' scores v sqrt(lambda).

    Parameters
    ----------
    gram : (L, L) Z^T Z
    moments : (L, D) float64, G = Z^T Y of centred points
    n_components : d, at most the rank of Z

    Raises
    ------
    RankError
        Where fewer columns of Z are independent.
    """
    kept, factor = independent(gram)
    if n_components > len(kept):
        raise RankError(
            f"{n_components} components were asked of landmarks whose weights span {len(kept)} dimensions: take more "
            "landmarks or fewer components"
        )
    whitened = scipy.linalg.solve_triangular(factor, moments[kept], trans="T")
    left, singular, _ = scipy.linalg.svd(whitened, full_matrices=False)
    scores = np.zeros((moments.shape[0], n_components))
    scores[kept] = scipy.linalg.solve_triangular(factor, left[:, :n_components]) * singular[:n_components]
    return Components(singular[:n_components] ** 2, sign_rule(scores))


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
    kept = pivots[:rank] - 1
    return kept, np.triu(factor[:rank, :rank]) * scales[kept]


def whitened(matrix: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return R^-T A R^-1 (r, r), symmetric bit for bit, of symmetric A (r, r) and a triangular R of `independent`."""
    half = scipy.linalg.solve_triangular(factor, matrix, trans="T")
    both = scipy.linalg.solve_triangular(factor, half.T, trans="T")
    return np.asarray((both + both.T) / 2)


def row_space(moments: np.ndarray) -> np.ndarray:
    """Return orthonormal axes (D, r) that span the rows of G (L, D)."""
    _, singular, axes = scipy.linalg.svd(moments, full_matrices=False)
    rank = int(np.count_nonzero(singular > ROW_SPACE_TOLERANCE * singular[0])) if singular[0] > 0 else 0
    return np.ascontiguousarray(axes[:rank].T)


def discriminants(scatter: np.ndarray, means: np.ndarray, counts: np.ndarray, n_components: int) -> Components:
    """Return the directions in which classes lie farthest apart, and the share of the scatter between classes in each.

    Parameters
    ----------
    scatter : (r, r) float64, T^T T of centred rows T
    means : (C, r) float64, of the rows of each class
    counts : (C,) rows of each class
    n_components : d, below C

    Returns
    -------
    Components
        `vectors` (r, d), scaled so that the variance within classes, over N - C degrees of freedom, is one

    Raises
    ------
    RankError
        Where the rows, or the means of the classes, span fewer dimensions.
    """
    lengths, axes = scipy.linalg.eigh(scatter)
    kept = lengths > SCATTER_TOLERANCE * max(lengths[-1], 0.0)
    whitening = axes[:, kept] / np.sqrt(lengths[kept])
    between = np.sqrt(counts)[:, np.newaxis] * (means @ whitening)
    _, singular, rows = scipy.linalg.svd(between, full_matrices=False)
    if n_components > len(singular):
        raise RankError(
            f"{n_components} components were asked of points that span {len(singular)} dimensions: ask for fewer"
        )
    shares = np.minimum(singular[:n_components] ** 2, 1.0)
    within = np.maximum(1.0 - shares, LEAST_WITHIN) / (counts.sum() - len(counts))
    return Components(shares, sign_rule(whitening @ rows[:n_components].T / np.sqrt(within)))
