"""How far landmarks lie apart and which points lie far from them, against all distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.landmarks.gaps import far_from_landmarks, largest_gap
from scalemani.kernels.landmarks.nearest import prepare_landmarks


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("n_landmarks", [20, 150])
def test_points_far_from_all_landmarks_are_those_of_brute_force(dtype, n_landmarks):
    points = (100 * np.random.default_rng(n_landmarks).random((400, 3))).astype(dtype)
    landmarks = points[:n_landmarks]
    between, away = cdist(landmarks, landmarks), cdist(points, landmarks)
    np.fill_diagonal(between, np.inf)
    assert largest_gap(prepare_landmarks(landmarks)) == pytest.approx(between.min(axis=1).max(), rel=1e-12)
    for distance in (10.5, 20.5, 40.5):
        np.testing.assert_array_equal(
            far_from_landmarks(points, landmarks, distance), np.flatnonzero(away.min(axis=1) > distance)
        )


def test_from_one_landmark_nothing_is_far():
    points = np.random.default_rng(0).normal(size=(50, 2))
    gap = largest_gap(prepare_landmarks(points[:1]))
    assert gap == np.inf
    assert not len(far_from_landmarks(points, points[:1], gap))
