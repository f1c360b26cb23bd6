"""Lists of neighbours compared with all points, by loops."""

import functools

import numpy as np
import pytest

from scalemani.kernels.neighbors.plain import compared, listed_distances, merged, nearest_by, recall_of
from scalemani.kernels.neighbors.rerank import no_neighbors

K = 5


def true_lists(points):
    away = ((points[:, np.newaxis].astype(float) - points) ** 2).sum(axis=2)
    np.fill_diagonal(away, np.inf)
    return np.argsort(away, axis=1, kind="stable")[:, :K].astype(np.int32)


def recall_by_parts(points, lists, rows, size):
    starts = range(0, len(points), size)
    parts = (compared(points[rows], rows, lists[rows], points[start : start + size], start) for start in starts)
    return recall_of(functools.reduce(merged, parts), lists[rows])


@pytest.mark.parametrize("size", [1, 3, 100, 700])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_true_lists_have_a_recall_of_one_for_any_parts(size, dtype):
    points = np.random.default_rng(0).integers(0, 20, (700, 3)).astype(dtype)  # with ties and duplicates
    assert recall_by_parts(points, true_lists(points), np.arange(0, 700, 7), size) == 1.0


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
def test_distances_far_from_the_origin_keep_their_digits(offset):
    """Products of such points cancel: all digits of a distance are lost at the last offset."""
    points = np.random.default_rng(2).normal(size=(300, 4)) + offset
    assert recall_by_parts(points, true_lists(points), np.arange(0, 300, 3), 128) == 1.0
    whole = compared(points[:9], np.arange(9), true_lists(points)[:9], points, 0)
    away = np.sort(((points[:9, np.newaxis] - points) ** 2).sum(axis=2), axis=1)[:, 1 : K + 1]
    np.testing.assert_allclose(np.sort(whole.nearest, axis=1), away, rtol=1e-9)


def test_every_wrong_entry_counts():
    points = np.random.default_rng(1).normal(size=(300, 4))
    lists, rows = true_lists(points), np.arange(300)
    farthest = np.argmax(((points[:, np.newaxis] - points) ** 2).sum(axis=2), axis=1)
    for number, wrong in enumerate([farthest, rows, lists[:, 0], np.full(300, -1)]):
        damaged = lists.copy()
        damaged[: 30 * (number + 1), 2] = wrong[: 30 * (number + 1)]
        assert recall_by_parts(points, damaged, rows, 128) == pytest.approx(1 - 30 * (number + 1) / (300 * K))


def test_neighbours_that_are_equally_far_in_the_dtype_of_the_lists_tie():
    points = np.concatenate([np.zeros((1, 2)), np.stack([1 + 1e-8 * np.arange(6), np.zeros(6)], axis=1)])
    last = np.array([[5, 6]])  # by 5e-8 farther than the nearest two
    whole = compared(points[:1], np.array([0]), last, points, 0)
    assert recall_of(whole, last, np.float32) == 1.0
    assert recall_of(whole, last, np.float64) == 0.0


@pytest.mark.parametrize("size", [1, 90, 700])
def test_neighbours_in_a_metric_are_those_of_loops_for_any_parts(size):
    points, queries = np.random.default_rng(6).normal(size=(700, 3)), np.arange(0, 700, 10)
    away = np.abs(points[queries, np.newaxis] - points).sum(axis=2)
    np.testing.assert_allclose(
        listed_distances("manhattan", points[queries], true_lists(points)[queries], points),
        np.take_along_axis(away, true_lists(points)[queries].astype(int), axis=1),
    )
    away[np.arange(len(queries)), queries] = np.inf
    lists = no_neighbors(len(queries), K)
    for start in range(0, 700, size):
        lists = nearest_by("manhattan", points[queries], queries, points[start : start + size], start, lists)
    np.testing.assert_allclose(np.sort(lists.distances, axis=1), np.sort(away, axis=1)[:, :K])
    np.testing.assert_allclose(np.take_along_axis(away, lists.indices.astype(int), axis=1), lists.distances)
