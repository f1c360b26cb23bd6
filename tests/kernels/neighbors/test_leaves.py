"""Leaves: their parts hold every point, and within a part the neighbours are those of brute force."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from scalemani.config.metrics import METRICS
from scalemani.kernels.neighbors.exact import about
from scalemani.kernels.neighbors.leaves import (
    FEW_LEADERS,
    LARGE,
    Candidates,
    count_leaders,
    index_leaders,
    join_leaf,
    merge_candidates,
    nearest_leaders,
    split_leaf,
)
from scalemani.kernels.rows import byte_products
from scalemani.kernels.rows.byte_products import MOST_STEPS, step_of_rows
from scalemani.kernels.rows.comparisons import COMPARISONS
from scalemani.kernels.rows.reduced import COORDINATES, ComparedTable

COMPARED = sorted(COMPARISONS.keys() - {"haversine"})  # by SciPy


def joined(points, width, size, limits=None, seed=0):
    vectors = about(points.astype(np.float64).mean(axis=0), points, 1.0)
    candidates, labels = Candidates.empty(len(points), width), np.arange(len(points), dtype=np.int32)
    limits = np.full(len(points), np.inf, np.float32) if limits is None else limits
    table = ComparedTable(COORDINATES, vectors)
    join_leaf(table, np.arange(len(points)), labels, limits, candidates, size, np.random.default_rng(seed))
    return candidates


def parts_of(points, size, seed=0):
    vectors = about(points.astype(np.float64).mean(axis=0), points, 1.0)
    return list(split_leaf(ComparedTable(COORDINATES, vectors), size, np.random.default_rng(seed)))


def expected_squares(points, width, parts):
    """Half of squared distances by SciPy among the points that share a part, ascending; inf where there are fewer."""
    squares = cdist(points.astype(np.float64), points.astype(np.float64), "sqeuclidean") / 2
    met = np.zeros(squares.shape, bool)
    for part in parts:
        met[np.ix_(part, part)] = True
    np.fill_diagonal(met, False)
    return np.where(met, squares, np.inf)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(2, 90),
    st.integers(1, 6),
    st.integers(2, 100),
    st.sampled_from([np.float32, np.float64, np.uint8]),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_candidates_within_parts_are_those_of_brute_force(n_points, width, size, dtype, seed, limited):
    draws = np.random.default_rng(seed)
    points = draws.integers(0, 9, (n_points, 5)).astype(dtype)  # with ties and duplicates
    reach = 3.5 if limited else np.inf
    found = joined(points, width, size, np.full(n_points, reach**2 / 2, np.float32), seed)
    away = np.sqrt(2 * expected_squares(points, width, parts_of(points, size, seed)))
    off = np.sqrt(5) * np.ptp(points, axis=0).max() / MOST_STEPS  # two vectors, each by half a step a coordinate
    for i in range(n_points):
        listed = found.indices[i] >= 0
        labels = found.indices[i][listed]
        assert len(np.unique(labels)) == len(labels)
        np.testing.assert_allclose(np.sqrt(2 * found.squares[i][listed]), away[i, labels], rtol=1e-5, atol=off + 1e-5)
        assert np.all(away[i, labels] <= reach + off)
        nearest = np.sort(away[i][away[i] < reach - off])[:width]
        assert np.all(np.sort(away[i, labels])[: len(nearest)] <= nearest + 2 * off)
        assert len(labels) >= len(nearest)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.integers(2, 150),
    st.integers(1, 12),
    st.integers(2, 100),
    st.sampled_from(COMPARED),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_candidates_by_a_function_are_those_of_scipy_within_parts(n_points, width, size, metric, seed, limited):
    """Long rows are compared a tile at a time, and pools of short lists are cut often."""
    draws = np.random.default_rng(seed)
    points = draws.integers(1, 9, (n_points, draws.choice([5, 300]))).astype(np.float64)  # with ties and duplicates
    away = cdist(points, points, METRICS[metric].scipy)
    table = ComparedTable(COMPARISONS[metric].distance, points)
    reach = np.float32(np.median(away)) if limited else np.float32(np.inf)
    candidates, labels = Candidates.empty(n_points, width), np.arange(n_points, dtype=np.int32)
    limits, places = np.full(n_points, reach), np.arange(n_points)
    join_leaf(table, places, labels, limits, candidates, size, np.random.default_rng(seed))
    met = np.zeros(away.shape, bool)
    for part in split_leaf(table, size, np.random.default_rng(seed)):
        met[np.ix_(part, part)] = True
    met[places, places] = False
    within = np.where(met & (away.astype(np.float32) < reach), away, np.inf)
    for i, (listed, values) in enumerate(zip(*candidates, strict=True)):
        count = min(width, np.count_nonzero(np.isfinite(within[i])))
        assert len({*listed[:count]}) == count
        assert (listed[count:] == -1).all()
        np.testing.assert_allclose(values[:count], np.sort(within[i])[:count], rtol=1e-6)
        np.testing.assert_allclose(within[i, listed[:count]], values[:count], rtol=1e-6)


@pytest.mark.parametrize("metric", COMPARED)
def test_leaders_by_a_function_are_the_nearest_of_scipy(metric):
    draws = np.random.default_rng(2)
    points, leaders = (draws.gamma(1.0, size=(count, 70)) for count in (300, 400))
    found = nearest_leaders(points, index_leaders(ComparedTable(COMPARISONS[metric].distance, leaders)), 4)
    np.testing.assert_array_equal(found, np.argsort(cdist(points, leaders, METRICS[metric].scipy), axis=1)[:, :4])


def test_candidates_are_the_same_where_a_processor_multiplies_no_bytes():
    points = np.random.default_rng(4).normal(size=(300, 40)).astype(np.float32)
    found = joined(points, 8, 100)
    with (
        patch.object(byte_products, "has_lanes", lambda: False),
        patch.object(byte_products, "has_tiles", lambda: False),
    ):
        for one, other in zip(joined(points, 8, 100), found, strict=True):
            np.testing.assert_array_equal(one, other)


def test_candidates_of_several_leaves_do_not_depend_on_their_order():
    draws = np.random.default_rng(3)
    # Those of a leaf come ascending.
    squares = [np.sort(draws.integers(0, 9, (30, 4)), axis=1) for _ in range(6)]
    offers = [(draws.integers(0, 40, (30, 4)).astype(np.int32), some) for some in squares]
    results = []
    for order in (range(6), range(5, -1, -1)):
        merged = Candidates.empty(30, 7)
        for number in order:
            indices, squares = offers[number]
            merge_candidates(*merged, np.arange(30), indices, squares.astype(np.float32))
        results.append([sorted(zip(*rows, strict=True)) for rows in zip(merged.squares, merged.indices, strict=True)])
    assert results[0] == results[1]
    for i, row in enumerate(results[0]):
        least = {}
        for indices, squares in offers:
            for label, square in zip(indices[i].tolist(), squares[i].tolist(), strict=True):
                least[label] = min(square, least.get(label, np.inf))
        assert row == sorted((square, label) for label, square in least.items())[:7]


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
    assert (joined(np.ones((1000, 4), np.float32), 3, 50).squares == 0).all()


@pytest.mark.parametrize("n_leaders", [60, FEW_LEADERS + 400])
def test_leaders_are_near_and_those_of_a_point_depend_on_it_alone(n_leaders):
    draws = np.random.default_rng(2)
    vectors, leaders = (draws.normal(size=(count, 6)).astype(np.float32) for count in (700, n_leaders))
    index = index_leaders(ComparedTable(COORDINATES, leaders))
    found = nearest_leaders(vectors, index, 4)
    away = cdist(vectors, leaders)
    nearest = np.sort(away, axis=1)[:, :4]
    reached = np.take_along_axis(away, found.astype(np.int64), axis=1)
    off = 2 * np.sqrt(6) * step_of_rows(leaders)  # both are rounded
    near = np.mean(reached <= nearest[:, -1:] + off)
    assert near == 1.0 if n_leaders <= FEW_LEADERS else near > 0.9
    for part in (slice(0, 1), slice(100, 333)):
        np.testing.assert_array_equal(nearest_leaders(vectors[part], index, 4), found[part])


@pytest.mark.parametrize(("n_points", "count"), [(3, 3), (1000, 40), (10, 4), (1001, 41)])
def test_leaders_are_as_many_as_leaves_of_the_size(n_points, count):
    assert count_leaders(n_points, 100, 4) == count
