import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.vector_exp import LEAST_EXPONENT, exp_nonpositive


@compiled
def exponentials(numbers):
    result = np.empty_like(numbers)
    for i in range(numbers.size):
        result[i] = exp_nonpositive(numbers[i])
    return result


def test_agrees_with_libm_over_the_whole_range():
    numbers = -np.concatenate([np.linspace(0.0, 700.0, 200_001), np.logspace(-320, 2, 2_001)])
    reference = np.exp(numbers.astype(np.longdouble))
    assert np.max(np.abs(exponentials(numbers) / reference - 1)) < 4e-16


def test_is_one_at_zero_and_stays_positive_below_the_range():
    found = exponentials(np.array([0.0, -0.0, -5e-324, -700.5, -1e300, -np.inf]))
    assert np.array_equal(found[:3], [1.0, 1.0, 1.0])
    assert np.all(found[3:] == exponentials(np.array([LEAST_EXPONENT]))[0])
    assert found[3] > 0.0
