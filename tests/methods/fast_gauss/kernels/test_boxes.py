"""Points sorted into boxes: each is in one, near its centre, and the boxes are in order."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.methods.fast_gauss.kernels.boxes import grid_over, largest_offset, sort_into_boxes

SIDE = math.sqrt(0.5)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 200), d=st.integers(1, 3), scale=st.sampled_from([0.1, 3.0, 1e4])
)
def test_boxes_hold_their_points(seed, n, d, scale):
    points = np.random.default_rng(seed).normal(size=(n, d)) * scale
    grid = grid_over([points], SIDE, 2)
    boxed = sort_into_boxes(points, grid)
    assert np.array_equal(np.sort(boxed.order), np.arange(n))
    assert np.array_equal(boxed.points, points[boxed.order])
    assert np.all(np.diff(boxed.keys) > 0)
    assert np.all(np.diff(boxed.starts) > 0)
    assert boxed.starts[-1] == n
    offsets = boxed.points - np.repeat(boxed.centers[:, 3 - d :], np.diff(boxed.starts), axis=0)
    assert largest_offset(boxed) == np.abs(offsets).max() <= SIDE / 2 * (1 + 1e-9) + 1e-12 * scale
