"""Symmetric problems A v = lambda B v of landmarks: whether vectors solve one, and whether no better ones do."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import scipy.linalg

from scalemani.audit.findings import Finding, at_most

COPIES_OF_PROBLEM = 8  # both matrices, scaled, eigenvectors, whitened, and what LAPACK works in
EPS = float(np.finfo(np.float64).eps)
# Eigenvalues of B, scaled to a unit diagonal, from which on its vectors are looked at: a run that looks at more finds
# eigenvalues that are no less extreme.
DEPENDENT = 1e-9
SAME = 1e-6
ROUNDINGS = 1000  # of a product, in what is computed with matrices


class Pencil:
    """A and B, symmetric (L, L), B positive semidefinite.

    Leading eigenvalues are the largest; with a `known` vector (L,), of no interest itself, they are the smallest.
    """

    def __init__(self, matrix: np.ndarray, masses: np.ndarray, known: np.ndarray | None = None) -> None:
        self.matrix, self.masses, self.known = matrix, masses, known

    @cached_property
    def span(self) -> np.ndarray:
        """Vectors (L, r) with V^T B V = I that span what B does not take for zero, without the known one."""
        diagonal = np.diag(self.masses)
        scales = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
        lengths, axes = scipy.linalg.eigh(self.masses * np.outer(scales, scales))
        independent = lengths > DEPENDENT * max(lengths[-1], 1e-300)
        vectors = scales[:, np.newaxis] * axes[:, independent] / np.sqrt(lengths[independent])
        if self.known is not None:
            components = vectors.T @ (self.masses @ self.known)
            vectors = vectors @ scipy.linalg.qr(components[:, np.newaxis])[0][:, 1:]
        return np.asarray(vectors)

    @cached_property
    def whitened(self) -> np.ndarray:
        """V^T A V (r, r)."""
        product = self.span.T @ self.matrix @ self.span
        return np.asarray((product + product.T) / 2)

    @cached_property
    def norm(self) -> float:
        """A bound of the eigenvalues, in absolute value: the largest row sum of magnitudes of V^T A V."""
        return float(np.abs(self.whitened).sum(axis=1).max(initial=0.0))

    def leading(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return so many leading eigenvalues (m,) and B-orthonormal vectors (L, m), fewer where there are fewer."""
        width = len(self.whitened)
        count = min(count, width)
        ends = [width - count, width - 1] if self.known is None else [0, count - 1]
        values, vectors = scipy.linalg.eigh(self.whitened, subset_by_index=ends)
        if self.known is None:
            values, vectors = values[::-1], vectors[:, ::-1]
        return values, self.span @ vectors

    @cached_property
    def least(self) -> float:
        """The least eigenvalue of V^T A V."""
        return float(scipy.linalg.eigvalsh(self.whitened, subset_by_index=[0, 0])[0])


def check_solution(stage: str, pencil: Pencil, values: np.ndarray, vectors: np.ndarray) -> Iterator[Finding]:
    """Check that vectors (L, m) are B-orthonormal and solve the problem."""
    weighed = pencil.masses @ vectors
    off = float(np.abs(vectors.T @ weighed - np.eye(len(values))).max())
    slack = SAME + 100 * EPS * float(np.square(vectors).sum(axis=0).max() * np.diag(pencil.masses).max())
    yield at_most(
        stage, "landmarks' vectors are orthonormal", 0.0, off, slack, "v B v of their problem A v = lambda B v"
    )
    missed = solution_missed(pencil, values, vectors)
    slack = SAME * float(np.abs(values).max()) + ROUNDINGS * EPS * pencil.norm
    note = "|A v - lambda B v| in the norm of the inverse of B"
    yield at_most(stage, "landmarks' vectors solve their problem", 0.0, missed, slack, note)


def solution_missed(pencil: Pencil, values: np.ndarray, vectors: np.ndarray) -> float:
    """Return |A v - lambda B v| of the worst vector (L, m), in the norm of the inverse of B."""
    missed = pencil.span.T @ (pencil.matrix @ vectors - (pencil.masses @ vectors) * values)
    scale = np.abs(missed).max(initial=0.0) or 1.0  # squares may leave float64
    return float(scale * np.linalg.norm(missed / scale, axis=0).max())


def check_leading(stage: str, pencil: Pencil, values: np.ndarray) -> Finding:
    """Check that no vectors have eigenvalues that are larger, or smaller where these are leading."""
    leading = pencil.leading(len(values))[0]
    values, largest = values[: len(leading)], pencil.known is None
    beyond = leading - values if largest else values - leading
    slack = SAME * float(np.abs(leading).max(initial=0.0)) + ROUNDINGS * EPS * pencil.norm
    note = "by how much those of the landmarks' problem, solved anew, are beyond"
    claim = f"eigenvalues are the {'largest' if largest else 'smallest'}"
    return at_most(stage, claim, 0.0, float(beyond.max(initial=0.0)), slack, note)
