import numpy as np
import pytest
from scipy.interpolate import BSpline

from scalemani.kernels.repulsion.splines import gather, gather_points, row_slack, spread, taps_of

DEGREES = (2, 3, 5)


def weights(degree, fraction, derivative=False):
    """Return a patch's weights at a fraction of a cell, from scipy's spline."""
    spline = BSpline.basis_element(np.arange(degree + 2.0), extrapolate=False)
    function = spline.derivative() if derivative else spline
    return function(fraction + degree - np.arange(degree + 1))


def patch_products(factors):
    product = factors[0]
    for factor in factors[1:]:
        product = np.multiply.outer(product, factor)
    return product


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("n_dims", [2, 3])
@pytest.mark.parametrize("n_points", [1, 4, 7])
def test_values_and_gradients_are_those_of_the_spline(degree, n_dims, n_points):
    rng = np.random.default_rng(degree)
    mesh = rng.normal(size=(15,) * (n_dims - 1) + (15 + row_slack(degree),))
    origin, step = rng.normal(size=n_dims), 0.3
    places = rng.uniform(0.0, 15 - degree - 1, (n_points, n_dims))
    values, gradients = np.empty(n_points), np.empty((n_points, n_dims))
    group = gather_points(degree, mesh.dtype)
    scale = (*origin, 1.0 / step)
    gather(origin + step * places, scale, (2.0, 5.0), taps_of(degree), group, mesh, (values, gradients))
    for n, place in enumerate(places):
        cells = np.floor(place).astype(int)
        patch = mesh[tuple(slice(cell, cell + degree + 1) for cell in cells)]
        plain = [weights(degree, f) for f in place - cells]
        slopes = [weights(degree, f, derivative=True) for f in place - cells]
        assert values[n] == pytest.approx(5.0 + 2.0 * np.sum(patch * patch_products(plain)), abs=1e-10)
        for axis in range(n_dims):
            factors = [slopes[a] if a == axis else plain[a] for a in range(n_dims)]
            expected = 2.0 * np.sum(patch * patch_products(factors)) / step
            assert gradients[n, axis] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_dims", [2, 3])
def test_spreading_is_the_adjoint_of_gathering(degree, dtype, n_dims):
    rng = np.random.default_rng(degree)
    points, charges = rng.uniform(0.0, 9.0, (301, n_dims)), rng.normal(size=301)
    shape = (16,) * (n_dims - 1) + (16 + row_slack(degree),)
    mesh, other = np.zeros(shape, dtype), rng.normal(size=shape).astype(dtype)
    scale = (*[0.0] * n_dims, 1.0)
    spread(points, charges, 0.5, scale, taps_of(degree), mesh)
    values, gradients = np.empty(301), np.empty((301, n_dims))
    group = gather_points(degree, mesh.dtype)
    gather(points, scale, (1.0, 0.0), taps_of(degree), group, other, (values, gradients))
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    assert np.vdot(mesh.astype(np.float64), other) == pytest.approx(0.5 * charges @ values, abs=tolerance)
    assert mesh.sum(dtype=np.float64) == pytest.approx(0.5 * charges.sum(), abs=tolerance)
