"""Combinations of landmarks: weights of Z, or shares of a kernel, that sum to one."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.landmarks.nearest import nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.weights import Combining, combined_among, kernel_shares, local_weights

POINTS = np.random.default_rng(0).normal(size=(200, 4))
LANDMARKS, COORDINATES = POINTS[:120], np.random.default_rng(1).normal(size=(120, 3))
PREPARED = prepare_landmarks(LANDMARKS)


def combined(points, prepared, combining):
    near = nearest_landmarks(points, prepared, combining.n_neighbors + 2)
    return combined_among(points, prepared, combining, *near)


def test_without_a_bandwidth_the_weights_are_those_of_z():
    found = combined(POINTS, PREPARED, Combining(5, 1e-2))
    np.testing.assert_array_equal(found.weights, local_weights(POINTS, LANDMARKS, found.indices, 1e-2))
    expected = np.einsum("nk,nkd->nd", found.weights, COORDINATES[found.indices])
    np.testing.assert_allclose(found.of(COORDINATES), expected, atol=1e-12)
    np.testing.assert_array_equal(found.of(COORDINATES)[:120], COORDINATES)


@pytest.mark.parametrize("sigma", [0.3, 2.0])
def test_with_one_they_are_shares_of_the_kernel_of_the_nearest(sigma):
    found = combined(POINTS, PREPARED, Combining(7, sigma=sigma))
    distances = cdist(POINTS, LANDMARKS)
    np.testing.assert_array_equal(found.indices, np.argsort(distances, axis=1)[:, :7])
    kernel = np.exp(-(np.sort(distances, axis=1)[:, :7] ** 2) / (2 * sigma**2))
    np.testing.assert_allclose(found.weights, kernel / kernel.sum(axis=1, keepdims=True), rtol=1e-9)


def test_shares_of_many_rows_are_those_of_each():
    squares = np.sort(np.random.default_rng(2).random((500, 120)), axis=1)
    rows = [kernel_shares(squares[i : i + 1], 0.4) for i in range(500)]
    np.testing.assert_array_equal(kernel_shares(squares, 0.4), np.concatenate(rows))


def test_points_far_from_all_landmarks_and_tiny_bandwidths_still_have_shares():
    squares = np.array([[1e300, 1e300, 2e300], [1e8, 1.001e8, 4e8], [0.0, 0.0, 1.0]])
    for sigma in (1e-3, 1e-160):
        np.testing.assert_allclose(kernel_shares(squares, sigma), [[0.5, 0.5, 0], [1, 0, 0], [0.5, 0.5, 0]])


def test_a_row_depends_on_its_own_point_alone():
    whole = combined(POINTS, PREPARED, Combining(6, sigma=1.0)).of(COORDINATES)
    parts = [combined(POINTS[i : i + 7], PREPARED, Combining(6, sigma=1.0)).of(COORDINATES) for i in range(0, 200, 7)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
