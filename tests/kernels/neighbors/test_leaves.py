"""Leaves: their parts hold every point, and within a part the neighbours are those of brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors.exact import SketchedRows, about
from scalemani.kernels.neighbors.leaves import (
    FEW_LEADERS,
    LARGE,
    count_leaders,
    index_leaders,
    join_leaf,
    nearest_leaders,
    split_leaf,
)
from scalemani.kernels.neighbors.rerank import Neighbors, no_neighbors


def empty(n_points, k, dtype=np.float64):
    lists = no_neighbors(n_points, k)
    return Neighbors(lists.indices, lists.distances.astype(dtype))


def joined(points, k, size, limits=None, seed=0):
    rows = SketchedRows(points, about(points.astype(np.float64).mean(axis=0), points, 1.0), 1.0)
    limits = np.full(len(points), np.inf) if limits is None else limits
    return join_leaf(rows, empty(len(points), k), limits, size, np.random.default_rng(seed))


def parts_of(points, size, seed=0):
    vectors = about(points.astype(np.float64).mean(axis=0), points, 1.0)
    return list(split_leaf(vectors, size, np.random.default_rng(seed)))


def expected_lists(points, k, parts, limits):
    """Neighbours by SciPy among the points that share a part, ties by number; inf where there are fewer."""
    away = cdist(points.astype(np.float64), points.astype(np.float64))
    met = np.zeros(away.shape, bool)
    for part in parts:
        met[np.ix_(part, part)] = True
    np.fill_diagonal(met, False)
    away[~met | (away > limits[:, np.newaxis])] = np.inf
    order = np.argsort(away, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(away, order, axis=1), order


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(2, 90),
    st.integers(1, 6),
    st.integers(2, 100),
    st.sampled_from([np.float32, np.float64, np.uint8]),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_neighbours_within_parts_are_those_of_brute_force(n_points, k, size, dtype, seed, limited):
    draws = np.random.default_rng(seed)
    points = draws.integers(0, 9, (n_points, 5)).astype(dtype)  # with ties and duplicates
    limits = draws.choice([0.0, 2.0, 3.5, np.inf], n_points) if limited else np.full(n_points, np.inf)
    found = joined(points, k, size, limits, seed)
    distances, order = expected_lists(points, k, parts_of(points, size, seed), limits)
    listed = np.isfinite(distances)
    np.testing.assert_allclose(found.distances[listed], distances[listed], rtol=1e-14)
    # Beyond a limit lists may end or go on: rounding decides.
    beyond = np.isinf(found.distances) | (found.distances > limits[:, np.newaxis] * (1 - 1e-6))
    assert beyond[~listed].all()
    np.testing.assert_array_equal(found.indices[listed], order[listed])


@pytest.mark.parametrize("size", [20, 100])
def test_parts_hold_every_point_and_none_is_large(size):
    points = np.random.default_rng(0).normal(size=(1000, 12)).astype(np.float32)
    parts = parts_of(points, size)
    assert max(map(len, parts)) <= LARGE * size
    shares = np.bincount(np.concatenate(parts), minlength=1000)
    assert shares.min() >= 1
    assert shares.mean() > 1.5  # of the first split, a point is in two
    assert all(np.all(np.diff(part) > 0) for part in parts)


def test_a_leaf_that_is_not_large_is_one_part():
    points = np.random.default_rng(0).normal(size=(250, 3)).astype(np.float32)
    (part,) = parts_of(points, 100)
    np.testing.assert_array_equal(part, np.arange(250))


def test_equal_points_are_cut():
    parts = parts_of(np.ones((1000, 4), np.float32), 50)
    assert max(map(len, parts)) <= LARGE * 50
    assert len(np.unique(np.concatenate(parts))) == 1000
    lists = joined(np.ones((1000, 4), np.float32), 3, 50)
    assert (lists.distances == 0).all()


@pytest.mark.parametrize("n_leaders", [60, FEW_LEADERS + 400])
def test_leaders_are_near_and_those_of_a_point_depend_on_it_alone(n_leaders):
    draws = np.random.default_rng(2)
    vectors, leaders = (draws.normal(size=(count, 6)).astype(np.float32) for count in (700, n_leaders))
    index = index_leaders(leaders)
    found = nearest_leaders(vectors, index, 4)
    away = cdist(vectors, leaders)
    nearest = np.sort(away, axis=1)[:, :4]
    reached = np.take_along_axis(away, found.astype(np.int64), axis=1)
    near = np.mean(reached <= nearest[:, -1:] * (1 + 1e-5))
    assert near == 1.0 if n_leaders <= FEW_LEADERS else near > 0.9
    for part in (slice(0, 1), slice(100, 333)):
        np.testing.assert_array_equal(nearest_leaders(vectors[part], index, 4), found[part])


@pytest.mark.parametrize(("n_points", "count"), [(3, 3), (1000, 40), (10, 4), (1001, 41)])
def test_leaders_are_as_many_as_leaves_of_the_size(n_points, count):
    assert count_leaders(n_points, 100, 4) == count
