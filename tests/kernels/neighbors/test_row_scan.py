"""Rows that a function compares: the nearest of all pairs, by SciPy's distances, ties by index."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.config.metrics import METRICS, compares_rows
from scalemani.kernels.neighbors.exact import SketchedRows, nearest_among
from scalemani.kernels.neighbors.plain import compared, recall_of
from scalemani.kernels.neighbors.rerank import Neighbors, no_neighbors, refine_neighbors
from scalemani.kernels.rows.comparisons import COMPARISONS

COMPARED = sorted({*filter(compares_rows, METRICS)} - {"haversine", "wasserstein"})  # by SciPy, of rows as they are
N, K = 300, 7


def table(dtype, n_features=33, seed=0):
    draws = np.random.default_rng(seed)
    return (10 * draws.gamma(1.0, size=(N, n_features)) + 1).astype(dtype)


def searched(points, metric, empty, tile=N, limits=np.inf):
    """Return the nearest of all rows, of which so many at a time are looked at."""
    rows = SketchedRows(points, np.empty((len(points), 0), np.float32), 1.0, COMPARISONS[metric].distance)
    lists, reaches = empty, np.full(len(points), limits)
    for start in range(0, len(points), tile):
        part = rows.part(slice(start, start + tile))
        lists = nearest_among(rows, np.arange(len(points)), part, start, lists, reaches)
    return lists


def by_index(away, k):
    """Return the k nearest by distances (n, n), ties by index, themselves left out."""
    np.fill_diagonal(away, np.inf)
    indices = np.argsort(away, axis=1, kind="stable")[:, :k]
    return indices, np.take_along_axis(away, indices, axis=1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("metric", COMPARED)
def test_neighbors_are_those_of_scipy_whatever_the_tiles(metric, dtype):
    points = table(dtype)
    lists = searched(points, metric, no_neighbors(N, K))
    indices, distances = by_index(cdist(points.astype(float), points.astype(float), METRICS[metric].scipy), K)
    np.testing.assert_allclose(lists.distances, distances, rtol=1e-12)
    if dtype != "uint8":  # whose ties are in the order of other roundings than SciPy's
        np.testing.assert_array_equal(lists.indices, indices)
    parts = searched(points, metric, no_neighbors(N, K), 41)
    np.testing.assert_array_equal(parts.indices, lists.indices)
    np.testing.assert_array_equal(parts.distances, lists.distances)


@pytest.mark.parametrize("metric", ["chebyshev", "manhattan"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_are_equally_far_come_in_the_order_of_their_indices(metric, dtype):
    points = np.random.default_rng(1).integers(0, 3, (N, 5)).astype(dtype)
    empty = no_neighbors(N, 20)
    lists = searched(points, metric, Neighbors(empty.indices, empty.distances.astype(dtype)))
    indices, distances = by_index(cdist(points, points, METRICS[metric].scipy), 20)
    np.testing.assert_array_equal(lists.indices, indices)
    np.testing.assert_array_equal(lists.distances, distances)


@pytest.mark.parametrize("metric", COMPARED)
def test_lists_are_complete_up_to_a_limit_and_hold_nothing_beyond(metric):
    points = table("float64")
    _, distances = by_index(cdist(points, points, METRICS[metric].scipy), K)
    limit = float(np.median(distances))
    lists = searched(points, metric, no_neighbors(N, K), limits=limit)
    expected = np.where(distances <= limit, distances, np.inf)
    np.testing.assert_allclose(lists.distances, expected, rtol=1e-12)


@pytest.mark.parametrize("metric", COMPARED)
def test_candidates_are_ranked_by_the_distance(metric):
    points = table("float64")
    candidates = np.random.default_rng(2).integers(0, N, (N, 40)).astype(np.int32)
    candidates[candidates == np.arange(N)[:, np.newaxis]] = -1
    own = COMPARISONS[metric].distance
    found, _ = refine_neighbors(own, points, points, np.arange(N), candidates, no_neighbors(N, K))
    away = cdist(points, points, METRICS[metric].scipy)
    for row, listed in enumerate(found.indices):
        known = np.unique(candidates[row][candidates[row] >= 0])
        np.testing.assert_array_equal(listed, known[np.argsort(away[row, known], kind="stable")[:K]])


@pytest.mark.parametrize("metric", COMPARED)
def test_plain_comparison_counts_what_lists_miss(metric):
    points = table("float64")
    lists, _ = by_index(cdist(points, points, METRICS[metric].scipy), K + 1)
    missing = lists[:, :K].copy()
    missing[:30, K - 1] = lists[:30, K]
    whole = compared(points, np.arange(N), missing, points, 0, metric)
    assert recall_of(whole, missing) == pytest.approx(1 - 30 / (N * K))
