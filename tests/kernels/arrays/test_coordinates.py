from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.arrays.coordinates import (
    add_multiple,
    bounding_box,
    cell_sums,
    dot,
    extremes,
    moved,
    norm,
    scale_and_add,
)
from scalemani.kernels.arrays.workspace import Workspace

SIZES = st.integers(1, 700)
seeds = st.integers(0, 2**32 - 1)


def drawn(seed, n, d, count=1):
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=(n, d)) * 10.0 ** random.uniform(-6, 6) for _ in range(count)]
    return arrays if count > 1 else arrays[0]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds, SIZES, st.integers(1, 4))
def test_products_lengths_and_sums_are_those_of_numpy(seed, n, d):
    one, other = drawn(seed, n, d, 2)
    size = np.abs(one * other).sum()
    assert abs(dot(one, other) - (one * other).sum()) <= 1e-12 * size
    assert norm(one) == pytest.approx(np.linalg.norm(one), rel=1e-12)
    target = one.copy()
    add_multiple(target, -0.3, other)
    np.testing.assert_allclose(target, one - 0.3 * other, atol=1e-12 * (np.abs(one).max() + np.abs(other).max()))
    target = one.copy()
    scale_and_add(target, 2.5, other, -0.7)
    np.testing.assert_allclose(target, 2.5 * one - 0.7 * other, atol=1e-12 * (np.abs(one).max() + np.abs(other).max()))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds, SIZES, st.integers(1, 4))
def test_a_step_moves_along_the_direction_and_the_mean_to_the_origin(seed, n, d):
    positions, direction = drawn(seed, n, d, 2)
    before = positions.copy()
    new, largest = moved(positions, 0.4, direction)
    step = positions + 0.4 * direction
    np.testing.assert_allclose(new, step - step.mean(axis=0), atol=1e-12 * np.abs(step).max())
    assert largest == np.abs(new).max()
    np.testing.assert_array_equal(positions, before)


def test_a_step_is_the_same_for_any_threads_and_its_panels_are_all_taken():
    positions, direction = drawn(0, 20_000, 2, 2)
    with ThreadPoolExecutor(3) as pool:
        threaded = moved(positions, 0.1, direction, Workspace(pool.map))
        target = positions.copy()
        scale_and_add(target, 0.5, direction, 2.0, pool.map)
    plain = moved(positions, 0.1, direction)
    np.testing.assert_array_equal(threaded[0], plain[0])
    assert threaded[1] == plain[1]
    np.testing.assert_allclose(target, 0.5 * positions + 2.0 * direction, rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_step_to_somewhere_that_is_not_finite_is_told_by_its_size(bad):
    direction = np.zeros((600, 2))
    direction[300, 1] = bad
    assert moved(np.ones((600, 2)), 1.0, direction)[1] == np.inf


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seeds, st.integers(1, 120), st.integers(1, 4))
def test_extremes_are_the_least_and_greatest_coordinates(seed, n, d):
    points = drawn(seed, n, d)
    low, high = extremes(points)
    np.testing.assert_array_equal(low, points.min(axis=0))
    np.testing.assert_array_equal(high, points.max(axis=0))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 3, 24, 49])
def test_extremes_of_an_axis_that_is_not_finite_are_unknown(bad, row):
    points = np.random.default_rng(0).normal(size=(50, 3))
    points[row, 1] = bad
    low, high = extremes(points)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [False, True, False]
    np.testing.assert_array_equal(low[[0, 2]], points[:, [0, 2]].min(axis=0))


def test_a_bounding_box_sees_every_row_and_every_fault():
    rng = np.random.default_rng(0)
    for n_points in (1, 2, 3, 10, 11):
        points = rng.normal(size=(n_points, 3))
        pieces = [points[:1], *([points[1:]] if n_points > 1 else [])]
        assert np.array_equal(bounding_box(pieces), [points.min(axis=0), points.max(axis=0)])
        for fault in (np.nan, np.inf, -np.inf):
            for row in range(n_points):
                faulty = points.copy()
                faulty[row, 1] = fault
                low, high = bounding_box([faulty[:1], faulty[-1:], faulty])
                assert np.isnan([low[1], high[1]]).all()
                assert np.isfinite([low[[0, 2]], high[[0, 2]]]).all()


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_sums_of_cells_are_those_of_equal_floors(n_dims):
    draws = np.random.default_rng(0)
    points, weights = draws.uniform(-1.5, 1.5, (5000, n_dims)), draws.integers(1, 5, 5000).astype(float)
    cells = np.floor(points / 0.25).astype(int)  # twelve along each axis: fewer than there are sums
    _, own = np.unique(cells, axis=0, return_inverse=True)
    np.testing.assert_array_equal(cell_sums(points, 0.25, weights), np.bincount(own.ravel(), weights)[own.ravel()])
    np.testing.assert_array_equal(cell_sums(points, 0.25, np.ones(1)), np.bincount(own.ravel())[own.ravel()])


def test_cells_of_many_axes_divide_the_first_ones():
    points = np.random.default_rng(0).uniform(-1.5, 1.5, (50, 60))
    points[1, :20] = points[0, :20]
    _, own = np.unique(np.floor(points[:, :20] / 1.5).astype(int) % 2, axis=0, return_inverse=True)
    sums = np.bincount(own.ravel())[own.ravel()]
    np.testing.assert_array_equal(cell_sums(points, 1.5, np.ones(1)), sums)
    assert sums[0] >= 2


def test_cells_of_any_coordinates_have_the_sums_of_their_points_at_least():
    points = np.array([-1e-300, 0.0, 1e300, -1e300, 1.7e308, -1.7e308, 1e-300, 0.26]).repeat(2).reshape(-1, 2)
    sums = cell_sums(points, 0.25, np.ones(1))
    assert sums[1] == sums[6] >= 2
    assert (sums >= 1).all()
    assert cell_sums(points[:0], 0.25, np.ones(1)).shape == (0,)
