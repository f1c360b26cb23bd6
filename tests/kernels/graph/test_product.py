import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.graph.product import dirichlet_energies, normalized_product, smoothed


def affinities(n_points, share, seed):
    """Symmetric affinities, some rows of which have no or few nonzeros."""
    draws = np.random.default_rng(seed)
    dense = np.triu(draws.random((n_points, n_points)) * (draws.random((n_points, n_points)) < share), 1)
    return dense + dense.T


def rows_of(matrix, start, stop, dtype, index_dtype):
    part = sp.csr_matrix(matrix[start:stop])
    return part.indptr.astype(np.int64), part.indices.astype(index_dtype), part.data.astype(dtype)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_points=st.integers(1, 60),
    n_columns=st.integers(1, 9),
    share=st.sampled_from([0.05, 0.3, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    index_dtype=st.sampled_from([np.int32, np.uint32, np.int64]),
    first=st.integers(0, 59),
)
def test_blocks_of_rows_are_those_of_the_dense_products(seed, n_points, n_columns, share, dtype, index_dtype, first):
    draws = np.random.default_rng(seed)
    weights = affinities(n_points, share, seed)
    inverse_roots, smoothing = draws.random(n_points) + 0.5, draws.random(n_points)
    vectors, right = draws.normal(size=(2, n_points, n_columns)).astype(dtype)
    product = inverse_roots[:, None] * weights * inverse_roots
    operator = np.eye(n_points) - product
    start, stop = min(first, n_points - 1), n_points
    rows = rows_of(weights, start, stop, dtype, index_dtype)
    out = np.empty((stop - start, n_columns), dtype)
    error = {"atol": 1e-12 if dtype == np.float64 else 2e-5 * max(1.0, np.abs(product).sum(axis=1).max())}
    normalized_product(rows, inverse_roots, start, vectors, out)
    np.testing.assert_allclose(out, (product @ vectors)[start:stop], **error)
    smoothed(rows, inverse_roots, smoothing, start, right, vectors, out)
    step = vectors + smoothing[:, None] * (right - operator @ vectors)
    np.testing.assert_allclose(out, step[start:stop], **error)


@pytest.mark.parametrize("n_neighbors", [0, 1, 3, 4, 5, 16, 17, 40])
def test_rows_of_every_length_are_summed_to_their_end(n_neighbors):
    weights = np.zeros((50, 50))
    weights[0, 1 : 1 + n_neighbors] = np.arange(1.0, 1.0 + n_neighbors)
    out = np.full((1, 1), np.nan)
    normalized_product(rows_of(weights, 0, 1, float, np.int32), np.ones(50), 0, np.ones((50, 1)), out)
    assert out[0, 0] == n_neighbors * (n_neighbors + 1) / 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_energies_are_the_quadratic_form_of_the_laplacian_to_relative_accuracy(dtype):
    """Of a vector that is nearly constant, v^T D v - v^T W v would have no digit."""
    weights, draws = affinities(50, 0.3, 1), np.random.default_rng(2)
    vectors = (1 + 1e-6 * draws.normal(size=(50, 3))).astype(dtype)
    out = np.empty((50, 3))
    for start, stop in ((0, 20), (20, 50)):
        dirichlet_energies(rows_of(weights, start, stop, np.float64, np.int32), start, vectors, out[start:stop])
    differences = vectors.astype(np.longdouble)[:, np.newaxis] - vectors
    expected = (0.5 * weights[:, :, np.newaxis] * differences**2).sum(axis=(0, 1))
    np.testing.assert_allclose(out.sum(axis=0), expected.astype(float), rtol=1e-12)
    assert (out >= 0).all()
