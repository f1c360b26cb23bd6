"""Wide points: the same neighbours as by looking at every pair, whatever products in float32 lose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.neighbors import wide
from scalemani.kernels.neighbors.rerank import no_neighbors
from scalemani.kernels.neighbors.wide import Products, wide_neighbors
from tests.kernels.neighbors.test_exact import brute_force, difficult_points


def found(points, k, block):
    lists, labels = no_neighbors(len(points), k), np.arange(len(points))
    limits = np.full(len(points), np.inf)
    for start in range(0, len(points), block):
        lists = wide_neighbors(points, labels, points[start : start + block], start, lists, limits)
    return lists


@settings(max_examples=100, deadline=None, derandomize=True)
@given(difficult_points(), st.integers(1, 12), st.integers(1, 60))
def test_neighbours_are_those_of_brute_force(points, k, block):
    k = min(k, len(points) - 1)
    lists = found(points, k, block)
    indices, distances = brute_force(points, k)
    np.testing.assert_allclose(lists.distances, distances, rtol=1e-7)
    differing = lists.indices != indices
    np.testing.assert_allclose(lists.distances[differing], distances[differing], rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_points_of_many_thousand_features_in_several_tiles(dtype, monkeypatch):
    monkeypatch.setattr(wide, "ROWS_AT_ONCE", 50)
    points = (np.random.default_rng(0).random((220, 12_000)) * 255).astype(dtype)
    lists = found(points, 7, 100)
    squares = np.array([[np.sum((a - b) ** 2) for b in points.astype(float)] for a in points.astype(float)])
    np.fill_diagonal(squares, np.inf)
    np.testing.assert_array_equal(lists.indices, np.argsort(squares, axis=1, kind="stable")[:, :7])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.sampled_from([10, 1000, 60_000]), st.sampled_from([0.0, 1.0, 1e3]))
def test_bounds_lie_below_the_distances_and_not_far_below(seed, features, offset):
    points = (np.random.default_rng(seed).normal(size=(6, features)) + offset).astype(np.float32)
    center = points.mean(axis=0, dtype=np.float64)
    products = Products.of(points, center)
    bounds = products.least_squares(points)
    wide_points = points.astype(np.float64)
    squares = np.array([[np.sum((a - b) ** 2) for b in wide_points] for a in wide_points])
    lengths = np.sum((wide_points - center) ** 2, axis=1)
    assert np.all(bounds <= squares)
    assert np.all(bounds >= squares - 2.1 * wide.PRODUCT_SHARE * (lengths[:, None] + lengths))
