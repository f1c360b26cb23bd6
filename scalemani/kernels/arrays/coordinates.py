"""Algebra of embeddings, (N, d) float64: sums without BLAS, so that results do not depend on its threads."""

import numpy as np

from scalemani.kernels.arrays.tiles import Mapper, row_panels, run
from scalemani.kernels.machine.compile import compiled


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


@compiled
def _combine(target: np.ndarray, factor: float, other: np.ndarray, other_factor: float) -> None:
    for n in range(target.shape[0]):
        for d in range(target.shape[1]):
            target[n, d] = factor * target[n, d] + other_factor * other[n, d]


def combine(target: np.ndarray, factor: float, other: np.ndarray, other_factor: float, over: Mapper = map) -> None:
    """Make `target` factor * target + other_factor * other, all (N, d), in one pass."""

    def panel(part: slice) -> None:
        _combine(target[part], factor, other[part], other_factor)

    run(over(panel, row_panels(len(target))))


@compiled
def _moved(positions: np.ndarray, length: float, direction: np.ndarray, out: np.ndarray, sums: np.ndarray) -> None:
    for n in range(out.shape[0]):
        for d in range(out.shape[1]):
            out[n, d] = positions[n, d] + length * direction[n, d]
            sums[d] += out[n, d]


@compiled
def _shifted(out: np.ndarray, shift: np.ndarray) -> float:
    """Subtract a shift in place; return the largest magnitude, infinite where anything is not finite."""
    largest = 0.0
    for n in range(out.shape[0]):
        for d in range(out.shape[1]):
            out[n, d] -= shift[d]
            size = abs(out[n, d])
            if not size <= largest:
                largest = size if size < np.inf else np.inf
    return largest


def moved(positions: np.ndarray, length: float, direction: np.ndarray, over: Mapper = map) -> tuple[np.ndarray, float]:
    """Return positions + length * direction about their mean, (N, d), and their largest coordinate."""
    out, parts = np.empty_like(positions), row_panels(len(positions))
    sums = np.zeros((len(parts), positions.shape[1]))

    def add(number: int) -> None:
        part = parts[number]
        _moved(positions[part], length, direction[part], out[part], sums[number])

    run(over(add, list(range(len(parts)))))
    mean = sums.sum(axis=0) / len(positions)
    return out, max(over(lambda part: _shifted(out[part], mean), parts))
