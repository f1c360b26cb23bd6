import numpy as np
import pytest

from scalemani.kernels.landmarks.kmeans import (
    SNAP_CANDIDATES,
    minibatch_start,
    minibatch_step,
    snap_rows,
    snap_step,
)
from scalemani.kernels.landmarks.nearest import no_rows


def squared_distances(points, others):
    difference = points[:, np.newaxis].astype(np.float64) - others[np.newaxis].astype(np.float64)
    return (difference**2).sum(axis=2)


def drawn(n_points, n_columns, dtype, seed=0):
    values = np.random.default_rng(seed).integers(0, 256, (n_points, n_columns))
    return values.astype(dtype)


def in_units_of_points(state):
    return state.centroids * state.scale + state.mean


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_minibatch_steps_are_running_means(dtype):
    points = drawn(600, 70, dtype)
    state = minibatch_start(points, points[:120])
    centroids, counts = points[:120].astype(np.float64), np.zeros(120)
    for start in range(0, 600, 200):
        batch = points[start : start + 200]
        labels = squared_distances(batch, centroids).argmin(axis=1)
        for label in np.unique(labels):
            members = batch[labels == label].astype(np.float64)
            centroids[label] = (centroids[label] * counts[label] + members.sum(axis=0)) / (counts[label] + len(members))
            counts[label] += len(members)
        state = minibatch_step(state, batch)
    np.testing.assert_array_equal(state.counts, counts)
    np.testing.assert_allclose(in_units_of_points(state), centroids, rtol=1e-5, atol=1e-3)
    assert state.step == 3


def test_snapping_takes_nearest_points_whatever_the_blocks():
    points = np.random.default_rng(1).normal(size=(900, 6))
    state = minibatch_step(minibatch_start(points, points[:30]), points)
    expected = squared_distances(in_units_of_points(state), points).argmin(axis=1)
    results = []
    for blocks in ([(0, 900)], [(0, 5), (5, 400), (400, 900)], [(400, 900), (0, 400)]):
        snapped = no_rows(30, SNAP_CANDIDATES)
        for start, stop in blocks:
            snapped = snap_step(snapped, state, points[start:stop], start)
        results.append(snap_rows(snapped))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    assert len(set(results[0].tolist())) == 30
    assert (results[0] == expected).mean() > 0.9  # the others had their nearest point taken


def test_snapping_tells_centroids_without_a_point():
    points = np.array([[0.0], [1.0]])
    state = minibatch_start(points, np.array([[0.0], [0.1], [1.0]]))
    rows = snap_rows(snap_step(no_rows(3, SNAP_CANDIDATES), state, points, 0))
    assert rows.tolist() == [0, -1, 1]


def test_a_step_leaves_its_state_alone_and_centroids_without_points_where_they_are():
    points = np.random.default_rng(0).normal(size=(50, 3))
    seeds = np.concatenate([points[:4], np.full((1, 3), 1e3)])
    state = minibatch_start(points, seeds)
    before = state.centroids.copy(), state.counts.copy()
    after = minibatch_step(state, points)
    np.testing.assert_array_equal(state.centroids, before[0])
    np.testing.assert_array_equal(state.counts, before[1])
    assert (after.counts[4], after.counts.sum()) == (0, 50)
    np.testing.assert_allclose(in_units_of_points(after)[4], 1e3)


def test_snapping_keeps_the_nearest_of_all_blocks():
    points = np.random.default_rng(2).normal(size=(400, 5))
    state = minibatch_start(points, points[:7] + 0.01)
    snapped = no_rows(7, SNAP_CANDIDATES)
    for start in (0, 100, 200, 300):
        snapped = snap_step(snapped, state, points[start : start + 100], start)
    order = np.argsort(squared_distances(in_units_of_points(state), points), axis=1)[:, :SNAP_CANDIDATES]
    np.testing.assert_array_equal(snapped.rows, order)
    away = np.take_along_axis(squared_distances(in_units_of_points(state), points), order, axis=1)
    np.testing.assert_allclose(snapped.squared_distances * state.scale**2, away, rtol=1e-3, atol=1e-6)


def test_equal_seeds_and_points_have_a_unit():
    state = minibatch_start(np.ones((5, 2)), np.ones((1, 2)))
    assert state.scale == 1.0
    np.testing.assert_array_equal(in_units_of_points(minibatch_step(state, np.ones((5, 2)))), 1.0)
