"""Products of bytes: those of integers, by the instruction where there is one and by float32 where there is none."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.machine.instructions import ITEM_BYTES
from scalemani.kernels.rows import byte_products
from scalemani.kernels.rows.byte_products import (
    CLIPPED_ROWS,
    MOST_STEPS,
    PANEL_ROWS,
    ROWS_AT_ONCE,
    byte_panels,
    has_byte_products,
    multiply_bytes,
    plain_multiply_group,
    step_of_rows,
)

WAYS = [False, pytest.param(True, marks=pytest.mark.skipif(not has_byte_products(), reason="no such instruction"))]


@pytest.mark.parametrize("by_instruction", WAYS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 20),
    n_others=st.integers(1, 150),
    n_terms=st.one_of(st.integers(1, 40), st.integers(1020, 2100)),
    extreme=st.booleans(),
)
def test_products_are_those_of_integers(by_instruction, seed, n_rows, n_others, n_terms, extreme):
    draws = np.random.default_rng(seed)
    rows, others = (
        draws.integers(-MOST_STEPS, MOST_STEPS + 1, (n, n_terms)).astype(np.int8) for n in (n_rows, n_others)
    )
    if extreme:
        rows[:], others[:] = np.where(rows < 0, -MOST_STEPS, MOST_STEPS), MOST_STEPS
    with patch.object(byte_products, "has_byte_products", lambda: by_instruction):
        products = multiply_bytes(rows, byte_panels(others))[:, :n_others]
    assert products.dtype == np.int32
    np.testing.assert_array_equal(products, rows.astype(np.int64) @ others.T.astype(np.int64))


def test_sums_begin_with_what_is_given_and_are_written_nowhere_else():
    draws, n_groups = np.random.default_rng(0), 3
    rows = draws.integers(-127, 128, (ROWS_AT_ONCE, 4 * n_groups)).astype(np.int8)
    panel = draws.integers(0, 256, (n_groups, PANEL_ROWS, 4)).astype(np.uint8)
    begun = np.arange(ROWS_AT_ONCE, dtype=np.int32)
    products = np.zeros((ROWS_AT_ONCE, 3 * PANEL_ROWS), np.int32)
    plain_multiply_group(
        rows.ctypes.data,
        begun.ctypes.data,
        n_groups,
        panel.ctypes.data,
        products.ctypes.data + ITEM_BYTES * PANEL_ROWS,
        products.strides[0],
    )
    expected = begun[:, np.newaxis] + rows.astype(int) @ panel.transpose(0, 2, 1).reshape(-1, PANEL_ROWS)
    np.testing.assert_array_equal(products[:, PANEL_ROWS : 2 * PANEL_ROWS], expected)
    products[:, PANEL_ROWS : 2 * PANEL_ROWS] = 0
    assert not products.any()


def test_one_far_row_does_not_lengthen_the_steps_of_all_others():
    vectors = np.random.default_rng(1).normal(size=(1000, 30)).astype(np.float32)
    step = step_of_rows(vectors)
    within = np.abs(vectors).max(axis=1) <= MOST_STEPS * step * (1 + 1e-6)
    assert 1 - 2 * CLIPPED_ROWS < within.mean() <= 1
    vectors[0] *= 1e6
    assert step_of_rows(vectors) < 1.1 * step


@pytest.mark.parametrize("n_terms", [10, 200_000])
def test_products_of_rows_fit_32_bits(n_terms):
    vectors = np.ones((2, n_terms), np.float32)
    steps = np.rint(vectors / step_of_rows(vectors))
    assert steps.max() <= MOST_STEPS
    assert (steps.astype(np.int64) ** 2).sum(axis=1).max() < 2**31


def test_equal_rows_have_a_step():
    assert step_of_rows(np.zeros((3, 2), np.float32)) > 0
