import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.arrays.coordinates import at_unit_scale


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.integers(-1000, 1000), st.integers(0, 99))
def test_arrays_out_of_scale_come_near_one_without_losing_a_bit_and_others_are_left_as_they_are(power, seed):
    given_ = np.ldexp(np.random.default_rng(seed).uniform(0.5, 1, (5, 3)), power)
    for array in (given_, sp.csr_matrix(given_)):
        found, exponent = at_unit_scale(array)
        if abs(power) < 128:
            assert found is array
            assert exponent == 0
        elif abs(power) > 128:
            dense = found.toarray() if sp.issparse(found) else found
            assert 0.5 <= np.abs(dense).max() <= 1
            np.testing.assert_array_equal(np.ldexp(dense, exponent), given_)


@pytest.mark.parametrize("array", [np.zeros((2, 2)), np.empty((0, 2)), np.array([[-3, 2]]), np.array([[True]])])
def test_zeros_and_integers_have_no_scale(array):
    found, exponent = at_unit_scale(array)
    assert found is array
    assert exponent == 0
