"""Sums are refined or replaced until the error that all pairs show is what was requested, or the best is returned."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.interfaces.functions.nonlinear import field_within

TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def tight_clusters():
    """Points in clusters a hundred times narrower than the mesh's steps, far from each other."""
    draws = np.random.default_rng(0)
    return np.repeat(draws.uniform(-50, 50, (100, 2)), 20, axis=0) + draws.normal(0, 3e-3, (2000, 2))


def exact_gradients(positions, rows):
    away = positions[rows, np.newaxis] - positions
    squares = cdist(positions[rows], positions, "sqeuclidean")
    return (-2 * away / (1 + squares[..., np.newaxis]) ** 2).sum(axis=1)


@pytest.mark.parametrize("methods", [("grid",), ("barnes-hut",), ("grid", "exact"), ("grid", "barnes-hut", "grid")])
def test_sums_are_refined_or_replaced_until_their_measured_errors_hold(tight_clusters, methods):
    measured = field_within(methods, "student", TOLERANCE, tight_clusters)
    exact = exact_gradients(tight_clusters, np.arange(0, 2000, 7))
    errors = np.linalg.norm(measured.field[1][::7] - exact, axis=1)
    assert np.linalg.norm(errors) <= TOLERANCE * np.linalg.norm(exact)
    assert np.quantile(errors / np.linalg.norm(exact, axis=1), 0.9) <= 10 * TOLERANCE
    assert measured.errors.least_tolerance <= TOLERANCE


def test_the_best_sums_are_returned_with_their_errors_where_none_hold(tight_clusters):
    measured = field_within(("grid",), "student", 2e-6, tight_clusters)
    exact = exact_gradients(tight_clusters, np.arange(0, 2000, 7))
    shares = np.linalg.norm(measured.field[1][::7] - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert measured.errors.worst_decile == pytest.approx(np.quantile(shares, 0.9), rel=0.3)
    assert measured.errors.least_tolerance > 2e-6
