"""Affinities between classes are lowered as a dense computation has it, and no edge is lost."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.kernels.affinities.classes import lowered_between_classes


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
