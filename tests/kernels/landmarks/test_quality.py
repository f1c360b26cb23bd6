"""What landmarks are worth to a point, against pseudo-inverses and condition numbers of NumPy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.landmarks.quality import local_conditions, nystrom_kernel, nystrom_residuals

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
