"""Boxes near others: those that a look at all pairs of boxes finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.methods.fast_gauss.kernels.boxes import grid_over, near_ranges, neighbors_along, sort_into_boxes, spread

KEYS = st.lists(st.integers(-500, 500), unique=True, max_size=40).map(lambda found: np.array(sorted(found), np.int64))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 200), d=st.integers(1, 3), reach=st.integers(1, 3))
def test_ranges_are_the_points_of_all_boxes_within_reach(seed, n, d, reach):
    points = np.random.default_rng(seed).normal(size=(n, d)) * 3
    grid = grid_over([points], 0.7, reach)
    boxed = sort_into_boxes(points, grid)
    ranges = near_ranges(boxed.keys, boxed.keys, boxed.starts, grid.strides, grid.reaches)
    places = np.round((boxed.centers - boxed.centers[0]) / 0.7).astype(int)
    for b in range(len(boxed.keys)):
        near = np.flatnonzero(np.abs(places - places[b]).max(axis=1) <= reach)
        expected = np.concatenate([np.arange(boxed.starts[i], boxed.starts[i + 1]) for i in near])
        assert np.array_equal(np.concatenate([np.arange(*part) for part in ranges[b]]), expected)


@given(keys=KEYS, stride=st.integers(1, 60), reach=st.integers(0, 4))
def test_keys_are_spread_along_an_axis_each_once_and_ascending(keys, stride, reach):
    moves = np.arange(-reach, reach + 1) * stride
    assert np.array_equal(spread(keys, stride, reach), np.unique(keys[:, None] + moves))


@given(keys=KEYS, others=KEYS, stride=st.integers(1, 60), reach=st.integers(0, 4))
def test_keys_are_found_where_they_are_among_others(keys, others, stride, reach):
    found = neighbors_along(keys, others, stride, reach)
    assert found.shape == (len(keys), 2 * reach + 1)
    for i, key in enumerate(keys):
        for step in range(2 * reach + 1):
            place = np.flatnonzero(others == key + (step - reach) * stride)
            assert found[i, step] == (place[0] if len(place) else -1)


@pytest.mark.parametrize("keys", [[], [0], [-3, 7]])
def test_without_others_nothing_is_found(keys):
    assert (neighbors_along(np.array(keys, np.int64), np.empty(0, np.int64), 1, 1) == -1).all()
