import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.methods.barnes_hut.kernels import LEVELS, morton_order


def slow_key(point, low, side, levels):
    """The bits of the cell numbers along each axis, the first axis lowest."""
    key = 0
    for axis, (x, least) in enumerate(zip(point, low, strict=True)):
        cell = min(int((x - least) / side * 2**levels), 2**levels - 1) if side else 0
        key |= sum(((cell >> bit) & 1) << (bit * len(point) + axis) for bit in range(levels))
    return key


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([2, 3]), st.sampled_from([0.0, 1e-3, 1e5]))
def test_keys_interleave_the_bits_of_the_cells(seed, n_points, n_dims, extent):
    points = np.random.default_rng(seed).random((n_points, n_dims)) * extent - 7.0
    keys, rows = morton_order(points)
    low, side = points.min(axis=0), float(np.ptp(points, axis=0).max())
    expected = [slow_key(point, low, side, LEVELS[n_dims]) for point in points]
    np.testing.assert_array_equal(keys, np.array(expected, np.uint64)[rows])
    np.testing.assert_array_equal(np.sort(rows), np.arange(n_points))
    assert np.all(keys[1:] >= keys[:-1])


@pytest.mark.parametrize("d", [2, 3])
def test_a_key_names_the_cells_of_all_levels(d):
    points = np.random.default_rng(0).random((500, d))
    points[0], points[1] = 0.0, 1.0
    keys, order = morton_order(points)
    for level in (1, 3, 7):
        cells = np.minimum((points[order] * 2**level).astype(int), 2**level - 1)
        short = keys >> np.uint64(d * (LEVELS[d] - level))
        assert np.array_equal(np.all(cells[1:] == cells[:-1], axis=1), short[1:] == short[:-1])


def test_no_points_have_no_keys():
    keys, rows = morton_order(np.empty((0, 2)))
    assert (len(keys), len(rows)) == (0, 0)
