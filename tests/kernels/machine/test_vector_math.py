"""The exponential and the logarithm beside those of the C library."""

import numpy as np
import pytest

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.vector_math import LEAST_EXPONENT, exp_nonpositive, log_positive


@compiled
def exponentials(numbers):
    result = np.empty_like(numbers)
    for i in range(numbers.size):
        result[i] = exp_nonpositive(numbers[i])
    return result


def test_exponentials_agree_with_libm_over_the_whole_range():
    numbers = -np.concatenate([np.linspace(0.0, 700.0, 200_001), np.logspace(-320, 2, 2_001)])
    reference = np.exp(numbers.astype(np.longdouble))
    assert np.max(np.abs(exponentials(numbers) / reference - 1)) < 4e-16


def test_is_one_at_zero_and_stays_positive_below_the_range():
    found = exponentials(np.array([0.0, -0.0, -5e-324, -700.5, -1e300, -np.inf]))
    assert np.array_equal(found[:3], [1.0, 1.0, 1.0])
    assert np.all(found[3:] == exponentials(np.array([LEAST_EXPONENT]))[0])
    assert found[3] > 0.0


LEAST_NORMAL = np.finfo(np.float64).tiny


@compiled
def logarithms(numbers):
    result = np.empty_like(numbers)
    for i in range(numbers.size):
        result[i] = log_positive(numbers[i])
    return result


@pytest.mark.parametrize(
    "numbers",
    [
        np.geomspace(LEAST_NORMAL, 1e308, 20_001),
        1.0 + np.linspace(-0.5, 1.0, 20_001),
        1.0 + np.geomspace(1e-16, 0.4, 2_001),
        1.0 - np.geomspace(1e-16, 0.4, 2_001),
        np.exp2(np.arange(-1022.0, 1024.0)),
        np.nextafter(np.sqrt(0.5) * np.exp2(np.arange(-500.0, 500.0)), 0.0),  # where the exponent steps
        np.sqrt(0.5) * np.exp2(np.arange(-500.0, 500.0)),
    ],
)
def test_logarithms_agree_with_libm_over_the_whole_range(numbers):
    reference = np.log(numbers.astype(np.longdouble))
    error = np.abs(logarithms(numbers) - reference)
    assert np.max(error / np.maximum(np.abs(reference), 1.0)) < 4e-16


def test_is_zero_at_one():
    assert log_positive(1.0) == 0.0
