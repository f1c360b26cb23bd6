"""W over powers of its degrees, against dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.kernels.graph.density import density_normalized, density_scales


def symmetric(n_points, seed, dtype):
    half = sp.random_array((n_points, n_points), density=0.2, rng=np.random.default_rng(seed))
    return sp.csr_matrix(half + half.T + sp.eye_array(n_points), dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_each_edge_is_divided_by_the_powers_of_the_degrees_at_its_ends(alpha, dtype):
    w = symmetric(40, 1, dtype)
    degrees = w.toarray().sum(axis=1, dtype=np.float64)
    expected = np.diag(degrees**-alpha) @ w.toarray() @ np.diag(degrees**-alpha)
    found = w.copy()
    found.data = density_normalized(w.indptr, w.indices, w.data, 0, density_scales(degrees, alpha))
    assert found.dtype == dtype
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-6 if dtype == np.float32 else 1e-13)
    np.testing.assert_array_equal(found.toarray(), found.toarray().T)


def test_rows_from_the_middle_are_scaled_as_in_the_whole():
    w, scales = symmetric(30, 2, np.float32), np.random.default_rng(0).uniform(0.1, 2, 30)
    rows = w[11:17]
    whole = density_normalized(w.indptr, w.indices, w.data, 0, scales)
    part = density_normalized(rows.indptr, rows.indices, rows.data, 11, scales)
    np.testing.assert_array_equal(part, whole[w.indptr[11] : w.indptr[17]])


def test_with_alpha_zero_nothing_changes():
    w = symmetric(25, 3, np.float32)
    degrees = np.asarray(w.sum(axis=1), np.float64).ravel()
    np.testing.assert_array_equal(
        density_normalized(w.indptr, w.indices, w.data, 0, density_scales(degrees, 0.0)), w.data
    )
