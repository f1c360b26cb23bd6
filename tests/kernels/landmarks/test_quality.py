"""What landmarks are worth to a point, against pseudo-inverses and condition numbers of NumPy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.landmarks.nearest import nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.quality import (
    isolation,
    landmark_spacings,
    local_conditions,
    nystrom_kernel,
    nystrom_residuals,
    sampled_spacings,
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


def isolation_by_brute_force(points, landmarks, new):
    """Return the distance of the fifth nearest landmark by the median gap of the five, 1 where 98 % of points lie."""

    def ratios_of(rows, known):
        found = []
        for row in rows:
            rest = known[(known != row).any(axis=1)]
            away = np.linalg.norm(rest - row, axis=1)
            near = np.argsort(away, kind="stable")[: min(5, len(known) - 1)]
            gaps = [np.sort(np.linalg.norm(np.delete(rest, one, axis=0) - rest[one], axis=1)) for one in near]
            number = max(0, min(5, len(known) - 2) - 1)
            scale = np.median([gap[min(number, len(gap) - 1)] for gap in gaps])
            found.append(min(away[near[-1]], 10 * away[near[0]]) / scale)
        return np.array(found)

    return ratios_of(new, landmarks) / np.quantile(ratios_of(points, landmarks), 0.98, method="lower")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("n_landmarks", [4, 40, 500, 600])
def test_isolation_is_that_of_brute_force(dtype, n_landmarks):
    points = (100 * np.random.default_rng(n_landmarks).random((600, 3))).astype(dtype)
    points = np.unique(points, axis=0)[np.random.default_rng(0).permutation(590)]
    landmarks, new = points[:n_landmarks], (150 * np.random.default_rng(1).random((200, 3))).astype(dtype)
    found = isolation(new, prepare_landmarks(landmarks), landmark_spacings(points, landmarks))
    exact = [one.astype(np.float64) for one in (points, landmarks, new)]
    np.testing.assert_allclose(found, isolation_by_brute_force(*exact), rtol=1e-9)


@pytest.mark.parametrize("far", [1e3, 1e9])
@pytest.mark.parametrize("all_are_landmarks", [True, False])
@pytest.mark.parametrize("percent", [1, 20])
def test_outliers_do_not_widen_the_spacings_of_other_landmarks(far, all_are_landmarks, percent):
    """Of 3,000 points; the outliers lie in all directions, and are landmarks whether others are or not."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(3000, 3))
    outliers = far * rng.normal(size=(30 * percent, 3))
    landmarks = points if all_are_landmarks else points[::15]
    before = sampled_spacings(points, landmarks, 0)
    after = sampled_spacings(np.concatenate([points, outliers]), np.concatenate([landmarks, outliers]), 0)
    np.testing.assert_allclose(after[: len(before)], before, rtol=0.3)


def test_a_single_landmark_is_as_wide_as_98_percent_of_the_points():
    points = np.random.default_rng(3).normal(size=(1001, 3))
    away = np.linalg.norm(points[1:] - points[0], axis=1)
    expected = np.quantile(away, 0.98, method="lower")
    np.testing.assert_allclose(landmark_spacings(points, points[:1]), [expected], rtol=1e-12)
