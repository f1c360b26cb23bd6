"""The instructions for groups of points against their plain twins."""

import numpy as np
import pytest
from scipy.interpolate import BSpline

from scalemani.kernels.repulsion.splines import (
    gather,
    gather_points,
    reference_gather,
    reference_spread,
    row_lanes,
    spline_pieces,
    spread,
    taps_of,
)

DEGREES = (2, 3, 5)
NODES = 12
ROUNDING = {np.float32: 1e-6, np.float64: 1e-14}


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
@pytest.mark.parametrize("n_points", [1, 2, 4, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_are_spread_as_plain_ones_are(degree, n_dims, n_points, dtype):
    points, scale, mesh = problem(degree, n_dims, n_points, dtype)
    points[-1] = points[0]  # patches that overlap add up
    charges, taps, expected = np.resize([1.0, -2.0, 0.5, 3.0], n_points), taps_of(degree), mesh.copy()
    reference_spread(points, charges, 1.0, scale, taps, expected)
    assert np.abs(expected - mesh).max() > 0.01
    spread(points, charges, 1.0, scale, taps, mesh)
    np.testing.assert_allclose(mesh, expected, atol=10 * ROUNDING[dtype])


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("n_dims", [2, 3])
@pytest.mark.parametrize("n_points", [1, 2, 4, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_are_gathered_as_plain_ones_are(degree, n_dims, n_points, dtype):
    points, scale, mesh = problem(degree, n_dims, n_points, dtype)
    taps, group = taps_of(degree), gather_points(degree, mesh.dtype)
    found, expected = ((np.empty(n_points), np.empty((n_points, n_dims))) for _ in range(2))
    gather(points, scale, (2.0, 5.0), taps, group, mesh, found)
    reference_gather(points, scale, (2.0, 5.0), taps, group, mesh, expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=100 * ROUNDING[dtype])
