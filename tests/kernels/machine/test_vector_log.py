import numpy as np
import pytest

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.vector_log import log_positive

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
def test_agrees_with_libm_over_the_whole_range(numbers):
    reference = np.log(numbers.astype(np.longdouble))
    error = np.abs(logarithms(numbers) - reference)
    assert np.max(error / np.maximum(np.abs(reference), 1.0)) < 4e-16


def test_is_zero_at_one():
    assert log_positive(1.0) == 0.0
