import math

import numpy as np
import pytest
from scipy.special import eval_hermite

from scalemani.methods.fast_gauss.kernels.expansions import (
    axis_errors,
    hermite_bound,
    hermite_functions,
    taylor_bound,
    translated_bound,
    translations,
)

SIDE = math.sqrt(0.5)  # r = 1/2
OFFSETS = np.linspace(-SIDE / 2, SIDE / 2, 31)


def truncated(order, n_terms, distance):
    """Return the expansion of exp(-(y - x)^2) with sources (rows) and targets (columns) at all offsets."""
    factors = np.array(
        [
            [
                (-1.0) ** n
                * eval_hermite(m + n, distance)
                * math.exp(-(distance**2))
                / (math.factorial(m) * math.factorial(n))
                for n in range(n_terms)
            ]
            for m in range(order)
        ]
    )
    return np.vander(OFFSETS, order, increasing=True) @ factors @ np.vander(OFFSETS, n_terms, increasing=True).T


def exact(distance):
    return np.exp(-((distance + OFFSETS[None] - OFFSETS[:, None]) ** 2))


def test_hermite_functions_and_translations():
    for x in (-3.0, 0.0, 0.7, 5.0):
        expected = [eval_hermite(n, x) * math.exp(-x * x) for n in range(20)]
        np.testing.assert_allclose(hermite_functions(x, 20), expected, rtol=1e-10, atol=1e-12)
    factors = translations(5, SIDE, 3)
    assert factors.shape == (7, 5, 6)
    for step in range(7):
        values = np.vander(OFFSETS, 5, increasing=True) @ factors[step] @ np.vander(OFFSETS, 6, increasing=True).T
        np.testing.assert_allclose(values, truncated(5, 6, (3 - step) * SIDE), rtol=0, atol=1e-13)


@pytest.mark.parametrize("order", [1, 2, 3, 5, 8, 12])
def test_axis_errors_hold_for_every_pair_of_boxes(order):
    bounds = axis_errors(order, 6, SIDE, SIDE / 2)
    for step in range(7):
        error = np.abs(truncated(order, order + 1, step * SIDE) - exact(step * SIDE)).max()
        assert 0.02 * bounds.error[step] < error <= bounds.error[step] * (1 + 1e-9) + 1e-14
        assert exact(step * SIDE).max() <= bounds.most[step] * (1 + 1e-12)
        slopes = np.gradient(exact(step * SIDE), OFFSETS, axis=1)
        assert np.abs(slopes).max() <= bounds.steepest[step] * (1 + 1e-9)
        slope_errors = np.gradient(truncated(order, order + 1, step * SIDE) - exact(step * SIDE), OFFSETS, axis=1)
        assert np.abs(slope_errors).max() <= bounds.slope_error[step] * (1 + 1e-9) + 1e-12


def product_bound(total_charge, order, n_dims, ratio=0.5):
    """Return the form of 1991 that `hermite_bound` corrects: it takes the d-dimensional tail for a product of tails."""
    return total_charge * (ratio**order / ((1.0 - ratio) * math.sqrt(math.factorial(order)))) ** n_dims


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("order", [2, 5, 8, 12])
def test_printed_bounds_hold_and_the_product_form_does_not(d, order):
    """Of one source and one target at their worst places, the same along each axis."""
    hermite = max(np.abs(truncated(order, 40, k * SIDE) ** d - exact(k * SIDE) ** d).max() for k in range(4))
    both = max(np.abs(truncated(order, order, k * SIDE) ** d - exact(k * SIDE) ** d).max() for k in range(4))
    assert hermite <= hermite_bound(1.0, order, d) == taylor_bound(1.0, order, d)
    assert both <= translated_bound(1.0, order, d)
    if d > 1:
        assert hermite > product_bound(1.0, order, d)
    else:
        assert product_bound(1.0, order, d) == pytest.approx(hermite_bound(1.0, order, d))


@pytest.mark.parametrize("order", [2, 5, 8])
def test_erratum_bounds_take_the_absolute_values_of_charges_that_the_thesis_sums(order):
    """Two charges of opposite sign: as printed nothing may err."""
    charges, places = np.array([1.0, -1.0]), [0, -1]  # at both ends of the box
    missed = truncated(order, 40, SIDE) - exact(SIDE)
    error = np.abs(charges @ missed[places]).max()
    assert error > hermite_bound(charges.sum(), order, 1) == 0.0
    assert error <= hermite_bound(np.abs(charges).sum(), order, 1)


@pytest.mark.parametrize("order", [8, 12, 14])
def test_erratum_what_a_translation_loses_is_of_first_order_and_not_the_square_of_the_thesis(order):
    lost = np.abs(truncated(order, order, SIDE) - truncated(order, 40, SIDE)).max()
    printed = translated_bound(1.0, order, 1) - taylor_bound(1.0, order, 1)
    assert lost > printed
