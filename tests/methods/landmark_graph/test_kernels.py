from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from scalemani.kernels.arrays.workspace import Workspace
from scalemani.methods.landmark_graph.kernels import (
    bhattacharyya_distances,
    bhattacharyya_neighbors,
    landmark_kernel,
    local_geometry,
)


def drawn_landmarks(n_points=60, seed=0):
    return np.random.default_rng(seed).normal(size=(n_points, 3))


def all_others(n_points):
    return np.array([[other for other in range(n_points) if other != row] for row in range(n_points)])


def test_the_kernel_joins_neighbours_both_ways():
    landmarks = drawn_landmarks(5)
    kernel = landmark_kernel(landmarks, np.array([[1], [2], [1], [0], [0]]), 0.7).toarray()
    expected = np.eye(5)
    for i, j in [(0, 1), (1, 2), (0, 3), (0, 4)]:
        expected[i, j] = expected[j, i] = np.exp(-((landmarks[i] - landmarks[j]) ** 2).sum() / (2 * 0.49))
    np.testing.assert_allclose(kernel, expected, rtol=1e-12)
    np.testing.assert_array_equal(kernel, kernel.T)


def drawn(n_points=3000, n_columns=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n_points, n_columns))


def check_against_brute_force(points, landmarks, neighborhood):
    """Compare covariances and counts with those of the nearest points of each landmark, by all distances."""
    full = local_geometry(points, landmarks, neighborhood)
    diagonal = local_geometry(points, landmarks, neighborhood, diagonal=True)
    points, landmarks = points.astype(np.float64), landmarks.astype(np.float64)
    for number, landmark in enumerate(landmarks):
        nearest = points[np.argsort(np.linalg.norm(points - landmark, axis=1), kind="stable")[:neighborhood]]
        expected = np.cov(nearest.T - landmark[:, np.newaxis], bias=True)
        np.testing.assert_allclose(full.covariances[number], expected, atol=1e-9 * np.trace(expected))
        np.testing.assert_allclose(diagonal.covariances[number], np.diag(expected), atol=1e-9 * np.trace(expected))
    np.testing.assert_array_equal(full.counts, min(neighborhood, len(points)))
    np.testing.assert_array_equal(diagonal.counts, full.counts)
    assert not full.regularized.any()


@pytest.mark.parametrize("neighborhood", [7, 60, 1200, 5000])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_covariances_are_those_of_the_nearest_points_of_each_landmark(neighborhood, offset):
    points = drawn() + offset
    check_against_brute_force(points, points[::150], neighborhood)


@pytest.mark.parametrize("neighborhood", [40, 700])
def test_so_they_are_where_bounds_by_sketches_skip_points_some_of_them_far_out(neighborhood):
    """Of more landmarks than are scanned without bounds, and of two groups; rows beyond the reach of sketches too."""
    points = drawn(2500, 5)
    points[::500] *= 1e6
    points[7] = 3e9
    check_against_brute_force(points, points[1::18], neighborhood)
    check_against_brute_force(points.astype(np.float32), points[1::18] + 1e-3, neighborhood)


def test_clusters_of_different_density_have_neighbourhoods_of_one_size():
    """Most landmarks are in the sparse cluster: points of the dense one have few of them among their nearest."""
    dense, sparse = 0.01 * drawn(2000), 20 + 5 * drawn(300, seed=1)
    landmarks = np.concatenate([dense[:4], sparse[::3]])
    check_against_brute_force(np.concatenate([dense, sparse]), landmarks, 250)


def test_points_as_far_as_the_last_one_belong_to_a_neighbourhood_in_any_order():
    grid = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0)), axis=-1).reshape(-1, 2)
    found = local_geometry(grid, np.array([[4.0, 4.0]]), 6)
    assert found.counts.tolist() == [9]  # itself, four at 1, four at the square root of 2
    np.testing.assert_allclose(found.covariances[0], np.eye(2) * 6 / 9, rtol=1e-12)
    again = local_geometry(grid[np.random.default_rng(0).permutation(81)], np.array([[4.0, 4.0]]), 6)
    np.testing.assert_allclose(again.covariances, found.covariances, rtol=1e-12)


def test_fewer_points_than_dimensions_are_regularised_and_said_so():
    points = drawn(400, 10)
    found = local_geometry(points, points[:20], 5)
    assert found.regularized.all()
    values = np.linalg.eigvalsh(found.covariances)
    np.testing.assert_allclose(values[:, 0], 1e-3 * (values.sum(axis=1) / 10) / 1.001, rtol=1e-6)


def test_covariances_of_repeated_points_can_be_inverted():
    points = np.repeat(drawn(6), 100, axis=0)
    for diagonal in (False, True):
        found = local_geometry(points, points[::100], 50, diagonal)
        assert found.regularized.all()
        distances = bhattacharyya_distances(points[::100], found.covariances, np.arange(6))
        assert np.all(np.isfinite(distances))


def test_threads_change_no_bit():
    """Six tiles of points, more than are worked on together; distances of more landmarks than make one panel."""
    points = drawn(6000)
    landmarks = points[::40]
    with ThreadPoolExecutor(3) as pool:
        threads = Workspace(pool.map)
        for diagonal in (False, True):
            found = local_geometry(points, landmarks, 40, diagonal)
            neighbors = bhattacharyya_neighbors(landmarks, found.covariances, 9, threads)
            np.testing.assert_array_equal(neighbors, bhattacharyya_neighbors(landmarks, found.covariances, 9))
            distances = bhattacharyya_distances(landmarks, found.covariances, np.arange(len(landmarks)))
            np.fill_diagonal(distances, np.inf)
            np.testing.assert_array_equal(neighbors, np.argsort(distances, axis=1, kind="stable")[:, :9])


def test_distances_are_those_of_overlaps_of_gaussians():
    """The Bhattacharyya distance is minus the logarithm of the integral of sqrt(p q)."""
    landmarks, deviations = np.array([[0.0], [1.3]]), np.array([0.7, 1.9])
    line = np.linspace(-30, 30, 200_001)
    densities = [
        np.exp(-((line - place) ** 2) / (2 * deviation**2)) / (deviation * np.sqrt(2 * np.pi))
        for place, deviation in zip(landmarks[:, 0], deviations, strict=True)
    ]
    expected = -np.log(np.trapezoid(np.sqrt(densities[0] * densities[1]), line))
    for covariances in (deviations[:, np.newaxis] ** 2, deviations[:, np.newaxis, np.newaxis] ** 2):
        found = bhattacharyya_distances(landmarks, covariances, np.arange(2))
        np.testing.assert_allclose(found, [[0, expected], [expected, 0]], rtol=1e-9)


def test_diagonal_and_full_covariances_agree_and_distances_follow_no_axes():
    draws = np.random.default_rng(1)
    landmarks, variances = draws.normal(size=(9, 4)), draws.random(size=(9, 4)) + 0.1
    full = np.stack([np.diag(row) for row in variances])
    expected = bhattacharyya_distances(landmarks, variances, np.arange(9))
    np.testing.assert_allclose(bhattacharyya_distances(landmarks, full, np.arange(9)), expected, rtol=1e-10)
    turn = np.linalg.qr(draws.normal(size=(4, 4)))[0]
    turned = bhattacharyya_distances(landmarks @ turn, turn.T @ full @ turn, np.arange(9))
    np.testing.assert_allclose(turned, expected, rtol=1e-9, atol=1e-12)


def test_neighbours_stay_on_their_sheet():
    """Landmarks on two sheets are nearer across than along; their Gaussians are flat and far apart."""
    draws = np.random.default_rng(2)
    sheets = draws.random(size=(8000, 3)) * [10, 10, 0.01]
    sheets[4000:, 2] += 0.8
    rows = np.concatenate([draws.choice(4000, 60, replace=False), 4000 + draws.choice(4000, 60, replace=False)])
    landmarks = sheets[rows]
    found = local_geometry(sheets, landmarks, 40)
    neighbors = bhattacharyya_neighbors(landmarks, found.covariances, 4)
    nearest = np.argsort(np.linalg.norm(landmarks[:, np.newaxis] - landmarks, axis=2), axis=1)[:, 1:5]
    side = np.arange(120) // 60
    assert np.mean(side[neighbors] == side[:, np.newaxis]) > 0.98
    assert np.mean(side[nearest] == side[:, np.newaxis]) < 0.8
    assert not np.any(neighbors == np.arange(120)[:, np.newaxis])
