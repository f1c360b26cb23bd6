import numpy as np
import pytest

from scalemani.kernels.landmarks.kmeans import SNAP_CANDIDATES, minibatch_start, minibatch_step, snapped_rows
from scalemani.kernels.landmarks.nearest import nearest_rows
from tests.kernels.oracles import drawn, squared_distances


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_minibatch_steps_are_running_means(dtype):
    points = drawn(600, 70, dtype)
    state = minibatch_start(points, points, points[:120])
    centroids, counts = points[:120].astype(np.float64), np.zeros(120)
    for start in range(0, 600, 200):
        batch = points[start : start + 200]
        labels = squared_distances(batch, centroids).argmin(axis=1)
        for label in np.unique(labels):
            members = batch[labels == label].astype(np.float64)
            centroids[label] = (centroids[label] * counts[label] + members.sum(axis=0)) / (counts[label] + len(members))
            counts[label] += len(members)
        state = minibatch_step(state, np.arange(start, start + 200))
    np.testing.assert_array_equal(state.counts, counts)
    np.testing.assert_allclose(state.unscaled(), centroids, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("far", [1e6, 1e20])
def test_a_far_seed_leaves_the_means_of_the_others_as_they_are(far):
    points = np.random.default_rng(6).normal(size=(600, 5))
    points[7] *= far
    state = minibatch_step(minibatch_start(points, points, points[:30]), np.arange(600))
    labels = squared_distances(points, points[:30]).argmin(axis=1)
    expected = np.stack([points[labels == label].mean(axis=0) for label in range(30)])
    np.testing.assert_allclose(state.unscaled(), expected, rtol=1e-5, atol=1e-5)


def test_snapping_takes_nearest_points_that_no_other_centroid_takes():
    points = np.random.default_rng(1).normal(size=(2100, 6))
    state = minibatch_step(minibatch_start(points, points, points[:30]), np.arange(2100))
    expected = squared_distances(state.unscaled(), points).argmin(axis=1)
    rows = snapped_rows(state)
    assert len(set(rows.tolist())) == 30
    assert (rows == expected).mean() > 0.9  # the others had their nearest point taken


def test_snapping_tells_centroids_without_a_point():
    points = np.array([[0.0], [1.0]])
    state = minibatch_start(points, points, np.array([[0.0], [0.1], [1.0]]))
    assert snapped_rows(state).tolist() == [0, -1, 1]


def test_a_step_leaves_its_state_alone_and_centroids_without_points_where_they_are():
    points = np.random.default_rng(0).normal(size=(50, 3))
    seeds = np.concatenate([points[:4], np.full((1, 3), 1e3)])
    state = minibatch_start(points, points, seeds)
    before = state.centroids.copy(), state.counts.copy()
    after = minibatch_step(state, np.arange(50))
    np.testing.assert_array_equal(state.centroids, before[0])
    np.testing.assert_array_equal(state.counts, before[1])
    assert (after.counts[4], after.counts.sum()) == (0, 50)
    np.testing.assert_allclose(after.unscaled()[4], 1e3)


def test_snapping_looks_among_the_nearest_points_of_all_tiles():
    points = np.random.default_rng(2).normal(size=(2400, 5))
    state = minibatch_start(points, points, points[:7] + 0.01)
    rows, squares = nearest_rows(state.points, state.centroids.astype(np.float32), SNAP_CANDIDATES, state.basis)
    order = np.argsort(squared_distances(state.unscaled(), points), axis=1)[:, :SNAP_CANDIDATES]
    np.testing.assert_array_equal(rows, order)
    away = np.take_along_axis(squared_distances(state.unscaled(), points), order, axis=1)
    np.testing.assert_allclose(squares * state.points.scale**2, away, rtol=1e-3, atol=1e-6)


def test_equal_seeds_and_points_have_a_unit():
    state = minibatch_start(np.ones((5, 2)), np.ones((5, 2)), np.ones((1, 2)))
    assert state.points.scale == 1.0
    np.testing.assert_array_equal(minibatch_step(state, np.arange(5)).unscaled(), 1.0)
