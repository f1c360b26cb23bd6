"""Products of bytes: those of integers, by tiles or lanes where there are such, and by float32 where there are none."""

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.machine.instructions import ITEM_BYTES
from scalemani.kernels.rows import byte_products
from scalemani.kernels.rows.byte_products import (
    BLOCK_ROWS,
    CLIPPED_ROWS,
    MOST_STEPS,
    PANEL_ROWS,
    byte_rows,
    has_lanes,
    has_tiles,
    multiply_bytes,
    plain_multiply_block,
    step_of_rows,
)

WAYS = [
    "float32",
    pytest.param("lanes", marks=pytest.mark.skipif(not has_lanes(), reason="a processor without AVX-512 VNNI")),
    pytest.param("tiles", marks=pytest.mark.skipif(not has_tiles(), reason="a processor without AMX")),
]


def by(way):
    """Multiply in one way."""
    stack = ExitStack()
    for name in ("lanes", "tiles"):
        stack.enter_context(patch.object(byte_products, f"has_{name}", lambda name=name: name == way))
    stack.enter_context(patch.object(byte_products, "LEAST_TERMS", 0))
    return stack


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 80),
    n_others=st.integers(1, 150),
    n_terms=st.one_of(st.integers(1, 70), st.integers(1020, 2100)),
    extreme=st.booleans(),
)
def test_products_are_those_of_integers(way, seed, n_rows, n_others, n_terms, extreme):
    draws = np.random.default_rng(seed)
    rows, others = (
        draws.integers(-MOST_STEPS, MOST_STEPS + 1, (n, n_terms)).astype(np.int8) for n in (n_rows, n_others)
    )
    if extreme:
        rows[:], others[:] = np.where(rows < 0, -MOST_STEPS, MOST_STEPS), MOST_STEPS
    expected = rows.astype(np.int64) @ others.T.astype(np.int64)
    begun = np.zeros(-(-n_others // 64) * 64, np.int32)
    begun[:n_others] = draws.integers(-1000, 1000, n_others)
    with by(way):
        coded = byte_rows(rows)
        products = multiply_bytes(coded, byte_rows(others))
        some = multiply_bytes(coded.part(slice(64, n_rows)), byte_rows(others, begun)) if n_rows > 64 else None
    assert products.dtype == np.int32
    assert len(products) == n_rows
    np.testing.assert_array_equal(products[:, :n_others], expected)
    if some is not None:
        np.testing.assert_array_equal(some[:, :n_others], expected[64:] + begun[:n_others])


def test_sums_begin_with_what_is_given_and_are_written_nowhere_else():
    draws, n_groups = np.random.default_rng(0), 3
    rows = draws.integers(0, 256, (BLOCK_ROWS, 4 * n_groups)).astype(np.uint8)
    panels = draws.integers(-128, 128, (2, n_groups, PANEL_ROWS, 4)).astype(np.int8)
    starts = np.arange(BLOCK_ROWS, dtype=np.int32)
    products = np.zeros((BLOCK_ROWS, 3 * BLOCK_ROWS), np.int32)
    plain_multiply_block(
        rows.ctypes.data,
        panels.ctypes.data,
        n_groups,
        starts.ctypes.data,
        products.ctypes.data + ITEM_BYTES * BLOCK_ROWS,
        products.strides[0],
    )
    others = panels.transpose(0, 2, 1, 3).reshape(BLOCK_ROWS, -1).astype(int)
    np.testing.assert_array_equal(products[:, BLOCK_ROWS : 2 * BLOCK_ROWS], starts + rows.astype(int) @ others.T)
    products[:, BLOCK_ROWS : 2 * BLOCK_ROWS] = 0
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
