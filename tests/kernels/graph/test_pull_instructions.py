"""Pulls of the neighbours of a point, as compiled and plainly, beside sums in float64."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.graph.attraction import reference_sum_pulls, sum_pulls
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.instructions import ITEM_BYTES, LANES_AT_ONCE

BEYOND = 2 * LANES_AT_ONCE  # items behind a row, as those of the rows after it


@compiled
def sum_of_row(columns, weights, start, count, places, own, square):
    offset = ITEM_BYTES * start
    addresses = (columns.ctypes.data + offset, weights.ctypes.data + offset)
    return sum_pulls(addresses[0], addresses[1], count, places.ctypes.data, own, square)


def sum_plainly(columns, weights, start, count, places, own, square):
    addresses = [array.ctypes.data + ITEM_BYTES * start for array in (columns, weights)]
    return reference_sum_pulls(*addresses, count, places.ctypes.data, own, square)


def terms_of_row(columns, weights, places, own, square):
    """Return the terms (n, 2) of the sums in float64."""
    apart = np.array(own, float) - places[columns].astype(float)
    return weights[:, np.newaxis].astype(float) * apart / (1 + float(square) * (apart**2).sum(axis=1, keepdims=True))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(0, 3 * LANES_AT_ONCE + 1),
    start=st.integers(0, 5),
    reach=st.sampled_from([1, 1000, 2**30 - 1]),
    step=st.sampled_from([1e-150, 1e-9, 1e-5]),
)
def test_the_sums_are_those_of_the_row_alone(seed, count, start, reach, step):
    draws = np.random.default_rng(seed)
    places = draws.integers(-reach, reach, (200, 2), dtype=np.int32, endpoint=True)
    # What stands before and behind a row leads out of memory, and would make every sum NaN.
    columns = np.full(start + count + BEYOND, 2**32 - 1, np.uint32)
    weights = np.full(start + count + BEYOND, np.nan, np.float32)
    row = slice(start, start + count)
    columns[row], weights[row] = draws.integers(0, 200, count), draws.uniform(0, 1, count)
    own, square = (np.int32(places[7, 0]), np.int32(places[7, 1])), np.float32(step * step)
    terms = terms_of_row(columns[row], weights[row], places, own, square)
    allowed = 1e-5 * np.abs(terms).sum(axis=0)
    for way in (sum_of_row, sum_plainly):
        found = np.array(way(columns, weights, start, count, places, own, square), float)
        assert (np.abs(found - terms.sum(axis=0)) <= allowed).all()


def test_the_last_of_many_points_is_found():
    places = np.zeros((3_000_000, 2), np.int32)
    places[-1] = 30, -40
    columns, weights = np.array([len(places) - 1], np.uint32), np.ones(1, np.float32)
    own = (np.int32(0), np.int32(0))
    for way in (sum_of_row, sum_plainly):
        np.testing.assert_allclose(way(columns, weights, 0, 1, places, own, np.float32(1)), [-30 / 2501, 40 / 2501])
