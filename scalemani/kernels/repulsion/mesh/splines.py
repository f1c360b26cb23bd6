"""Charges of points spread on a mesh by B-splines, and a spline on the mesh gathered at points, in 2-D and 3-D.

A mesh is described by `scale`, a tuple of d coordinates and the inverse of the step: a point x lies in the cell
floor((x - origin) inverse_step), and its patch of degree + 1 nodes along each axis starts at that node. The patch of
every point must lie inside the mesh, with as many nodes to spare at the end as `row_slack` says.
"""

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.repulsion.mesh.spline_instructions import gather_group, row_lanes, spread_group

_ALONE = (0,)
_PAIR = (0, 0)
_FOUR = (0, 0, 0, 0)
WIDEST_ROWS = 32  # bytes of a row up to which four points share a vector; two where rows are longer


def row_slack(degree: int) -> int:
    """Return how many nodes after its taps a row of a patch reads, and writes back unchanged."""
    return row_lanes(degree) - degree - 1


def taps_of(degree: int) -> tuple[int, ...]:
    """Return the tuple whose length tells the compiler the taps of a degree."""
    return (0,) * (degree + 1)


def gather_points(degree: int, dtype: np.dtype) -> tuple[int, ...]:
    """Return the tuple whose length tells the compiler how many points to gather at a time."""
    return _FOUR if row_lanes(degree) * dtype.itemsize <= WIDEST_ROWS else _PAIR


@compiled
def spread(points: np.ndarray, charges: np.ndarray, unit: float, scale: tuple, taps: tuple, mesh: np.ndarray) -> None:
    """Add the charges of points to a mesh, in row order.

    Parameters
    ----------
    points : (n, d) float64, C-contiguous
    charges : (n,) float64, or (1,) for all alike
    unit : what a charge is multiplied by before it is rounded to the dtype of the mesh
    scale : d coordinates of the origin, and 1 / h of the step h
    taps : `taps_of(degree)`
    mesh : d axes of nodes, float32 or float64; it changes
    """
    n_points, each = points.shape[0], 1 if charges.size == points.shape[0] else 0
    place, row, nodes = points.ctypes.data, points.strides[0], mesh.ctypes.data
    strides = mesh.strides[:-1]
    whole = n_points - n_points % len(_FOUR)
    for n in range(0, whole, len(_FOUR)):
        amounts = (
            mesh.dtype.type(unit * charges[n * each]),
            mesh.dtype.type(unit * charges[(n + 1) * each]),
            mesh.dtype.type(unit * charges[(n + 2) * each]),
            mesh.dtype.type(unit * charges[(n + 3) * each]),
        )
        spread_group(taps, _FOUR, place + n * row, scale, nodes, strides, amounts)
    for n in range(whole, n_points):
        alone = (mesh.dtype.type(unit * charges[n * each]),)
        spread_group(taps, _ALONE, place + n * row, scale, nodes, strides, alone)


@compiled
def gather(
    points: np.ndarray,
    scale: tuple,
    amounts: tuple,
    taps: tuple,
    group: tuple,
    mesh: np.ndarray,
    out: tuple,
) -> None:
    """Write unit * spline + constant at points, and unit times the gradient of the spline.

    Parameters
    ----------
    points : (n, d) float64, C-contiguous
    scale, taps : those of `spread`
    amounts : (unit, constant)
    group : `gather_points(degree, dtype)`
    mesh : d axes of nodes, float32 or float64: the coefficients of the spline
    out : values (n,) and gradients (n, d), float64 and C-contiguous; written
    """
    element, strides, nodes = mesh.dtype.type(0), mesh.strides[:-1], mesh.ctypes.data
    place, values, gradients = points.ctypes.data, out[0].ctypes.data, out[1].ctypes.data
    row, value = points.strides[0], out[0].strides[0]
    whole = points.shape[0] - points.shape[0] % len(group)
    for n in range(0, whole, len(group)):
        at = (values + n * value, gradients + n * row)
        gather_group(taps, group, place + n * row, scale, amounts, nodes, strides, at, element)
    for n in range(whole, points.shape[0]):
        at = (values + n * value, gradients + n * row)
        gather_group(taps, _ALONE, place + n * row, scale, amounts, nodes, strides, at, element)


@compiled
def bounds(points: np.ndarray) -> np.ndarray:
    """Return the least and greatest coordinates along each axis, (2, d); NaN where `points` (n, d) are not finite.

    Even and odd rows are kept apart, so that comparisons do not wait for each other.
    """
    extremes = np.empty((2, points.shape[1]))
    n_pairs = np.uint64(points.shape[0] // 2)
    for axis in range(np.uint64(points.shape[1])):
        low = high = other_low = other_high = points[points.shape[0] - 1, axis]
        finite = low - low == 0.0
        for pair in range(n_pairs):
            value, other = points[np.uint64(2) * pair, axis], points[np.uint64(2) * pair + np.uint64(1), axis]
            low, high = min(low, value), max(high, value)
            other_low, other_high = min(other_low, other), max(other_high, other)
            finite &= (value - value == 0.0) & (other - other == 0.0)
        extremes[0, axis] = min(low, other_low) if finite else np.nan
        extremes[1, axis] = max(high, other_high) if finite else np.nan
    return extremes
