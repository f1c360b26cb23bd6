"""Discriminants X = Y M of centred points Y, M = G^T P in the span of the rows of G = Z^T Y. Source: [LLL] 4.6.3."""

from typing import NamedTuple

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


class ScatterProblem(NamedTuple):
    """Discriminants of S_b w = lambda S_t w as computed, and what the sums over all points say of them.

    `shares` (d,) lambda; `axes` (D, d) w; `images` (D, d), S_t w; `means` (C, D) of centred classes; `counts` (C,)
    their points.
    """

    shares: np.ndarray
    axes: np.ndarray
    images: np.ndarray
    means: np.ndarray
    counts: np.ndarray

    @property
    def missed(self) -> np.ndarray:
        """S_b w - lambda S_t w: (D, d)."""
        return self.means.T @ (self.counts[:, np.newaxis] * (self.means @ self.axes)) - self.images * self.shares

    def backward_error(self) -> float:
        """Return |S_b w - lambda S_t w| / ((|S_b| + lambda |S_t|) |w|) of the worst direction, in spectral norms.

        It is by how much, as a share, the scatter matrices have to change for w and lambda to be exact. |S_t| is taken
        from below. Source: Higham and Higham, Structured backward error and condition of generalized eigenvalue
        problems, 1998.
        """
        lengths = np.linalg.norm(self.axes, axis=0)
        between = float(np.linalg.norm(np.sqrt(self.counts)[:, np.newaxis] * self.means, 2)) ** 2
        total = max(between, float((np.linalg.norm(self.images, axis=0) / lengths).max()))
        return float((np.linalg.norm(self.missed, axis=0) / (between + self.shares * total) / lengths).max())

    def share_error(self, span: np.ndarray, scatter: np.ndarray, spans_all: bool) -> float:
        """Return a bound of how far any share is from an exact one.

        With x the unit vector of the points' coordinates along w and P the projection on classes, P x - lambda x has
        the length sqrt(lambda (1 - lambda)), and an exact share lies within it. Nor is any share above one. Where the
        `span` (D, r) holds all points, whose `scatter` (r, r) in it is all there is, the residual itself is known in
        the norm of the inverse of S_t.
        """
        if not spans_all:
            return float(np.minimum(1.0 - self.shares, np.sqrt(self.shares * (1.0 - self.shares))).max())
        lengths, axes = scipy.linalg.eigh(scatter)
        spanning = lengths > SCATTER_TOLERANCE * max(lengths[-1], 0.0)
        left = (axes[:, spanning] / np.sqrt(lengths[spanning])).T @ (span.T @ self.missed)
        return float((np.linalg.norm(left, axis=0) / np.sqrt(np.einsum("ij,ij->j", self.axes, self.images))).max())


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
    spanning = lengths > SCATTER_TOLERANCE * max(lengths[-1], 0.0)
    whitening = axes[:, spanning] / np.sqrt(lengths[spanning])
    between = np.sqrt(counts)[:, np.newaxis] * (means @ whitening)
    _, singular, rows = scipy.linalg.svd(between, full_matrices=False)
    if n_components > len(singular):
        raise RankError(
            f"{n_components} components were requested of points that span {len(singular)} dimensions: ask for fewer"
        )
    shares = np.minimum(singular[:n_components] ** 2, 1.0)
    within = np.maximum(1.0 - shares, LEAST_WITHIN) / (counts.sum() - len(counts))
    return Components(shares, sign_rule(whitening @ rows[:n_components].T / np.sqrt(within)))
