from dataclasses import replace

import numpy as np
import pytest

from scalemani.errors import DataError
from scalemani.kernels.landmarks.selection import LANDMARK_METHODS, Choice, choice_class, selected_landmarks


def selected_rows(points, n_landmarks, method, *others):
    """Return the rows of landmarks, which are where they say."""
    landmarks, rows, _ = selected_landmarks(points, choice_class(method)(n_landmarks, method, *others))
    np.testing.assert_array_equal(landmarks, points[rows])
    return rows


ON_DATA = [method for method in LANDMARK_METHODS if method != "gp"]


class Reader:
    """Points that are read by rows and count how many are read at a time."""

    def __init__(self, points):
        self.points, self.most = points, 0

    def __len__(self):
        return len(self.points)

    def __getitem__(self, rows):
        self.most = max(self.most, len(rows))
        return self.points[rows]


@pytest.mark.parametrize("method", ON_DATA)
def test_rows_are_distinct_ascending_and_the_same_however_points_are_read(method):
    points = np.random.default_rng(0).normal(size=(300 if method == "dpp-exact" else 3000, 4))
    reader = Reader(points)
    rows = selected_rows(points, 40, method, 3, 500)
    np.testing.assert_array_equal(selected_rows(reader, 40, method, 3, 500), rows)
    assert rows.dtype == np.int64
    assert len(rows) == 40
    assert np.all(np.diff(rows) > 0)
    assert reader.most <= 1024
    assert len({tuple(selected_rows(points, 40, method, seed, 500)) for seed in range(4)}) > 1


@pytest.mark.parametrize("method", ON_DATA)
@pytest.mark.parametrize("n_points", [7, 1500])
def test_as_many_landmarks_as_distinct_points_are_all_of_them(method, n_points):
    points = np.arange(7.0)[np.random.default_rng(1).permutation(n_points) % 7][:, np.newaxis]
    rows = selected_rows(points, 7, method, 0, n_points)
    np.testing.assert_array_equal(np.sort(points[rows, 0]), np.arange(7.0))
    if n_points > 7:
        with pytest.raises(DataError, match=r"8 landmarks .* only 7 distinct"):
            selected_rows(points, 8, method, 0, n_points)


@pytest.mark.parametrize("method", ["kmeans", "kmeans++"])
def test_kmeans_landmarks_are_nearer_to_the_points_than_random_ones(method):
    draws = np.random.default_rng(2)
    points = draws.normal(size=(4000, 5)) + 20 * draws.integers(0, 3, (4000, 1))

    def cost(rows):
        return np.square(points[:, None] - points[rows][None]).sum(axis=2).min(axis=1).mean()

    random = np.mean([cost(selected_rows(points, 30, "random", seed, 4000)) for seed in range(3)])
    assert cost(selected_rows(points, 30, method, 0, 4000)) < 0.9 * random


def test_methods_that_compare_all_pairs_choose_within_the_sample():
    points = np.random.default_rng(3).normal(size=(5000, 2))
    points[17] = 1e6
    chosen = [17 in selected_rows(points, 20, "minmax", seed, 250) for seed in range(60)]
    assert 0 < np.mean(chosen) < 0.3


@pytest.mark.parametrize("method", ["kmeans", "kmeans++"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_centroids_that_are_not_snapped_are_those_next_to_the_snapped_ones_in_float64(method, dtype):
    points = np.random.default_rng(4).integers(0, 255, (3000, 4)).astype(dtype)
    reader, choice = Reader(points), Choice(40, method, 3, 500)
    centroids, rows, _ = selected_landmarks(reader, replace(choice, snap=False))
    assert rows is None
    assert reader.most <= 1024
    assert centroids.dtype == np.float64
    assert len(np.unique(centroids, axis=0)) == 40
    nearest = np.square(centroids[:, None] - points[None].astype(float)).sum(axis=2).argmin(axis=1)
    snapped = selected_landmarks(points, choice).rows
    assert np.isin(snapped, nearest).mean() > 0.9  # some nearest points are taken by two centroids
    np.testing.assert_array_equal(selected_landmarks(points, replace(choice, snap=False)).points, centroids)


def test_as_many_centroids_as_distinct_points_are_the_points():
    points = np.arange(7.0)[np.random.default_rng(1).permutation(1500) % 7][:, np.newaxis]
    centroids = selected_landmarks(points, Choice(7, "kmeans", 0, 1500, snap=False)).points
    np.testing.assert_allclose(np.sort(centroids[:, 0]), np.arange(7.0), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_landmarks_of_a_gaussian_process_are_the_same_however_points_are_read(dtype):
    points = np.random.default_rng(4).integers(0, 255, (3000, 4)).astype(dtype)
    choice = choice_class("gp")(15, "gp", 3, 2000, steps=40, batch_points=700)
    landmarks, rows, certificates = selected_landmarks(Reader(points), choice)
    assert (rows, landmarks.shape, landmarks.dtype) == (None, (15, 4), np.float64)
    assert certificates["first_objective"] > certificates["last_objective"] > 0
    np.testing.assert_array_equal(selected_landmarks(points, choice).points, landmarks)
    others = replace(choice, seed=4), replace(choice, sample_points=1000)
    assert not any(np.array_equal(selected_landmarks(points, other).points, landmarks) for other in others)


@pytest.mark.parametrize("method", ["gp", "gp-active"])
def test_landmarks_of_a_gaussian_process_follow_its_bandwidth(method):
    points = np.random.default_rng(4).normal(size=(800, 6))
    choice = choice_class(method)(10, method, steps=100)
    narrow, wide = (selected_landmarks(points, replace(choice, eta=eta)).points for eta in (1.0, 50.0))
    assert not np.array_equal(narrow, wide)
