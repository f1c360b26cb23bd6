import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.landmarks.nearest import nearest_landmarks, prepare_landmarks
from scalemani.kernels.rows.sketches import fit_sketch


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
    ("n_landmarks", "n_columns", "n_neighbors"),
    [(1, 5, 1), (50, 5, 50), (400, 3, 5), (700, 100, 15), (97, 300, 97), (700, 3, 333)],
)
def test_against_brute_force(dtype, n_landmarks, n_columns, n_neighbors):
    points, landmarks = clustered(150, n_columns, dtype), clustered(n_landmarks, n_columns, dtype, 1)
    indices, distances = nearest_landmarks(points, landmarks, n_neighbors)
    expected, expected_distances = oracle(points, landmarks, n_neighbors)
    assert indices.dtype == np.int32
    np.testing.assert_allclose(distances, expected_distances, rtol=1e-12)
    if dtype in (np.uint8, np.int16) or n_columns > 5:
        np.testing.assert_array_equal(indices, expected)


@pytest.mark.parametrize("far", [1e6, 1e20, 1e150])
@pytest.mark.parametrize(("n_landmarks", "n_far"), [(3, 1), (4, 2), (400, 100)])
@pytest.mark.parametrize("n_columns", [3, 90])
def test_landmarks_far_from_the_others_mix_up_no_neighbours(n_columns, n_landmarks, n_far, far):
    points, landmarks = np.random.default_rng(3).normal(size=(2, 400, n_columns))
    landmarks = landmarks[:n_landmarks].copy()
    landmarks[:n_far] *= far
    points[:n_far] = landmarks[:n_far]
    indices, distances = nearest_landmarks(points, landmarks, 3)
    expected, expected_distances = oracle(points, landmarks, 3)
    np.testing.assert_array_equal(indices[n_far:], expected[n_far:])
    np.testing.assert_allclose(distances, expected_distances, rtol=1e-12)


def test_ties_go_to_the_lower_index():
    points = np.random.default_rng(0).integers(0, 3, (200, 4)).astype(np.uint8)
    landmarks = np.random.default_rng(1).integers(0, 3, (300, 4)).astype(np.uint8)
    for n_neighbors in (1, 20, 250, 300):
        indices, distances = nearest_landmarks(points, landmarks, n_neighbors)
        expected, expected_distances = oracle(points, landmarks, n_neighbors)
        np.testing.assert_array_equal(distances, expected_distances)
        np.testing.assert_array_equal(indices, expected)


def test_more_neighbors_begin_with_the_same_list():
    points, landmarks = clustered(100, 20, np.float32), clustered(600, 20, np.float32, 1)
    longest = nearest_landmarks(points, landmarks, 600)
    for n_neighbors in (1, 7, 64, 599):
        for found, expected in zip(nearest_landmarks(points, landmarks, n_neighbors), longest, strict=True):
            np.testing.assert_array_equal(found, expected[:, :n_neighbors])


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_any_blocking_and_any_sketch_give_the_same_bits(dtype):
    points, landmarks = clustered(700, 120, dtype), clustered(900, 120, dtype, 1)
    whole = nearest_landmarks(points, landmarks, 7)
    own = prepare_landmarks(landmarks)
    for start, stop in ((0, 1), (1, 300), (300, 700)):
        for part in (
            nearest_landmarks(points[start:stop], own, 7),
            nearest_landmarks(points[start:stop], prepare_landmarks(landmarks, fit_sketch(points, 16)), 7),
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
    n_neighbors=st.sampled_from([1, 12, 140]),
)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_exact_at_any_scale_offset_and_outlier(seed, n_columns, exponent, offset, outlier, dtype, n_neighbors):
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
    indices, distances = nearest_landmarks(points, landmarks, n_neighbors)
    expected, further = oracle(points, landmarks, n_neighbors + 1)
    np.testing.assert_allclose(distances, further[:, :-1], rtol=1e-9)
    gaps = np.diff(further, axis=1)
    gaps[:, 1:] = np.minimum(gaps[:, 1:], gaps[:, :-1].copy())
    apart = gaps > 1e-9 * further[:, :-1]
    assert not ((indices != expected[:, :-1]) & apart).any()


def test_constant_points():
    landmarks = np.full((200, 70), 3.5)
    indices, distances = nearest_landmarks(np.full((5, 70), 3.5), landmarks, 4)
    np.testing.assert_array_equal(indices, np.tile(np.arange(4), (5, 1)))
    assert (distances == 0).all()
