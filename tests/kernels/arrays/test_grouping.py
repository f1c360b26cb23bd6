import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.arrays.grouping import group_by, group_large, inverse_order


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 200),
    st.integers(1, 30),
    st.integers(-3, 1000),
    st.sampled_from([np.int32, np.int64]),
)
def test_grouping_is_a_stable_sort(seed, n_items, n_groups, first, dtype):
    labels = np.random.default_rng(seed).integers(first, first + n_groups, n_items).astype(dtype)
    order, offsets = group_by(labels, n_groups, first)
    np.testing.assert_array_equal(order, np.argsort(labels, kind="stable"))
    np.testing.assert_array_equal(offsets, np.searchsorted(np.sort(labels), first + np.arange(n_groups + 1)))


def test_smaller_labels_belong_to_no_group():
    order, offsets = group_by(np.array([2, -1, 0, -1, 2, 1]), 4)
    np.testing.assert_array_equal(order, [2, 5, 0, 4])
    np.testing.assert_array_equal(offsets, [0, 1, 2, 4, 4])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_inverse_of_an_order_says_where_each_item_is(dtype):
    order = np.random.default_rng(0).permutation(50).astype(dtype)
    places = inverse_order(order)
    assert places.dtype == dtype
    np.testing.assert_array_equal(places, np.argsort(order))
    assert len(inverse_order(order[:0])) == 0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(0, 300), st.integers(1, 30), st.sampled_from([0.0, 0.9]))
def test_grouping_in_parts_is_that_of_all_at_once(seed, n_items, n_groups, alike):
    draws = np.random.default_rng(seed)
    labels = draws.integers(0, n_groups, n_items).astype(np.int32)
    labels[draws.random(n_items) < alike] = n_groups // 2  # a group with more items than a part
    made = []

    def empty(shape, dtype):
        made.append(np.full(shape, -1, dtype))
        return made[-1]

    order, offsets = group_large(lambda rows: labels[rows], n_items, n_groups, empty, part_items=40)
    assert any(order is array for array in made)
    for found, expected in zip((order, offsets), group_by(labels, n_groups), strict=True):
        np.testing.assert_array_equal(found, expected)
