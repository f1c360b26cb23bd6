from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.landmarks.bhattacharyya import bhattacharyya_distances, bhattacharyya_neighbors
from scalemani.kernels.landmarks.geometry import local_geometry

ASSIGNED = 4  # nearest landmarks to whose neighbourhoods a point may belong


def drawn(n_points=3000, n_columns=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n_points, n_columns))


def oracle_rows(points, landmarks, neighborhood):
    """Return the points around each landmark: its nearest, of those that have it among their nearest few."""
    distances = np.linalg.norm(points[:, np.newaxis] - landmarks, axis=2)
    assigned = np.argsort(np.argsort(distances, axis=1), axis=1) < ASSIGNED
    for landmark in range(len(landmarks)):
        own = np.flatnonzero(assigned[:, landmark])
        yield own[np.argsort(distances[own, landmark], kind="stable")[:neighborhood]]


@pytest.mark.parametrize("neighborhood", [7, 60, 5000])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_covariances_are_those_of_the_points_around_each_landmark(neighborhood, offset):
    points = drawn() + offset
    landmarks = points[::150]
    full = local_geometry(points, landmarks, neighborhood)
    diagonal = local_geometry(points, landmarks, neighborhood, diagonal=True)
    for landmark, rows in enumerate(oracle_rows(points, landmarks, neighborhood)):
        expected = np.cov(points[rows].T - landmarks[landmark][:, np.newaxis], bias=True)
        np.testing.assert_allclose(full.covariances[landmark], expected, atol=1e-9 * np.trace(expected))
        np.testing.assert_allclose(diagonal.covariances[landmark], np.diag(expected), atol=1e-9 * np.trace(expected))
        assert full.counts[landmark] == len(rows)
    assert not full.regularized.any()


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
            expected = local_geometry(points, landmarks, 40, diagonal)
            found = local_geometry(points, landmarks, 40, diagonal, threads)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
            neighbors = bhattacharyya_neighbors(landmarks, found.covariances, 9, threads)
            np.testing.assert_array_equal(neighbors, bhattacharyya_neighbors(landmarks, found.covariances, 9))
            distances = bhattacharyya_distances(landmarks, found.covariances, np.arange(len(landmarks)))
            np.fill_diagonal(distances, np.inf)
            np.testing.assert_array_equal(neighbors, np.argsort(distances, axis=1, kind="stable")[:, :9])
