"""Affinities lowered between classes, and over powers of degrees, against dense matrices; no edge is lost."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.kernels.affinities.reweighting import density_normalized, density_scales, lowered_between_classes


def symmetric_matrix(seed, dtype):
    """Return W (40, 40) in CSR form with a class for each of its rows, -1 for some."""
    random = np.random.default_rng(seed)
    table = np.triu(random.random((40, 40)) * (random.random((40, 40)) < 0.3), 1)
    return sp.csr_matrix((table + table.T).astype(dtype)), random.integers(-1, 3, 40).astype(np.int32)


def lowered(matrix, codes, target_weight):
    values = lowered_between_classes(matrix.indptr, matrix.data, codes, codes[matrix.indices], target_weight)
    assert values.dtype == matrix.dtype
    return sp.csr_matrix((values, matrix.indices, matrix.indptr), shape=matrix.shape).toarray()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target_weight", [0.25, 0.9])
def test_entries_between_two_known_classes_are_multiplied_and_others_stay(dtype, target_weight):
    matrix, codes = symmetric_matrix(0, dtype)
    plain, found = matrix.toarray(), lowered(matrix, codes, target_weight)
    between = (codes[:, None] != codes) & (codes[:, None] >= 0) & (codes >= 0)
    np.testing.assert_array_equal(found[~between], plain[~between])
    np.testing.assert_allclose(found[between], plain[between] * np.float64(1 - target_weight), rtol=np.finfo(dtype).eps)
    np.testing.assert_array_equal(found, found.T)


def test_a_target_weight_of_zero_changes_no_bit():
    matrix, codes = symmetric_matrix(1, np.float32)
    np.testing.assert_array_equal(lowered(matrix, codes, 0.0), matrix.toarray())


def test_no_edge_is_lost_where_products_underflow():
    matrix, codes = symmetric_matrix(2, np.float32)
    matrix.data *= np.float32(1e-37)
    found = lowered(matrix, codes, float(np.nextafter(1.0, 0.0)))
    np.testing.assert_array_equal(found > 0, matrix.toarray() > 0)
    assert (found <= matrix.toarray()).all()


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
