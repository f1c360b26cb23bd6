"""Derivatives of weights over landmarks: against differences of a general solver, and of affine maps."""

import numpy as np
import pytest

from scalemani.kernels.landmarks.derivatives import combination_derivatives


def combined(points, landmarks, coordinates, eps):
    """Combinations by the regularised system, a point at a time."""
    places = []
    for point, near, values in zip(points, landmarks, coordinates, strict=True):
        gram = (point - near) @ (point - near).T
        gram += eps * np.trace(gram) / len(near) * np.eye(len(near))
        weights = np.linalg.solve(gram, np.ones(len(near)))
        places.append(weights @ values / weights.sum())
    return np.array(places)


@pytest.mark.parametrize(("n_near", "n_columns", "eps"), [(5, 3, 1e-3), (5, 3, 0.3), (4, 9, 1e-2), (1, 4, 1e-3)])
def test_they_are_those_of_a_general_solver(n_near, n_columns, eps):
    rng = np.random.default_rng(0)
    points, landmarks = rng.normal(size=(30, n_columns)), rng.normal(size=(30, n_near, n_columns))
    coordinates, step = rng.normal(size=(30, n_near, 2)), 1e-5
    slopes = combination_derivatives(points, landmarks, coordinates, eps)
    assert slopes.shape == (30, 2, n_columns)
    for column in range(n_columns):
        ahead, behind = (
            combined(points + sign * step * np.eye(n_columns)[column], landmarks, coordinates, eps) for sign in (1, -1)
        )
        np.testing.assert_allclose(slopes[:, :, column], (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-8)


def test_a_map_that_is_linear_over_the_landmarks_is_met_in_their_span():
    """By default weights are hardly regularised: a point in the span moves as the linear map says."""
    rng = np.random.default_rng(1)
    landmarks, slopes = rng.normal(size=(20, 5, 8)), rng.normal(size=(2, 8))
    weights = rng.dirichlet(np.ones(5), 20)
    points = (weights[:, np.newaxis] @ landmarks)[:, 0]
    found = combination_derivatives(points, landmarks, landmarks @ slopes.T)
    spans = landmarks[:, 1:] - landmarks[:, :1]
    expected = [slopes @ np.linalg.pinv(span) @ span for span in spans]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_point_on_its_landmarks_has_a_finite_derivative():
    landmarks = np.zeros((1, 3, 4))
    landmarks[0, 1:] = np.eye(4)[:2]
    coordinates = np.arange(6.0).reshape(1, 3, 2)
    found = combination_derivatives(np.zeros((1, 4)), landmarks, coordinates)
    np.testing.assert_allclose(found, [[[2, 4, 0, 0], [2, 4, 0, 0]]], atol=1e-6)
    assert np.isfinite(combination_derivatives(np.zeros((1, 4)), 0 * landmarks, coordinates)).all()
