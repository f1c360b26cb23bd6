import numpy as np
import pytest

from scalemani.kernels.landmarks.weights import ANCHORS, anchored, local_weights


def squared_distances(landmarks, points):
    return np.square(landmarks[:, None] - points[None].astype(np.float64)).sum(axis=2)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("n_points", [5, 300, 2500])
def test_anchors_are_the_nearest_points_and_their_combination_is_nearly_the_landmark(dtype, n_points):
    draws = np.random.default_rng(n_points)
    points, landmarks = draws.integers(0, 200, (n_points, 6)).astype(dtype), draws.uniform(0, 200, (300, 6))
    found, squares = anchored(points, landmarks), squared_distances(landmarks, points)
    width = min(ANCHORS, n_points)
    np.testing.assert_array_equal(found.rows, np.argsort(squares, axis=1, kind="stable")[:, :width])
    np.testing.assert_allclose(found.distances, np.sqrt(squares.min(axis=1)))
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, atol=1e-9)
    expected = local_weights(landmarks, points, found.rows, 1e-3)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-10, atol=1e-12)
    combined = np.einsum("la,lad->ld", found.weights, points[found.rows].astype(np.float64))
    assert (np.linalg.norm(combined - landmarks, axis=1) <= found.distances * (1 + 1e-3)).all()


def test_a_landmark_at_a_point_hangs_on_it_alone():
    points = np.random.default_rng(0).normal(size=(2000, 3))
    found = anchored(points, points[[5, 1999]])
    np.testing.assert_array_equal(found.rows[:, 0], [5, 1999])
    np.testing.assert_array_equal(found.weights[:, 0], 1.0)
    np.testing.assert_array_equal(found.weights[:, 1:], 0.0)


def test_points_that_are_repeated_give_finite_weights():
    points = np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 50, axis=0)
    found = anchored(points, np.random.default_rng(1).normal(size=(10, 4)))
    assert np.isfinite(found.weights).all()
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, atol=1e-9)
