"""Algebra of embeddings, (N, d) float64: sums without BLAS, so that results do not depend on its threads."""

import numpy as np

from scalemani.kernels.compile import compiled


def dot(left: np.ndarray, right: np.ndarray) -> float:
    """Return the sum of products of two arrays of one shape."""
    return float(np.einsum("nd,nd->", left, right))


def norm(values: np.ndarray) -> float:
    """Return the Euclidean length of all entries of an array (N, d)."""
    return float(np.sqrt(dot(values, values)))


@compiled
def add_multiple(target: np.ndarray, factor: float, other: np.ndarray) -> None:
    """Add factor times `other` to `target` in place, both (N, d), without a temporary."""
    for n in range(target.shape[0]):
        for d in range(target.shape[1]):
            target[n, d] += factor * other[n, d]
