import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.landmarks.weights import (
    Limits,
    default_regularization,
    limited_weights,
    local_weights,
    reconstruction_errors,
)


def oracle_weights(points, landmarks, indices, eps):
    """The regularised system, row by row, by a general solver in extended-range units."""
    weights = np.zeros(indices.shape)
    for i, row in enumerate(indices):
        differences = points[i].astype(np.float64) - landmarks[row].astype(np.float64)
        distances = np.linalg.norm(differences, axis=1)
        if (distances == 0).any():
            weights[i, np.argmin(distances)] = 1.0
            continue
        differences /= distances.max()
        gram = differences @ differences.T
        gram += eps * np.trace(gram) / len(row) * np.eye(len(row))
        solution = np.linalg.solve(gram, np.ones(len(row)))
        weights[i] = solution / solution.sum()
    return weights


def drawn(n_points, n_landmarks, n_columns, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    if dtype == np.uint8:
        landmarks = rng.integers(0, 256, (n_landmarks, n_columns), np.uint8)
        return rng.integers(0, 256, (n_points, n_columns), np.uint8), landmarks
    return rng.normal(size=(n_points, n_columns)).astype(dtype), rng.normal(size=(n_landmarks, n_columns)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize(("n_neighbors", "n_columns"), [(1, 3), (2, 3), (5, 12), (15, 70), (50, 130), (6, 2), (12, 5)])
def test_against_a_general_solver(dtype, n_neighbors, n_columns):
    points, landmarks = drawn(60, 80, n_columns, dtype=dtype)
    indices, _ = nearest_landmarks(points, landmarks, n_neighbors)
    weights = local_weights(points, landmarks, indices)
    expected = oracle_weights(points, landmarks, indices, default_regularization(n_neighbors, n_columns))
    np.testing.assert_allclose(weights, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_rows_of_bytes_so_long_that_products_leave_32_bits_are_solved_all_the_same():
    rng = np.random.default_rng(6)
    points, landmarks = rng.integers(0, 20, (3, 40_000), np.uint8), rng.integers(236, 256, (6, 40_000), np.uint8)
    indices = np.tile(np.arange(6), (3, 1))
    expected = oracle_weights(points, landmarks, indices, default_regularization(6, 40_000))
    np.testing.assert_allclose(local_weights(points, landmarks, indices), expected, rtol=1e-7)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_columns=st.integers(1, 12),
    n_neighbors=st.integers(1, 12),
    exponent=st.integers(-150, 150),
    duplicated=st.booleans(),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_rows_are_finite_and_sum_to_one(seed, n_columns, n_neighbors, exponent, duplicated):
    points, landmarks = drawn(20, 30, n_columns, seed)
    if duplicated:
        points[1:10] = points[0]
        points[10:15] = landmarks[:5]
    points, landmarks = points * 10.0**exponent, landmarks * 10.0**exponent
    indices, _ = nearest_landmarks(points, landmarks, n_neighbors)
    weights = local_weights(points, landmarks, indices)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_neighbors", [1, 5, 10])
def test_landmarks_get_their_unit_vectors(n_neighbors):
    _, landmarks = drawn(1, 40, 5)
    indices, _ = nearest_landmarks(landmarks, landmarks, n_neighbors)
    weights = local_weights(landmarks, landmarks, indices)
    dense = np.zeros((40, 40))
    np.put_along_axis(dense, indices.astype(np.int64), weights, axis=1)
    np.testing.assert_array_equal(dense, np.eye(40))


@given(seed=st.integers(0, 2**32 - 1), factor=st.sampled_from([1e-150, 1e-3, 7.0, 1e150]))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_invariance_to_rotation_translation_and_scale(seed, factor):
    points, landmarks = drawn(15, 30, 8, seed)
    indices, _ = nearest_landmarks(points, landmarks, 5)
    weights = local_weights(points, landmarks, indices)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(8, 8)))[0]
    np.testing.assert_allclose(local_weights(points @ rotation, landmarks @ rotation, indices), weights, atol=1e-8)
    np.testing.assert_allclose(local_weights(points + 10, landmarks + 10, indices), weights, atol=1e-8)
    np.testing.assert_allclose(local_weights(points * factor, landmarks * factor, indices), weights, atol=1e-8)


def test_points_in_the_span_of_their_landmarks_reconstruct():
    rng = np.random.default_rng(2)
    landmarks = rng.normal(size=(6, 20))
    mixing = 1.5 * rng.dirichlet(np.ones(6), size=50) - 0.5 / 6  # inside and somewhat outside their hull
    points = mixing @ landmarks
    indices = np.tile(np.arange(6, dtype=np.int32), (50, 1))
    weights = local_weights(points, landmarks, indices)
    scale = np.linalg.norm(points[:, None] - landmarks, axis=2).max(axis=1)
    assert (np.linalg.norm(points - weights @ landmarks, axis=1) / scale).max() < 1e-8
    assert reconstruction_errors(points, landmarks, indices, weights).max() < 1e-7


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_order_of_landmarks_and_blocking_do_not_matter(dtype):
    points, landmarks = drawn(300, 120, 20, dtype=dtype)
    indices, _ = nearest_landmarks(points, landmarks, 7)
    weights = local_weights(points, landmarks, indices)
    parts = [local_weights(points[a:b], landmarks, indices[a:b]) for a, b in ((0, 1), (1, 130), (130, 300))]
    np.testing.assert_array_equal(np.concatenate(parts), weights)
    np.testing.assert_allclose(local_weights(points, landmarks, indices[:, ::-1])[:, ::-1], weights, atol=1e-10)


def test_differences_that_underflow_when_squared():
    points, landmarks = drawn(10, 20, 4)
    indices, _ = nearest_landmarks(points, landmarks, 3)
    weights = local_weights(points, landmarks, indices)
    np.testing.assert_allclose(local_weights(points * 1e-170, landmarks * 1e-170, indices), weights, atol=1e-8)


def test_reconstruction_errors_against_their_definition():
    points, landmarks = drawn(50, 30, 10)
    points[0] = landmarks[3]
    indices, distances = nearest_landmarks(points, landmarks, 4)
    weights = local_weights(points, landmarks, indices)
    errors = reconstruction_errors(points, landmarks, indices, weights)
    residuals = points - np.einsum("nk,nkd->nd", weights, landmarks[indices])
    assert errors[0] == 0
    np.testing.assert_allclose(errors[1:], np.linalg.norm(residuals[1:], axis=1) / np.sqrt(distances[1:, 0]), rtol=1e-9)
    assert errors.max() <= 1 + 1e-6


@pytest.mark.parametrize("regularization", [0.0, 1e-18])
def test_singular_matrices_that_too_little_is_added_to_get_more(regularization):
    """Points of three columns lie in the span of nine landmarks: whatever is added, they are reconstructed."""
    points, landmarks = drawn(200, 60, 3, seed=4)
    indices, _ = nearest_landmarks(points, landmarks, 9)
    weights = local_weights(points, landmarks, indices, regularization)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.einsum("nk,nkd->nd", weights, landmarks[indices]), points, atol=1e-6)


@pytest.mark.parametrize(("n_neighbors", "regularization"), [(2, 1e-10), (3, 1e-10), (4, 1e-3)])
def test_only_more_landmarks_than_columns_are_regularised_as_locally_linear_embedding_is(n_neighbors, regularization):
    points, landmarks = drawn(50, 20, 3)
    indices, _ = nearest_landmarks(points, landmarks, n_neighbors)
    weights = local_weights(points, landmarks, indices)
    np.testing.assert_array_equal(weights, local_weights(points, landmarks, indices, regularization))


def fewest_by_oracle(points, landmarks, indices, most, tolerance):
    """Return weights of the least number of landmarks, of at most `most` (n,), that leave a share `tolerance`."""
    weights = np.zeros(indices.shape)
    for i, row in enumerate(indices):
        alone = np.linalg.norm(points[i] - landmarks[row], axis=1).min()
        for count in range(1, most[i] + 1):
            eps = default_regularization(count, points.shape[1])
            found = oracle_weights(points[i : i + 1], landmarks, row[np.newaxis, :count], eps)[0]
            missed = np.linalg.norm(points[i] - found @ landmarks[row[:count]])
            if missed <= tolerance * alone or count == most[i]:
                weights[i, :count] = found
                break
    return weights


@pytest.mark.parametrize("limits", [Limits(0.6), Limits(radius=1.1), Limits(0.6, 1.1)])
def test_points_are_made_of_the_fewest_landmarks_that_do(limits):
    points, landmarks = drawn(300, 40, 4)
    points[0] = landmarks[3]
    indices, squares = nearest_landmarks(points, landmarks, 6)
    found = limited_weights(points, landmarks, indices, None, limits, squares)
    away = np.linalg.norm(points[:, np.newaxis] - landmarks[indices], axis=2)
    within = np.full(len(points), 6) if limits.radius is None else np.maximum(1, (away <= limits.radius).sum(axis=1))
    expected = fewest_by_oracle(points, landmarks, indices, within, limits.tolerance or 0.0)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    counts = (found != 0).sum(axis=1)
    assert len(np.unique(counts)) > 3
    assert counts[0] == 1
    errors = reconstruction_errors(points, landmarks, indices, found)
    assert (errors[counts < within] <= (limits.tolerance or 0.0) + 1e-9).all()
    alone = limited_weights(points[5:6], landmarks, indices[5:6], None, limits, squares[5:6])
    np.testing.assert_array_equal(alone[0], found[5])


def test_without_limits_weights_are_those_of_all_landmarks():
    points, landmarks = drawn(50, 12, 3)
    indices, squares = nearest_landmarks(points, landmarks, 4)
    found = limited_weights(points, landmarks, indices, None, Limits(), squares)
    np.testing.assert_array_equal(found, local_weights(points, landmarks, indices))
