"""Discriminants X = Y M of centred points Y, M = G^T P in the span of the rows of G = Z^T Y. Source: [LLL] 4.6.3."""

import numpy as np
import scipy.linalg

from scalemani.errors import RankError
from scalemani.kernels.spectral.eigenproblem import sign_rule
from scalemani.kernels.spectral.linear import Components

ROW_SPACE_TOLERANCE = 1e-10  # of the largest singular value: directions below hold rounding, of constant features say
SCATTER_TOLERANCE = 1e-12  # of the largest eigenvalue of the scatter
LEAST_WITHIN = 1e-10  # share of a discriminant's variance within classes, from which on classes count as points


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
