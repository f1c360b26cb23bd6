"""Rows that metrics refuse: found alike among dense and sparse rows, one by one."""

import numpy as np
import pytest
from scipy import sparse

from scalemani.kernels.rows.refusals import (
    ONLY_BITS,
    find_constant_rows,
    find_negative_rows,
    find_zero_rows,
    values_of,
)

ROWS = np.array([[0.0, 2.0, 1.0], [0.0, 0.0, 0.0], [3.0, -1.0, 0.0], [2.0, 2.0, 2.0], [1.0, 0.0, 1.0]])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_rows_are_found_by_what_they_hold(form):
    rows = form(ROWS)
    assert find_zero_rows(values_of(rows)).tolist() == [False, True, False, False, False]
    assert find_negative_rows(values_of(rows)).tolist() == [False, False, True, False, False]
    assert ONLY_BITS[0].concerns(rows).tolist() == [True, False, True, True, False]


def test_rows_of_one_value_are_found_among_dense_rows():
    assert find_constant_rows(values_of(ROWS)).tolist() == [False, True, False, True, False]
