"""What landmarks are worth to a point, against pseudo-inverses and condition numbers of NumPy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.landmarks.quality import (
    coverage,
    far_from_landmarks,
    local_conditions,
    nystrom_kernel,
    nystrom_residuals,
    sampled_coverage,
)

POINTS = np.random.default_rng(0).normal(size=(300, 6))


def residuals_by_pseudo_inverse(points, landmarks, sigma):
    def kernel(one, other):
        return np.exp(-cdist(one, other, "sqeuclidean") / (2 * sigma**2))

    crossed = kernel(points, landmarks)
    inverse = np.linalg.pinv(kernel(landmarks, landmarks), rcond=1e-9, hermitian=True)
    return 1.0 - np.einsum("nl,lm,nm->n", crossed, inverse, crossed)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 3.0])
def test_residuals_are_those_of_the_pseudo_inverse_wherever_the_points_lie(sigma):
    landmarks = POINTS[::10]
    expected = residuals_by_pseudo_inverse(POINTS, landmarks, sigma)
    for shift in (0.0, 1e4):
        found = nystrom_residuals(POINTS + shift, nystrom_kernel(landmarks + shift, sigma))
        np.testing.assert_allclose(found, expected, atol=1e-7)
    assert 0.01 < expected.mean() < 0.99


def test_landmarks_that_the_others_determine_add_nothing():
    landmarks = POINTS[::10]
    kernel = nystrom_kernel(landmarks, 1000.0)
    assert 1 < len(kernel.landmarks) < len(landmarks)
    np.testing.assert_allclose(
        nystrom_residuals(POINTS, kernel), residuals_by_pseudo_inverse(POINTS, landmarks, 1000.0), atol=1e-7
    )
    assert nystrom_residuals(landmarks, kernel).max() < 1e-9


@pytest.mark.parametrize(("n_neighbors", "usual"), [(4, 1e-10), (9, 1e-3)])
@pytest.mark.parametrize("regularization", [None, 1e-2])
def test_conditions_are_those_of_the_matrices_that_are_solved(n_neighbors, usual, regularization):
    landmarks = POINTS[:20]
    indices = nearest_landmarks(POINTS, landmarks, n_neighbors)[0]
    found = local_conditions(POINTS, landmarks, indices, regularization)
    assert np.isnan(found[:20]).all()
    eps = usual if regularization is None else regularization
    for point, nearest, condition in zip(POINTS[20:], indices[20:], found[20:], strict=True):
        differences = landmarks[nearest] - point
        gram = differences @ differences.T
        gram += eps * np.trace(gram) / n_neighbors * np.eye(n_neighbors)
        assert condition == pytest.approx(np.linalg.cond(gram), rel=1e-6)


def test_bytes_are_compared_as_numbers():
    digits = np.random.default_rng(1).integers(0, 256, (40, 12), dtype=np.uint8)
    indices = nearest_landmarks(digits, digits[:8], 3)[0]
    conditions = local_conditions(digits, digits[:8], indices)
    np.testing.assert_allclose(conditions, local_conditions(digits * 1.0, digits[:8] * 1.0, indices), rtol=1e-9)
    expected = residuals_by_pseudo_inverse(digits * 1.0, digits[:8] * 1.0, 150.0)
    np.testing.assert_allclose(nystrom_residuals(digits, nystrom_kernel(digits[:8], 150.0)), expected, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("n_landmarks", [20, 150])
def test_points_far_from_all_landmarks_are_those_of_brute_force(dtype, n_landmarks):
    points = (100 * np.random.default_rng(n_landmarks).random((400, 3))).astype(dtype)
    landmarks = points[:n_landmarks]
    away = cdist(points, landmarks)
    for distance in (10.5, 20.5, 40.5):
        np.testing.assert_array_equal(
            far_from_landmarks(points, landmarks, distance), np.flatnonzero(away.min(axis=1) > distance)
        )


def held_out_distances(points, landmarks):
    """Return how far each point lies from the nearest landmark that is not the point itself."""
    away = cdist(points, landmarks)
    return np.where(away == 0, np.inf, away).min(axis=1)


@pytest.mark.parametrize("n_landmarks", [1, 2, 40, 500])
def test_the_usual_distance_is_that_of_a_point_that_is_left_out(n_landmarks):
    points = np.random.default_rng(1).normal(size=(500, 3))
    found = coverage(points, points[:n_landmarks])
    distances = held_out_distances(points, points[:n_landmarks])
    known = np.sort(distances[np.isfinite(distances)])
    assert found.spacing == pytest.approx(known[int(0.98 * (len(known) - 1))], rel=1e-12)
    out = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    assert 0.975 < np.mean(out <= found.radius) <= 0.985


@pytest.mark.parametrize("far", [1e3, 1e9])
@pytest.mark.parametrize("all_are_landmarks", [True, False])
def test_one_outlier_in_a_hundred_points_does_not_widen_the_coverage_of_a_large_sample(far, all_are_landmarks):
    """Of 20,000 points; the outliers lie in all directions, and are landmarks whether others are or not."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(20_000, 3))
    outliers = far * rng.normal(size=(200, 3))
    landmarks = points if all_are_landmarks else points[::50]
    before = sampled_coverage(points, landmarks, 0)
    after = sampled_coverage(np.concatenate([points, outliers]), np.concatenate([landmarks, outliers]), 0)
    assert after.spacing < 1.5 * before.spacing
    assert after.radius < 1.5 * before.radius
    assert np.linalg.norm(after.center - before.center) < 0.2


def test_where_all_points_are_one_landmark_there_is_no_usual_distance():
    assert coverage(np.ones((50, 2)), np.ones((1, 2))).spacing == np.inf
