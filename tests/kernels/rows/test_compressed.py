import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from scalemani.kernels.rows.compressed import (
    compressed_rows,
    copy_rows,
    dense_tiles,
    projected_rows,
    squared_distance_of_compressed,
    squared_lengths,
)

DTYPES = (np.uint8, np.int16, np.float32, np.float64)


def random_rows(seed, n, width, density, dtype):
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 100, (n, width)) * (rng.random((n, width)) < density)
    return sparse.csr_matrix((values / (1 if np.dtype(dtype).kind in "iu" else 7)).astype(dtype))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), density=st.floats(0, 1), dtype=st.sampled_from(DTYPES))
def test_distances_are_those_of_dense_rows_whichever_row_is_spread_out(seed, density, dtype):
    rows = random_rows(seed, 9, 40, density, dtype)
    dense = rows.toarray().astype(np.longdouble)
    expected = np.array([[np.sum((a - b) ** 2) for b in dense] for a in dense]).astype(float)
    one, other = compressed_rows(rows), compressed_rows(rows, queried=False)
    found = np.array([[squared_distance_of_compressed(one, i, other, j) for j in range(9)] for i in range(9)])
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    if np.dtype(dtype).kind in "iu":
        np.testing.assert_array_equal(found, expected)


def test_rows_that_nearly_agree_keep_the_digits_of_their_difference():
    rng = np.random.default_rng(1)
    row = rng.normal(size=300) * 1e6
    moved = row + 1e-6 * rng.normal(size=300)
    rows = sparse.csr_matrix(np.stack([row, moved, row]))
    one = compressed_rows(rows)
    difference = moved - row
    assert squared_distance_of_compressed(one, 0, one, 1) == pytest.approx(difference @ difference, rel=1e-12)
    assert squared_distance_of_compressed(one, 0, one, 2) == 0.0


def test_rows_without_values_lie_at_the_origin():
    rows = sparse.csr_matrix(np.array([[0.0, 0, 0], [3, 0, 4], [0, 0, 0]]))
    one = compressed_rows(rows)
    assert squared_distance_of_compressed(one, 0, one, 1) == squared_distance_of_compressed(one, 1, one, 0) == 25.0
    assert squared_distance_of_compressed(one, 0, one, 2) == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_lengths_projections_and_copies_are_those_of_dense_rows(dtype):
    rows = random_rows(2, 50, 30, 0.2, dtype)
    dense, axes = rows.toarray().astype(float), np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    np.testing.assert_allclose(squared_lengths(rows.indptr, rows.data), np.sum(dense**2, axis=1), rtol=1e-13)
    origin = np.arange(5.0)
    projected = projected_rows(rows.indptr, rows.indices, rows.data, axes, origin, 0.5)
    np.testing.assert_allclose(projected, 0.5 * (dense @ axes - origin), rtol=1e-5, atol=1e-4)
    chosen = np.array([7, 3, 49, 3])
    expected = rows[chosen]
    target = (expected.indptr, np.empty_like(expected.indices), np.empty_like(expected.data))
    copy_rows((rows.indptr, rows.indices, rows.data), chosen, target, np.arange(4))
    np.testing.assert_array_equal(target[1], expected.indices)
    np.testing.assert_array_equal(target[2], expected.data)


def test_tiles_of_sparse_rows_are_the_rows_and_an_array_comes_in_one_piece():
    rows = random_rows(4, 1500, 10, 0.3, np.float32)
    tiles = list(dense_tiles(rows))
    assert [len(tile) for tile in tiles] == [1024, 476]
    np.testing.assert_array_equal(np.concatenate(tiles), rows.toarray())
    assert [tile is tiles[0] for tile in dense_tiles(tiles[0])] == [True]
