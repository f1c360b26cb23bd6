import numpy as np
import pytest
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.kernels.affinities.bandwidths import (
    LEAST_WEIGHT,
    gaussian_affinities,
    self_tuning_affinities,
    self_tuning_bandwidths,
    typical_bandwidth,
)


def squared_rows(dtype=np.float64):
    return np.sort(np.random.default_rng(0).gamma(2.0, 3.0, (50, 20)), axis=1).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussian_weights_are_the_formula(dtype):
    squared = squared_rows(dtype)
    expected = np.exp(-squared.astype(np.float64) / (2 * 1.7**2))
    np.testing.assert_allclose(gaussian_affinities(squared, 1.7), expected, rtol=1e-13)


@pytest.mark.parametrize("sigma", [1e-320, 1e-200, 1e-3, 1e200])
def test_no_weight_is_zero_or_nan_at_any_bandwidth(sigma):
    squared = np.array([[0.0, 1e-310, 1.0, 1e300], [5.0, 5.0, 5.0, 1e308]])
    weights = gaussian_affinities(squared, sigma)
    assert np.all((weights >= LEAST_WEIGHT) & (weights <= 1.0))
    assert np.all(weights.astype(np.float32) > 0.0)


def test_self_tuning_weights_scale_with_the_row():
    squared = squared_rows()
    sigma = np.sqrt(squared[:, 6])
    np.testing.assert_allclose(
        self_tuning_affinities(squared), np.exp(-squared / (2 * sigma[:, None] ** 2)), rtol=1e-13
    )
    np.testing.assert_allclose(self_tuning_affinities(squared * 1e280), self_tuning_affinities(squared), rtol=1e-12)


def test_duplicates_use_the_first_distance_that_is_not_zero():
    squared = np.array([[0.0, 0.0, 0.0, 4.0], [0.0, 0.0, 0.0, 0.0], [1.0, 9.0, 16.0, 25.0]])
    assert np.array_equal(self_tuning_bandwidths(squared, 2), [2.0, 1.0, 3.0])
    weights = self_tuning_affinities(squared, 2)
    assert np.array_equal(weights[1], np.ones(4))
    np.testing.assert_allclose(weights[0], [1.0, 1.0, 1.0, np.exp(-0.5)], rtol=1e-15)


@pytest.mark.parametrize("kth", [1, 7, 20])
def test_the_typical_bandwidth_is_the_median_of_rows_that_have_one(kth):
    squared = squared_rows()
    assert typical_bandwidth(squared, kth) == np.median(np.sqrt(squared[:, kth - 1]))
    with_duplicates = np.vstack([squared, np.zeros((60, 20))])
    assert typical_bandwidth(with_duplicates, kth) == typical_bandwidth(squared, kth)
    assert typical_bandwidth(np.zeros((5, 20)), kth) == 1.0


def test_pairs_have_the_bandwidths_of_both_ends():
    points = np.random.default_rng(4).normal(size=(40, 2))
    away = cdist(points, points) + np.diag(np.full(40, np.inf))
    indices = np.argsort(away, axis=1)[:, :9]
    distances = np.take_along_axis(away, indices, axis=1)
    found = sm.self_tuning_affinities(distances, 7, indices=indices)
    sigmas = np.sort(away, axis=1)[:, 6]
    dense = np.exp(-np.square(away) / np.outer(sigmas, sigmas))
    np.testing.assert_allclose(found, np.take_along_axis(dense, indices, axis=1), rtol=1e-12)
    assert np.abs(found - sm.self_tuning_affinities(distances, 7)).max() > 0.01
