"""Twins in NumPy of the instructions that spread and gather by B-splines: one point after another, whole patches."""

from functools import reduce
from typing import Any

import numpy as np

from scalemani.kernels.machine.plain import numbers_at


def spline_weights(degree: int, fraction: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of a patch's taps along one axis, and their derivatives.

    Parameters
    ----------
    degree : int
        Of the spline, 1 or more.
    fraction : float
        Of a step, from the cell that a point lies in; 0 <= fraction < 1.

    Returns
    -------
    weights, slopes : ndarray of shape (degree + 1,) and dtype float64
        N(x_k) and N'(x_k) of the cardinal B-spline N, x_k = fraction + degree - k; the slopes are per step.

    References
    ----------
    de Boor, A Practical Guide to Splines (1978), chapter X: the recurrence over degrees.
    """
    lower = np.ones(1) if degree == 1 else spline_weights(degree - 1, fraction)[0]
    here, before = np.append(0.0, lower), np.append(lower, 0.0)  # of the degree below, at x_k and at x_k - 1
    x = fraction + degree - np.arange(degree + 1)
    return (x * here + (degree + 1 - x) * before) / degree, here - before


def plain_spread_group(
    taps: tuple, group: tuple, place: int, scale: tuple, mesh: int, strides: tuple, charges: tuple
) -> None:
    """Add the charges of a group of points to a mesh.

    Parameters
    ----------
    taps, group : tuple
        Their lengths count: degree + 1, and the points.
    place : int
        The address of the points, (points, d) float64, C-contiguous.
    scale : tuple of d + 1 float
        The coordinates of the origin, and 1 / h of the step h.
    mesh : int
        The address of the nodes, of the dtype of `charges`; the patches of all points lie inside.
    strides : tuple of d - 1 int
        Bytes from a node to the next along all axes but the last, along which nodes lie side by side.
    charges : tuple of float32 or float64
        Of the points.
    """
    for charge, cells, weights, _ in zip(charges, *_patches(taps, group, place, scale), strict=True):
        patch = _patch(mesh, strides, cells, len(taps), np.asarray(charge).dtype)
        patch += charge * reduce(np.multiply.outer, weights)


def plain_gather_group(
    taps: tuple,
    group: tuple,
    place: int,
    scale: tuple,
    amounts: tuple[float, float],
    mesh: int,
    strides: tuple,
    out: tuple[int, int],
    element: Any,
) -> None:
    """Write unit * spline + constant and unit * its gradient at a group of points.

    Parameters
    ----------
    taps, group, place, scale, strides
        As of `plain_spread_group`.
    amounts : tuple of float
        The unit and the constant.
    mesh : int
        The address of the spline's coefficients at the nodes, of the dtype of `element`.
    out : tuple of int
        The addresses of the values, (points,) float64, and of the gradients, (points, d) float64, both C-contiguous.
    element : float32 or float64
        Any number.
    """
    n_dims, (unit, constant) = len(strides) + 1, amounts
    values = numbers_at(out[0], (len(group),), np.float64)
    gradients = numbers_at(out[1], (len(group), n_dims), np.float64)
    for n, (cells, weights, slopes) in enumerate(zip(*_patches(taps, group, place, scale), strict=True)):
        patch = _patch(mesh, strides, cells, len(taps), np.asarray(element).dtype)
        values[n] = unit * np.sum(patch * reduce(np.multiply.outer, weights)) + constant
        for axis in range(n_dims):
            factors = [*weights[:axis], slopes[axis], *weights[axis + 1 :]]
            gradients[n, axis] = unit * scale[-1] * np.sum(patch * reduce(np.multiply.outer, factors))


def _patches(taps: tuple, group: tuple, place: int, scale: tuple) -> tuple[list, list, list]:
    """Return each point's cell, and its weights and slopes along each axis."""
    points = numbers_at(place, (len(group), len(scale) - 1), np.float64)
    steps = (points - np.array(scale[:-1])) * scale[-1]
    cells = steps.astype(np.int64)
    found = [[spline_weights(len(taps) - 1, f) for f in fractions] for fractions in steps - cells]
    return list(cells), [[w for w, _ in axes] for axes in found], [[s for _, s in axes] for axes in found]


def _patch(mesh: int, strides: tuple, cells: np.ndarray, n_taps: int, dtype: np.dtype) -> np.ndarray:
    """Return the nodes of a patch, degree + 1 along each axis from the cell on."""
    every = (*strides, dtype.itemsize)
    return numbers_at(mesh + int(cells @ every), (n_taps,) * len(every), dtype, every)
