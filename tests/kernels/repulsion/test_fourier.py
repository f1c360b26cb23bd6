"""Transforms of batches, as compiled and as plain code does them, against NumPy's."""

import numpy as np
import pytest

from scalemani.kernels.repulsion.convolution import (
    ROW_BYTES,
    batch_lanes,
    radices_of,
    reference_transformed,
    transformed,
    twiddle_factors,
)


@pytest.mark.parametrize("function", [transformed, reference_transformed])
@pytest.mark.parametrize(("dtype", "least_error"), [(np.float32, 1e-6), (np.float64, 1e-14)])
@pytest.mark.parametrize("length", [2, 3, 4, 5, 30, 64, 72, 90, 225, 960, 1024])
def test_batches_are_transformed_as_numpy_does(function, dtype, least_error, length):
    lanes = batch_lanes(np.dtype(dtype))
    batch = np.random.default_rng(length).normal(size=(length, 2, lanes)).astype(dtype)
    expected = np.fft.fft(batch[:, 0].astype(np.float64) + 1j * batch[:, 1], axis=0)
    radices = radices_of(length)
    assert np.prod(radices) == length
    found = function(batch, np.full_like(batch, np.nan), radices, twiddle_factors(length, np.dtype(dtype)))
    error = np.abs(found[:, 0] + 1j * found[:, 1] - expected).max()
    assert error < least_error * np.abs(expected).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [2, 12, 60])
def test_sequences_of_a_batch_do_not_touch_each_other(dtype, length):
    lanes = batch_lanes(np.dtype(dtype))
    plan = radices_of(length), twiddle_factors(length, np.dtype(dtype))
    batch = np.random.default_rng(0).normal(size=(length, 2, lanes)).astype(dtype)
    changed = batch.copy()
    changed[:, :, 3] *= 1e6
    found = [transformed(each, np.empty_like(each), *plan).copy() for each in (batch, changed)]
    others = np.arange(lanes) != 3
    np.testing.assert_array_equal(found[0][:, :, others], found[1][:, :, others])


def test_a_row_of_a_batch_is_two_lines_of_cache():
    for dtype in (np.float32, np.float64):
        assert 2 * batch_lanes(np.dtype(dtype)) * np.dtype(dtype).itemsize == ROW_BYTES == 128


def test_radices_are_the_factors_of_a_length():
    for length in range(1, 2000):
        radices = radices_of(length)
        assert set(radices.tolist()) <= {2, 3, 4, 5}
        rest = length // np.prod(radices)
        assert length % np.prod(radices) == 0
        assert all(rest % prime for prime in (2, 3, 5))
