"""Instructions that are written out: lanes that are moved, and hints that change nothing."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from scalemani.kernels.machine.compile import PLAIN, compiled, emitted
from scalemani.kernels.machine.instructions import (
    ITEM_BYTES,
    LANES_AT_ONCE,
    compress_lanes,
    emit_compression,
    lowest_bit,
    near_integers,
    prefetch_line,
    prefetch_row,
    reference_compress_lanes,
    reference_lowest_bit,
    reference_near_lanes,
)

ROOM = 40
NUMBERS = st.floats(width=32, allow_nan=True)


def compressing(compress_lanes):
    """Return a function of arrays that calls one of addresses."""

    def compress(values, labels, start, bound, values_to, labels_to, place):
        return compress_lanes(
            values.ctypes.data + ITEM_BYTES * start,
            labels.ctypes.data + ITEM_BYTES * start,
            bound,
            values_to.ctypes.data + ITEM_BYTES * place,
            labels_to.ctypes.data + ITEM_BYTES * place,
        )

    return compress


def compress_plainly(values, labels, start, bound, values_to, labels_to, place):
    addresses = [array.ctypes.data + ITEM_BYTES * start for array in (values, labels)]
    targets = [array.ctypes.data + ITEM_BYTES * place for array in (values_to, labels_to)]
    return reference_compress_lanes(*addresses, bound, *targets)


def compress_as_compiled_for(at_once):
    """Return the function as it is compiled for processors that have the instruction, or have not."""
    address = numba.types.int64

    @emitted(numba.types.int64, address, address, numba.types.float32, address, address)
    def compress_lanes(builder, values, labels, bound, values_to, labels_to):
        return emit_compression(builder, at_once, (values, labels, bound, values_to, labels_to))

    return numba.njit(compressing(compress_lanes))


WAYS = [compiled(compressing(compress_lanes)), compress_plainly]
WAYS += [] if PLAIN else [compress_as_compiled_for(True), compress_as_compiled_for(False)]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(arrays(np.float32, ROOM, elements=NUMBERS), st.floats(width=32, allow_nan=False), st.integers(0, 20))
def test_values_within_a_bound_move_to_the_front_with_their_labels(values, bound, place):
    labels = np.arange(ROOM, dtype=np.int32)
    read = slice(3, 3 + LANES_AT_ONCE)
    within = values[read] <= bound
    for function in WAYS:
        values_to, labels_to = np.full(ROOM, -7, dtype=np.float32), np.full(ROOM, -7, dtype=np.int32)
        kept = function(values, labels, 3, np.float32(bound), values_to, labels_to, place)
        assert kept == within.sum()
        np.testing.assert_array_equal(values_to[place : place + kept], values[read][within])
        np.testing.assert_array_equal(labels_to[place : place + kept], labels[read][within])
        for array in (values_to, labels_to):
            assert np.all(array[:place] == -7)
            assert np.all(array[place + LANES_AT_ONCE :] == -7)


def test_a_pool_is_compressed_in_its_own_place():
    values = np.random.default_rng(0).random(8 * LANES_AT_ONCE).astype(np.float32)
    labels = np.arange(values.size, dtype=np.int32)
    for function in WAYS:
        held, named, kept = values.copy(), labels.copy(), 0
        for start in range(0, values.size, LANES_AT_ONCE):
            kept += function(held, named, start, np.float32(0.3), held, named, kept)
        np.testing.assert_array_equal(held[:kept], values[values <= np.float32(0.3)])
        np.testing.assert_array_equal(named[:kept], labels[values <= np.float32(0.3)])


@compiled
def hint(address):
    prefetch_line(address)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 15), (3, 64), (5, 1000), (4, 0)])
def test_hints_change_no_value(dtype, shape):
    matrix = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    before = matrix.copy()
    for row in range(shape[0]):
        prefetch_row(matrix, row)
    np.testing.assert_array_equal(matrix, before)


def test_rows_that_are_not_there_do_no_harm():
    matrix = np.zeros((3, 40))
    for row in (-1, 3, 10**9):
        prefetch_row(matrix, row)
    for address in (0, 1, matrix.ctypes.data):
        hint(address)


@pytest.mark.skipif(PLAIN, reason="plain kernels give no hints")
def test_hints_are_instructions_of_the_processor():
    kernel = numba.njit(hint.py_func)  # compiled here: what comes from the cache has no listing
    kernel(0)
    assert all("llvm.prefetch" in listing for listing in kernel.inspect_llvm().values())


@compiled
def near_lanes(sums, reaches, reach, least):
    """Which of 64 sums are near."""
    return near_integers(sums.ctypes.data, reaches.ctypes.data, reach, least)


@pytest.mark.parametrize("all_near", [False, True])
def test_lanes_are_near_by_the_greater_of_two_reaches(all_near):
    draws = np.random.default_rng(4)
    sums, reaches = (draws.integers(-100, 100, 64).astype(np.int32) for _ in range(2))
    if all_near:
        sums[:] = 200
    least = np.int32(40)
    expected = sums + np.maximum(reaches, 10) >= least
    near = int(near_lanes(sums, reaches, np.int32(10), least))
    assert near == sum(1 << int(lane) for lane in np.flatnonzero(expected))
    assert near == int(reference_near_lanes(sums.ctypes.data, reaches.ctypes.data, 10, 40, np.int32))


@compiled
def lowest(word):
    """The lowest bit of a word."""
    return lowest_bit(word)


def test_the_lowest_bit_of_a_word_is_that_of_its_reference():
    for bit in (0, 5, 63):
        word = (1 << bit) | (1 << 63)
        assert int(lowest(np.uint64(word))) == reference_lowest_bit(word) == bit
