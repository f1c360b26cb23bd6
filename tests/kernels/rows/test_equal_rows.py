"""Equal rows, and rows in one cell of a grid, against what comparing all pairs finds."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from scalemani.errors import DataError
from scalemani.kernels.rows.equal_rows import (
    GROUPING_BYTES,
    cells_of_rows,
    contents_of_rows,
    digests_of_rows,
    first_of_equal_rows,
    group_digests,
)

FEW_VALUES = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 3.0])
TABLES = arrays(np.float64, st.tuples(st.integers(0, 40), st.integers(1, 3)), elements=FEW_VALUES)


def firsts_by_pairs(points):
    """Return the first row that equals each row, by comparing all pairs."""
    return np.array([next(i for i, other in enumerate(points) if np.array_equal(row, other)) for row in points], int)


@given(TABLES)
def test_groups_are_those_of_equal_rows_numbered_by_their_first_rows(points):
    found = group_digests(digests_of_rows(points))
    firsts = firsts_by_pairs(points)
    np.testing.assert_array_equal(found.first_rows, np.unique(firsts))
    np.testing.assert_array_equal(found.first_rows[found.groups], firsts)
    np.testing.assert_array_equal(first_of_equal_rows(points), np.unique(firsts))


@given(TABLES, st.integers(1, 7))
def test_groups_do_not_depend_on_blocks_and_on_zeros_that_are_not_kept(points, block):
    whole = group_digests(digests_of_rows(points))
    parts = [sp.csr_matrix(points[start : start + block]) for start in range(0, len(points), block)]
    parts = [digests_of_rows(part) for part in parts] or [np.empty((0, 2), np.uint64)]
    found = group_digests(np.concatenate(parts))
    np.testing.assert_array_equal(found.groups, whole.groups)
    np.testing.assert_array_equal(found.first_rows, whole.first_rows)


@pytest.mark.parametrize("n_distinct", [10, 20_000])
def test_grouping_takes_the_bytes_a_row_that_a_budget_is_asked_for(n_distinct):
    n_rows = 20_000
    digests = np.repeat(np.arange(n_distinct, dtype=np.uint64), n_rows // n_distinct)[:, np.newaxis] * [[7, 11]]
    digests = digests.astype(np.uint64)
    tracemalloc.start()
    try:
        group_digests(digests)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak + digests.nbytes <= 1.01 * GROUPING_BYTES * n_rows


def test_sparse_rows_are_told_apart_by_their_columns_whatever_integers_number_these():
    rows = sp.csr_matrix([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    wide = sp.csr_matrix(rows)
    wide.indices, wide.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    assert list(contents_of_rows(rows)) == list(contents_of_rows(wide))
    assert first_of_equal_rows(rows).tolist() == [0, 1]


@given(
    arrays(np.float64, st.tuples(st.integers(2, 30), st.integers(1, 4)), elements=st.floats(-2, 2)),
    st.floats(1e-3, 3),
)
def test_rows_of_one_cell_are_within_the_tolerance_and_equal_rows_are_in_one_cell(points, tolerance):
    groups = group_digests(digests_of_rows(cells_of_rows(points, tolerance))).groups
    for one, group in enumerate(groups):
        distances = np.linalg.norm(points[groups == group] - points[one], axis=1)
        assert distances.max() <= tolerance * (1 + 1e-9)
        assert np.all(groups[np.all(points == points[one], axis=1)] == group)


def test_cells_of_sparse_rows_are_those_of_the_dense_ones_and_stay_sparse():
    points = sp.random(50, 20, 0.2, "csr", rng=0)
    found = cells_of_rows(points, 0.5)
    np.testing.assert_array_equal(found.toarray(), cells_of_rows(points.toarray(), 0.5))
    assert 0 < found.nnz < points.nnz
    assert np.all(found.data != 0)


def test_a_tolerance_that_leaves_no_finite_cells_is_refused():
    with pytest.raises(DataError, match=r"tolerance=1e-200 is too small for coordinates up to 1e\+150: raise it"):
        cells_of_rows(np.array([[1e150], [0.0]]), 1e-200)
