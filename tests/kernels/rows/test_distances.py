import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.rows.distances import squared_row_distance

COMPARED_DTYPES = ("uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "float32", "float64")


@numba.njit
def pair_distances(queries, rows):
    distances = np.empty((queries.shape[0], rows.shape[0]))
    for i in range(queries.shape[0]):
        for j in range(rows.shape[0]):
            distances[i, j] = np.sqrt(squared_row_distance(queries, i, rows, j, np.inf))
    return distances


@numba.njit
def limited(a, b, limit):
    return squared_row_distance(a.reshape((1, a.size)), 0, b.reshape((1, b.size)), 0, limit)


def direct(queries, rows):
    wide_queries, wide_rows = queries.astype(np.longdouble), rows.astype(np.longdouble)
    return np.sqrt(np.square(wide_queries[:, None] - wide_rows[None]).sum(axis=2)).astype(np.float64)


@pytest.mark.parametrize("dtype", COMPARED_DTYPES)
@pytest.mark.parametrize("n_dims", [1, 5, 64, 127, 129, 784, 1500])
def test_distances_of_every_dtype_and_length(dtype, n_dims):
    generator = np.random.default_rng(n_dims)
    points = generator.normal(size=(12, n_dims)) * 40
    points = (points if np.dtype(dtype).kind != "u" else abs(points)).astype(dtype)
    distances = pair_distances(points[:5], points)
    np.testing.assert_allclose(distances, direct(points[:5], points), rtol=1e-14)
    np.testing.assert_array_equal(distances[:, :5], distances[:, :5].T)
    np.testing.assert_array_equal(np.diag(distances[:, :5]), 0.0)


def test_bytes_are_exact_at_their_extremes_in_many_dimensions():
    low, high = np.zeros((1, 100_000), np.uint8), np.full((1, 100_000), 255, np.uint8)
    assert pair_distances(low, high)[0, 0] == np.sqrt(100_000 * 255**2)
    signed = np.full((1, 100_000), -128, np.int8), np.full((1, 100_000), 127, np.int8)
    assert pair_distances(*signed)[0, 0] == np.sqrt(100_000 * 255**2)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-150, 1.0, 1e150]),
    st.sampled_from([0.0, 1e8]),
    st.integers(1, 300),
)
def test_direct_difference_at_any_scale_and_offset(seed, scale, offset, n_dims):
    points = (np.random.default_rng(seed).normal(size=(4, n_dims)) + offset) * scale
    distances = pair_distances(points, points)
    np.testing.assert_allclose(distances, direct(points, points), rtol=1e-12)
    np.testing.assert_array_equal(distances, distances.T)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_a_limit_abandons_only_what_lies_beyond_it(dtype):
    a, b = np.zeros(2000, dtype), np.full(2000, 3, dtype)
    full = limited(a, b, np.inf)
    assert full == 18_000.0
    assert limited(a, b, full) == full
    assert 10.0 < limited(a, b, 10.0) < full
