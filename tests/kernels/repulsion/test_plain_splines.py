"""The weights that plain spreading and gathering multiply by, against scipy's splines."""

import numpy as np
import pytest
from scipy.interpolate import BSpline

from scalemani.kernels.repulsion.splines import spline_weights


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.999])
def test_weights_and_slopes_are_those_of_scipys_splines(degree, fraction):
    spline = BSpline.basis_element(np.arange(degree + 2.0), extrapolate=False)
    places = fraction + degree - np.arange(degree + 1)
    weights, slopes = spline_weights(degree, fraction)
    np.testing.assert_allclose(weights, np.nan_to_num(spline(places)), atol=1e-15)
    if degree > 1 or fraction > 0.0:  # a line has no slope at its knots
        np.testing.assert_allclose(slopes, np.nan_to_num(spline.derivative()(places)), atol=1e-14)


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_weights_add_up_to_one_and_slopes_to_nothing(degree):
    for fraction in np.linspace(0.0, 0.999, 20):
        weights, slopes = spline_weights(degree, fraction)
        assert weights.sum() == pytest.approx(1.0, rel=1e-14)
        assert slopes.sum() == pytest.approx(0.0, abs=1e-14)
        assert np.all(weights >= 0.0)
