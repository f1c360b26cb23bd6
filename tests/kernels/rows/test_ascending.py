import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.landmarks.nearest import sort_ascending


@given(
    values=st.lists(st.floats(0.0, allow_nan=False), max_size=60) | st.lists(st.sampled_from([0.0, 1.0, 3.0, np.inf])),
    scale=st.sampled_from([1.0, 1e-300, 5e-324]),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_values_come_out_ascending_and_ties_in_the_order_given(values, scale):
    given_values = np.abs(np.array(values, dtype=np.float64) * scale)
    expected = np.argsort(given_values, kind="stable")
    found, labels = given_values.copy(), np.arange(len(values), dtype=np.int32)
    sort_ascending(found, labels)
    np.testing.assert_array_equal(found, given_values[expected])
    np.testing.assert_array_equal(labels, expected)


def test_values_that_differ_only_in_their_last_bits_beside_one_far_off():
    draws = np.random.default_rng(0)
    values = np.append(1.0 + draws.permutation(400) * np.finfo(np.float64).eps, [1e300, 0.0])
    found, labels = values.copy(), np.arange(402, dtype=np.int32)
    sort_ascending(found, labels)
    np.testing.assert_array_equal(found, np.sort(values))
    np.testing.assert_array_equal(values[labels], found)
