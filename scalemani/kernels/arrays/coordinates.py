"""Sums, steps and extents of embeddings (N, d) float64, without BLAS: results do not depend on its threads."""

import numpy as np

from scalemani.kernels.arrays.tiles import Mapper, light_panels, run
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.machine.compile import compiled

LANES = 24  # a multiple of 1, 2, 3 and 4 coordinates, and of the lanes of every vector register


def dot(left: np.ndarray, right: np.ndarray) -> float:
    """Return the sum of products of two arrays (N, d) of one shape, in their dtype's precision."""
    return float(np.einsum("nd,nd->", left, right))


def norm(values: np.ndarray) -> float:
    """Return the Euclidean length of all entries of an array (N, d)."""
    return float(np.sqrt(dot(values, values)))


@compiled
def add_multiple(target: np.ndarray, factor: float, other: np.ndarray) -> None:
    """Add factor times `other` to `target` in place, both (N, d) float64, without a temporary."""
    for n in range(target.shape[0]):
        for d in range(target.shape[1]):
            target[n, d] += factor * other[n, d]


@compiled
def _scale_and_add(target: np.ndarray, factor: float, other: np.ndarray, other_factor: float) -> None:
    for n in range(target.shape[0]):
        for d in range(target.shape[1]):
            target[n, d] = factor * target[n, d] + other_factor * other[n, d]


def scale_and_add(
    target: np.ndarray, factor: float, other: np.ndarray, other_factor: float, over: Mapper = map
) -> None:
    """Make `target` factor * target + other_factor * other in place, both (N, d) float64, in one pass."""

    def panel(part: slice) -> None:
        _scale_and_add(target[part], factor, other[part], other_factor)

    run(over(panel, light_panels(len(target))))


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


def moved(
    positions: np.ndarray, length: float, direction: np.ndarray, workspace: Workspace = IN_MEMORY
) -> tuple[np.ndarray, float]:
    """Take a step and move the mean to the origin.

    Parameters
    ----------
    positions, direction : (N, d) float64
    length : of the step, a factor on `direction`

    Returns
    -------
    moved : (N, d) float64, positions + length * direction less their mean
    largest : the largest magnitude of a coordinate, infinite where one is not finite
    """
    out, parts = workspace.empty(positions.shape, positions.dtype), light_panels(len(positions))
    sums = np.zeros((len(parts), positions.shape[1]))

    def add(number: int) -> None:
        part = parts[number]
        _moved(positions[part], length, direction[part], out[part], sums[number])

    run(workspace.over(add, list(range(len(parts)))))
    mean = sums.sum(axis=0) / len(positions)
    return out, max(workspace.over(lambda part: _shifted(out[part], mean), parts))


@compiled
def extremes(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest coordinate along each axis.

    Lanes hold a whole number of points, so that the loop over them becomes vector code.

    Parameters
    ----------
    points : (N, d) float64, C-contiguous, N > 0, d <= 4

    Returns
    -------
    least, greatest : (d,) float64, NaN along an axis with a coordinate that is not finite
    """
    n_dims, flat = points.shape[1], points.reshape(points.size)
    low, high, spoilt = np.empty(LANES), np.empty(LANES), np.zeros(LANES)
    for lane in range(LANES):
        low[lane] = high[lane] = flat[lane % n_dims]
    for first in range(np.uint64(0), np.uint64(len(flat) // LANES), np.uint64(1)):
        at = first * np.uint64(LANES)
        for lane in range(np.uint64(LANES)):
            x = flat[at + lane]
            low[lane] = x if x < low[lane] else low[lane]
            high[lane] = x if x > high[lane] else high[lane]
            spoilt[lane] += x - x  # zero for a finite number, else NaN
    for i in range(len(flat) // LANES * LANES, len(flat)):
        lane = i % n_dims
        low[lane], high[lane] = min(low[lane], flat[i]), max(high[lane], flat[i])
        spoilt[lane] += flat[i] - flat[i]
    for lane in range(n_dims, LANES):
        axis = lane % n_dims
        low[axis], high[axis] = min(low[axis], low[lane]), max(high[axis], high[lane])
        spoilt[axis] += spoilt[lane]
    for axis in range(n_dims):
        if spoilt[axis] != 0.0:
            low[axis] = high[axis] = np.nan
    return low[:n_dims].copy(), high[:n_dims].copy()
