"""How hard neighbours are to find: the intrinsic dimension, and what leading axes keep, where both are known."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors.difficulty import N_NEAREST, N_QUERIES, RANKED, intrinsic_dimension, measure_difficulty

N = 3000


def drawn(dimension, n_features=None, noise=0.0):
    draws = np.random.default_rng(dimension)
    points = draws.random((N, dimension))
    if n_features is not None:
        points = points @ np.linalg.qr(draws.normal(size=(n_features, dimension)))[0].T
    return points + noise * draws.normal(size=points.shape)


@pytest.mark.parametrize("dimension", [1, 2, 5, 10])
def test_the_intrinsic_dimension_is_that_of_a_cube(dimension):
    found = measure_difficulty(drawn(dimension, 40), 64)
    assert found.dimension == pytest.approx(dimension, rel=0.25)
    assert found.kept > 0.99
    assert not found.hard


def test_the_intrinsic_dimension_is_the_inverse_of_the_mean_logarithm():
    distances = np.sort(np.random.default_rng(0).random((50, 9)) + 0.1, axis=1)
    expected = 1 / np.log(distances[:, -1:] / distances[:, :-1]).mean()
    assert intrinsic_dimension(distances**2) == pytest.approx(expected)
    assert intrinsic_dimension(np.ones((5, 3))) == 0.0


def test_what_axes_keep_is_the_share_of_the_nearest_that_they_rank():
    points, n_axes = np.random.default_rng(0).normal(size=(N_QUERIES, 30)), 8
    centred = points - points.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:n_axes]
    shares = []
    for true, ranked in zip(cdist(points, points), cdist(centred @ axes.T, centred @ axes.T), strict=True):
        nearest = set(np.argsort(true)[1 : N_NEAREST + 1])
        shares.append(len(nearest & set(np.argsort(ranked)[1 : RANKED * N_NEAREST + 1])) / N_NEAREST)
    found = measure_difficulty(points, n_axes)
    assert found.kept == pytest.approx(np.mean(shares), abs=0.005)
    assert found.hard


def test_points_of_many_dimensions_are_hard_however_few_their_columns():
    points = np.random.default_rng(0).normal(size=(N, 50))
    found = measure_difficulty(points, 64)
    assert found.kept > 0.99
    assert found.hard


def test_neither_the_place_nor_the_unit_of_points_matters():
    points = drawn(6, 30, 0.01)
    one, other = measure_difficulty(points, 4), measure_difficulty(2.0**40 * points + 2.0**42, 4)
    assert one == pytest.approx(other, rel=1e-2)


@pytest.mark.parametrize("points", [np.zeros((2500, 4)), np.arange(10.0).reshape(5, 2)])
def test_equal_and_few_points_are_not_hard(points):
    assert not measure_difficulty(points, 64).hard
