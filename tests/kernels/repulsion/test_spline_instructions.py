"""The instructions for groups of points against their plain twins, one group at a time."""

import numpy as np
import pytest
from scipy.interpolate import BSpline

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.repulsion.splines import (
    gather_group,
    reference_gather_group,
    reference_spread_group,
    row_lanes,
    spline_pieces,
    spread_group,
    taps_of,
)

DEGREES = (2, 3, 5)
NODES = 12
ROUNDING = {np.float32: 1e-6, np.float64: 1e-14}


@compiled
def spread_once(points, charges, scale, taps, group, mesh):
    spread_group(taps, group, points.ctypes.data, scale, mesh.ctypes.data, mesh.strides[:-1], charges)


@compiled
def gather_once(points, scale, amounts, taps, group, mesh, out):
    at = (out[0].ctypes.data, out[1].ctypes.data)
    element = mesh.dtype.type(0)
    gather_group(taps, group, points.ctypes.data, scale, amounts, mesh.ctypes.data, mesh.strides[:-1], at, element)


def problem(degree, n_dims, n_points, dtype):
    """Return points, scale and the values of a mesh with the nodes to spare that rows need."""
    rng = np.random.default_rng(degree)
    origin, step = rng.normal(size=n_dims), 0.3
    points = origin + step * rng.uniform(0.0, NODES - degree - 1, (n_points, n_dims))
    shape = (NODES,) * (n_dims - 1) + (NODES + row_lanes(degree),)
    return points, (*origin.tolist(), 1.0 / step), rng.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("degree", DEGREES)
def test_pieces_are_scipys_splines(degree):
    spline = BSpline.basis_element(np.arange(degree + 2.0), extrapolate=False)
    for fraction in (0.0, 0.3, 0.999):
        found = spline_pieces(degree) @ fraction ** np.arange(degree + 1)
        np.testing.assert_allclose(found, spline(fraction + degree - np.arange(degree + 1)), atol=1e-15)


def test_rows_have_a_lane_for_every_tap():
    for degree in range(1, 8):
        lanes = row_lanes(degree)
        assert lanes >= max(4, degree + 1)
        assert lanes & (lanes - 1) == 0


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("n_dims", [2, 3])
@pytest.mark.parametrize("n_points", [1, 2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_are_spread_as_plain_ones_are(degree, n_dims, n_points, dtype):
    points, scale, mesh = problem(degree, n_dims, n_points, dtype)
    points[-1] = points[0]  # patches that overlap add up
    charges = tuple(dtype(charge) for charge in (1.0, -2.0, 0.5, 3.0)[:n_points])
    taps, group, expected = taps_of(degree), (0,) * n_points, mesh.copy()
    reference_spread_group(taps, group, points.ctypes.data, scale, expected.ctypes.data, mesh.strides[:-1], charges)
    assert np.abs(expected - mesh).max() > 0.01
    spread_once(points, charges, scale, taps, group, mesh)
    np.testing.assert_allclose(mesh, expected, atol=10 * ROUNDING[dtype])


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("n_dims", [2, 3])
@pytest.mark.parametrize("n_points", [1, 2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_are_gathered_as_plain_ones_are(degree, n_dims, n_points, dtype):
    points, scale, mesh = problem(degree, n_dims, n_points, dtype)
    taps, group = taps_of(degree), (0,) * n_points
    found, expected = ((np.empty(n_points), np.empty((n_points, n_dims))) for _ in range(2))
    gather_once(points, scale, (2.0, 5.0), taps, group, mesh, found)
    places = tuple(array.ctypes.data for array in expected)
    arguments = (scale, (2.0, 5.0), mesh.ctypes.data, mesh.strides[:-1], places, dtype(0))
    reference_gather_group(taps, group, points.ctypes.data, *arguments)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=100 * ROUNDING[dtype])
