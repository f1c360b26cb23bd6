import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.arrays.grouping import compact_rows


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 40),
    st.integers(1, 9),
    st.sampled_from([1, 2, 500, 2**31 - 1]),
    st.sampled_from([np.int32, np.int64]),
)
def test_each_row_is_held_once_and_lists_are_found_again(seed, n_lists, width, n_rows, dtype):
    lists = np.random.default_rng(seed).integers(-1, n_rows, (n_lists, width)).astype(dtype)
    distinct, numbers = compact_rows(lists)
    assert (distinct.dtype, numbers.dtype) == (np.int64, np.int32)
    np.testing.assert_array_equal(distinct, np.unique(lists[lists >= 0]))
    np.testing.assert_array_equal(numbers >= 0, lists >= 0)
    np.testing.assert_array_equal(distinct[numbers[numbers >= 0]], lists[lists >= 0])


def test_rows_that_share_their_hash_are_told_apart():
    # multiples of 2**28 are hashed by their last four bits' products: few different first slots
    rows = (np.arange(8, dtype=np.int64) * 2**28).astype(np.int32)
    distinct, numbers = compact_rows(np.concatenate([rows, rows[::-1]])[np.newaxis])
    np.testing.assert_array_equal(distinct, rows)
    np.testing.assert_array_equal(numbers[0], [*range(8), *range(7, -1, -1)])
