"""Sums, steps, extents and scales of embeddings (N, d), without BLAS: results do not depend on its threads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.tiles import Mapper, light_panels, run
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.machine.compile import compiled

TOGETHER = 128  # points whose coordinates are looked at side by side
MOST_AXES = 20  # that cells divide: of 21 there would be two million, however few the points

ORDINARY_EXPONENT = 128  # beyond: fourth powers come near the ends of float64, of which sums over points take a part


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
    parts = light_panels(len(target))
    run(over(lambda part: _scale_and_add(target[part], factor, other[part], other_factor), parts))


@compiled
def _moved(positions: np.ndarray, length: float, direction: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write positions + length * direction (n, d) and return their sum (d,)."""
    sums = np.zeros(out.shape[1])
    for n in range(out.shape[0]):
        for d in range(out.shape[1]):
            out[n, d] = positions[n, d] + length * direction[n, d]
            sums[d] += out[n, d]
    return sums


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
    """Return positions + length * direction, (N, d) float64, less their mean, and the largest magnitude in it.

    The magnitude is infinite where a coordinate is not finite.
    """
    out, parts = workspace.empty(positions.shape, positions.dtype), light_panels(len(positions))
    sums = workspace.over(lambda part: _moved(positions[part], length, direction[part], out[part]), parts)
    mean = np.array(list(sums)).sum(axis=0) / len(positions)
    return out, max(workspace.over(lambda part: _shifted(out[part], mean), parts))


def extremes(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest coordinate (d,) along each axis of points (N, d) float64, N > 0, d <= 4.

    Points are C-contiguous. Both are NaN along an axis with a coordinate that is not finite.
    """
    n_dims = points.shape[1]
    # NumPy takes minima of rows of many points with vector instructions, of rows of one it does not.
    whole = len(points) // TOGETHER * TOGETHER
    sets = [part for part in (points[:whole].reshape(-1, TOGETHER * n_dims), points[whole:]) if len(part)]
    ends = [np.concatenate([end(part, axis=0) for part in sets]).reshape(-1, n_dims) for end in (np.min, np.max)]
    low, high = ends[0].min(axis=0), ends[1].max(axis=0)
    spoilt = ~np.isfinite(low + high)
    low[spoilt] = high[spoilt] = np.nan
    return low, high


def bounding_box(pieces: Sequence[np.ndarray], over: Mapper = map) -> tuple[np.ndarray, np.ndarray]:
    """Return the `extremes` (d,) of points that come in pieces (n, d), n > 0."""
    ends = np.array(list(over(extremes, pieces)))
    return ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)


@compiled
def cell_sums(points: np.ndarray, side: float, weights: np.ndarray) -> np.ndarray:
    """Return the sum of the weights of all points in the cell that a point lies in: (N,) float64.

    Cells are cubes of this side, along the first `MOST_AXES` axes where there are more. There are about as many sums as
    points, on a torus: cells that lie a whole number of its circumferences apart share one.

    Parameters
    ----------
    points : (N, d) finite, float64
    weights : (N,), or (1,) where all are the same
    """
    n_points, n_dims = points.shape[0], min(points.shape[1], MOST_AXES)
    around, n_cells = 1, 1  # cells along each axis, a power of two, and in all
    while n_cells < n_points:
        around, n_cells = around * 2, n_cells << n_dims
    sums, places, many = np.zeros(n_cells), np.empty(n_points, np.int64), len(weights) > 1
    turns = 1.0 / (side * around)
    for n in range(n_points):
        place = 0
        for d in range(n_dims):
            turned = points[n, d] * turns
            place = place * around + min(int((turned - np.floor(turned)) * around), around - 1)
        places[n] = place
        sums[place] += weights[n if many else 0]
    return sums[places]


def at_unit_scale(array: Any) -> tuple[Any, int]:
    """Return an array over 2^e, and e; the array itself where its largest entry is of ordinary size."""
    entries = array.data if sp.issparse(array) else array
    exponent = int(np.frexp(float(np.max(np.abs(entries), initial=0.0)))[1])
    if abs(exponent) <= ORDINARY_EXPONENT:
        return array, 0
    scaled = np.ldexp(np.asarray(entries, np.float64), -exponent)
    return (
        sp.csr_matrix((scaled, array.indices, array.indptr), array.shape) if sp.issparse(array) else scaled
    ), exponent
