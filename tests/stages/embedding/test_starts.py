"""What a refinement starts from."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scalemani.stages.embedding.refining import coarsely_rounded


@given(seed=st.integers(0, 2**32 - 1), length=st.integers(-30, 30))
def test_what_landmarks_give_is_rounded_to_five_digits_of_the_largest(seed, length):
    draws = np.random.default_rng(seed)
    vectors = draws.normal(size=(60, 3)) * 10.0**length
    rounded = coarsely_rounded(vectors)
    largest = np.abs(vectors).max(axis=0)
    assert (np.abs(rounded - vectors) <= largest * 2.0**-16).all()
    np.testing.assert_array_equal(coarsely_rounded(rounded), rounded)
    np.testing.assert_array_equal(rounded.astype(np.float32), rounded)


def test_sums_in_another_order_change_no_bit_of_a_start():
    draws = np.random.default_rng(0)
    vectors = draws.normal(size=(2000, 4))
    moved = vectors + 1e-14 * draws.uniform(-1, 1, vectors.shape)
    assert (moved != vectors).any()
    np.testing.assert_array_equal(coarsely_rounded(moved), coarsely_rounded(vectors))
