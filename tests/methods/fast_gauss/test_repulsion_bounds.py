"""Bounds of the fast Gauss transform beside its errors, and the parameters of the methods that sum repulsion."""

import doctest
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scalemani as sm
from scalemani.errors import ConfigError
from scalemani.methods.fast_gauss import interface


def gaussian_sums(positions):
    """Return S and its gradient by whole matrices."""
    differences = positions[:, None] - positions
    values = np.exp(-(differences**2).sum(axis=2))
    np.fill_diagonal(values, 0)
    return values.sum(axis=1), -2 * (values[:, :, None] * differences).sum(axis=1)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6), order=st.integers(1, 12), extent=st.sampled_from([0.3, 2.0, 20.0]), d=st.integers(2, 3)
)
def test_no_point_errs_by_more_than_its_bound(seed, order, extent, d):
    positions = extent * np.random.default_rng(seed).random(size=(800, d))
    bound = sm.repulsion_bound(positions, order)
    sums, gradients = sm.repulsion(positions, "gaussian", "fgt", order=order)
    exact = gaussian_sums(positions)
    assert np.abs(sums - exact[0]).max() <= bound.sums
    assert np.linalg.norm(gradients - exact[1], axis=1).max() <= bound.gradient


def test_an_order_too_low_is_seen_in_error_and_bound():
    """The bound falls with the order, and so does the error under it: neither is a constant."""
    positions = 3 * np.random.default_rng(0).random(size=(1500, 2))
    exact = gaussian_sums(positions)[0]
    bounds = [sm.repulsion_bound(positions, order, tolerance=1e-9) for order in (2, 5, 9, 14)]
    errors = [
        np.abs(sm.repulsion(positions, "gaussian", "fgt", 1e-9, order=order)[0] - exact).max()
        for order in (2, 5, 9, 14)
    ]
    assert errors[0] > 1e-2 * len(positions) / 100
    assert all(later < 0.1 * earlier for earlier, later in itertools.pairwise(errors))
    for name in ("sums", "gradient", "hermite", "taylor", "translated"):
        values = [getattr(bound, name) for bound in bounds]
        assert all(later < 0.1 * earlier for earlier, later in itertools.pairwise(values)), name


def test_printed_bounds_are_the_equations():
    """(5.5): N (1 - r)^-d sum over k < d of C(d, k) (1 - r^p)^k (r^p / sqrt(p!))^(d - k), written out for d = 2."""
    bound = sm.repulsion_bound(np.random.default_rng(1).random((50, 2)), 6)
    tail = 0.5**6 / np.sqrt(720)
    assert bound.hermite == pytest.approx(50 * (tail**2 + 2 * (1 - 0.5**6) * tail) / 0.25, rel=1e-12)
    assert bound.taylor == bound.hermite
    wide = np.sqrt(0.5)
    tail = wide**6 / np.sqrt(720)
    second = (tail**2 + 2 * (1 - wide**6) * tail) / (1 - wide) ** 2
    assert bound.translated == pytest.approx(bound.taylor + 50 * second**2, rel=1e-12)


def test_theta_zero_sums_every_pair_and_a_wide_angle_errs():
    positions = 4 * np.random.default_rng(2).normal(size=(1200, 2))
    exact = sm.repulsion(positions, "student", "exact")[1]
    errors = [
        np.linalg.norm(sm.repulsion(positions, "student", "barnes-hut", theta=theta)[1] - exact)
        for theta in (0.0, 0.2, 0.5, 1.0)
    ]
    assert errors[0] < 1e-12 * np.linalg.norm(exact)
    assert errors[0] < errors[1] < errors[2] < errors[3]


def test_the_examples_run():
    assert doctest.testmod(interface).failed == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "grid", "theta": 0.5}, "theta is a parameter of method 'barnes-hut', got method 'grid'"),
        ({"method": "auto", "order": 5}, "order is a parameter of method 'fgt', got method 'exact'"),
        ({"method": "barnes-hut", "theta": "wide"}, "theta must be a number"),
        ({"method": "barnes-hut", "theta": 3.0}, r"theta must be in \[0, 2\]"),
        ({"method": "fgt", "order": 0}, "order must be >= 1"),
        ({"method": "fgt", "order": 31}, "order must be <= 30"),
        ({"method": "fgt", "order": 5.0}, "order must be an integer"),
    ],
)
def test_parameters_of_another_method_and_out_of_range_are_refused(arguments, words):
    with pytest.raises(ConfigError, match=words):
        sm.repulsion(np.eye(4)[:, :2], "gaussian", **arguments)
