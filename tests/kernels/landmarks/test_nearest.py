import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.landmarks.nearest import nearest_landmarks, prepare_landmarks
from scalemani.kernels.rows.sketches import pruning_basis


def oracle(points, landmarks, n_neighbors):
    """Direct differences and a stable sort: ties by landmark index."""
    difference = points[:, np.newaxis].astype(np.float64) - landmarks[np.newaxis].astype(np.float64)
    distances = (difference**2).sum(axis=2)
    indices = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    return indices, np.take_along_axis(distances, indices, axis=1)


def clustered(n_points, n_columns, dtype, seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.integers(30, 220, (12, n_columns))
    values = centers[rng.integers(0, 12, n_points)] + rng.normal(scale=12, size=(n_points, n_columns))
    return np.clip(values, 0, 255).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_landmarks", "n_columns", "n_neighbors"), [(1, 5, 1), (50, 5, 50), (400, 3, 5), (700, 100, 15), (97, 300, 97)]
)
def test_against_brute_force(dtype, n_landmarks, n_columns, n_neighbors):
    points, landmarks = clustered(150, n_columns, dtype), clustered(n_landmarks, n_columns, dtype, 1)
    indices, distances = nearest_landmarks(points, landmarks, n_neighbors)
    expected, expected_distances = oracle(points, landmarks, n_neighbors)
    assert indices.dtype == np.int32
    np.testing.assert_allclose(distances, expected_distances, rtol=1e-12)
    if dtype in (np.uint8, np.int16) or n_columns > 5:
        np.testing.assert_array_equal(indices, expected)


def test_ties_go_to_the_lower_index():
    points = np.random.default_rng(0).integers(0, 3, (200, 4)).astype(np.uint8)
    landmarks = np.random.default_rng(1).integers(0, 3, (300, 4)).astype(np.uint8)
    indices, distances = nearest_landmarks(points, landmarks, 20)
    expected, expected_distances = oracle(points, landmarks, 20)
    np.testing.assert_array_equal(distances, expected_distances)
    np.testing.assert_array_equal(indices, expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_any_blocking_and_any_sketch_give_the_same_bits(dtype):
    points, landmarks = clustered(700, 120, dtype), clustered(900, 120, dtype, 1)
    whole = nearest_landmarks(points, landmarks, 7)
    own = prepare_landmarks(landmarks)
    for start, stop in ((0, 1), (1, 300), (300, 700)):
        for part in (
            nearest_landmarks(points[start:stop], own, 7),
            nearest_landmarks(points[start:stop], prepare_landmarks(landmarks, pruning_basis(points, 16)), 7),
        ):
            np.testing.assert_array_equal(part[0], whole[0][start:stop])
            np.testing.assert_array_equal(part[1], whole[1][start:stop])


@given(
    seed=st.integers(0, 2**32 - 1),
    n_columns=st.sampled_from([1, 2, 20, 80]),
    exponent=st.sampled_from([-150, -20, 0, 20, 150]),
    offset=st.sampled_from([0.0, 1e4, 1e8]),
    outlier=st.sampled_from([1.0, 1e12, 1e22, 1e25, 1e30]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_exact_at_any_scale_offset_and_outlier(seed, n_columns, exponent, offset, outlier, dtype):
    rng = np.random.default_rng(seed)
    points, landmarks = rng.normal(size=(40, n_columns)) + offset, rng.normal(size=(150, n_columns)) + offset
    landmarks[7] *= outlier if abs(exponent) <= 20 else 1.0
    points[3] *= outlier if abs(exponent) <= 20 else 1.0
    landmarks[20:30] = landmarks[19]
    points[5:8] = landmarks[19]
    if dtype == np.float32:
        exponent = np.clip(exponent, -5, 0)
        points, landmarks = np.clip(points, -1e15, 1e15), np.clip(landmarks, -1e15, 1e15)
    points, landmarks = (points * 10.0**exponent).astype(dtype), (landmarks * 10.0**exponent).astype(dtype)
    indices, distances = nearest_landmarks(points, landmarks, 12)
    expected, expected_distances = oracle(points, landmarks, 12)
    np.testing.assert_allclose(distances, expected_distances, rtol=1e-9)
    differing = indices != expected
    gaps = np.abs(np.diff(expected_distances, axis=1, prepend=0, append=np.inf))
    apart = np.minimum(gaps[:, :-1], gaps[:, 1:]) > 1e-9 * expected_distances
    assert not (differing & apart).any()


def test_constant_points():
    landmarks = np.full((200, 70), 3.5)
    indices, distances = nearest_landmarks(np.full((5, 70), 3.5), landmarks, 4)
    np.testing.assert_array_equal(indices, np.tile(np.arange(4), (5, 1)))
    assert (distances == 0).all()
