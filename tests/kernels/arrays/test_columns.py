from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.arrays.columns import (
    PANEL,
    column_squares,
    combine_columns,
    inner_products,
    moments,
    panels,
    residuals_into,
    total_variance,
    unit_roots,
)
from scalemani.kernels.arrays.tiles import TILE_ROWS

N_ROWS = PANEL + 5000  # two panels, neither a multiple of a tile


@pytest.fixture(scope="module")
def blocks():
    """Two blocks of 3 and 2 columns."""
    random = np.random.default_rng(0)
    return random.normal(size=(N_ROWS, 3)).astype(np.float32), random.normal(size=(N_ROWS, 2)).astype(np.float32)


def test_panels_hold_every_row():
    assert [(part.start, part.stop) for part in panels(N_ROWS)] == [(0, PANEL), (PANEL, N_ROWS)]


@pytest.mark.parametrize(("dtype", "error"), [(None, 1e-6), (np.float64, 1e-13)])
def test_inner_products_of_all_columns(blocks, dtype, error):
    left, right = blocks[0].astype(float), np.hstack([blocks[1], blocks[0]]).astype(float)
    expected = left.T @ right
    products = inner_products([blocks[0]], [blocks[1], blocks[0]], dtype=dtype)
    assert products.dtype == np.float64
    lengths = np.outer(np.linalg.norm(left, axis=0), np.linalg.norm(right, axis=0))
    assert np.all(abs(products - expected) <= error * lengths)
    np.testing.assert_allclose(column_squares(blocks[0]), np.diag(left.T @ left), rtol=1e-12)


def test_sums_do_not_depend_on_threads(blocks):
    with ThreadPoolExecutor(3) as pool:
        np.testing.assert_array_equal(inner_products(blocks, blocks, pool.map), inner_products(blocks, blocks))
        np.testing.assert_array_equal(column_squares(blocks[1], pool.map), column_squares(blocks[1]))


def test_a_combination_may_replace_one_of_its_blocks(blocks):
    coefficients = np.random.default_rng(1).normal(size=(5, 2))
    expected = np.hstack(blocks).astype(float) @ coefficients
    out = np.full((N_ROWS, 3), 9.0, np.float32)
    combine_columns(blocks, coefficients, out)
    np.testing.assert_allclose(out[:, :2], expected, atol=1e-5)
    np.testing.assert_array_equal(out[:, 2], 9.0)
    own = blocks[1].copy()
    combine_columns((blocks[0], own), coefficients, own)
    np.testing.assert_array_equal(own, out[:, :2])


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]), st.booleans(), st.booleans())
def test_residuals_of_the_columns_asked_for(seed, dtype, written, chosen):
    random = np.random.default_rng(seed)
    vectors, images = random.normal(size=(2, 300, 4)).astype(dtype)
    values, columns = random.normal(size=3), np.array([2, 0]) if chosen else None
    expected = images[:, :3] - vectors[:, :3] * values.astype(dtype)
    expected = expected[:, columns] if chosen else expected
    out = np.full((300, 4), 7.0, dtype) if written else None
    lengths = residuals_into(out, vectors, images, values, columns=columns)
    np.testing.assert_allclose(lengths, np.linalg.norm(expected.astype(float), axis=0), rtol=1e-6)
    if out is not None:
        np.testing.assert_allclose(out[:, : len(lengths)], expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(out[:, len(lengths) :], 7.0)


def test_residuals_of_the_second_panel_count():
    vectors, images = np.zeros((N_ROWS, 1)), np.zeros((N_ROWS, 1))
    images[-1], vectors[0] = 3.0, 4.0
    out = np.empty((N_ROWS, 1))
    assert residuals_into(out, vectors, images, np.array([1.0])).tolist() == [5.0]
    assert (out[0, 0], out[-1, 0]) == (-4.0, 3.0)


def test_the_trivial_vector_has_length_one():
    roots = unit_roots(np.array([1.0, 4.0, 4.0], np.float32))
    np.testing.assert_allclose(roots, [1 / 3, 2 / 3, 2 / 3], rtol=1e-14)
    assert roots.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_means_and_variances_are_those_of_numpy_in_float64(dtype):
    points = np.random.default_rng(0).integers(0, 200, (2 * TILE_ROWS + 7, 5)).astype(dtype)
    mean, variance = moments(points)
    np.testing.assert_allclose(mean, points.astype(float).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(variance, points.astype(float).var(axis=0), rtol=1e-12)
    assert total_variance(points) == pytest.approx(points.astype(float).var(axis=0).sum(), rel=1e-12)


def test_variances_of_points_far_from_zero_keep_their_digits():
    points = np.random.default_rng(1).normal(size=(500, 3))
    np.testing.assert_allclose(moments(points + 1e8)[1], points.var(axis=0), rtol=1e-6)
