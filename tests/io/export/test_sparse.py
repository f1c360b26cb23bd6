"""Sparse matrices in files: what SciPy and AnnData read back is the matrix, however many parts it was written in."""

import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import given
from hypothesis import strategies as st

from scalemani.io.export import writers


class Rows:
    """A matrix that is read by rows, and counts how often."""

    def __init__(self, matrix):
        self.matrix, self.asked = matrix, []

    shape = property(lambda self: self.matrix.shape)
    dtype = property(lambda self: self.matrix.dtype)
    indptr = property(lambda self: self.matrix.indptr.astype(np.int64))

    def rows(self, start, stop):
        self.asked.append((start, stop))
        return self.matrix[start:stop]


def matrix(dtype=np.float32, density=0.05):
    made = sp.random(300, 80, density=density, format="csr", random_state=1)
    made.sort_indices()
    return (made * 100).astype(dtype)


def same(found, expected):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 30))
def test_parts_are_all_rows_in_order_with_no_more_entries_than_asked_but_in_single_rows(counts, entries):
    bounds = np.concatenate([[0], np.cumsum(counts)])
    parts = list(writers.row_parts(bounds, entries))
    assert [row for start, stop in parts for row in range(start, stop)] == list(range(len(counts)))
    for start, stop in parts:
        assert stop == start + 1 or bounds[stop] - bounds[start] <= entries


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("entries", [7, 2**23])
def test_scipy_reads_back_the_matrix(tmp_path, dtype, entries):
    given = Rows(matrix(dtype))
    writers.write_sparse_npz(given, str(tmp_path / "w.npz"), entries)
    found = sp.load_npz(tmp_path / "w.npz")
    same(found, given.matrix)
    assert found.indices.dtype == np.int32
    assert len(given.asked) == (1 if entries > 1000 else len(list(writers.row_parts(given.indptr, entries))))
    assert [path.name for path in tmp_path.iterdir()] == ["w.npz"]


@pytest.mark.parametrize("chunk", [64, 2**21])
def test_a_group_has_what_anndata_looks_for(tmp_path, chunk):
    given = Rows(matrix())
    writers.write_sparse_zarr(given, str(tmp_path / "w.zarr"), chunk)
    group = zarr.open_group(tmp_path / "w.zarr", mode="r")
    assert dict(group.attrs) == {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [300, 80]}
    found = sp.csr_matrix((group["data"][...], group["indices"][...], group["indptr"][...]), group.attrs["shape"])
    same(found, given.matrix)


def test_a_matrix_without_entries_is_written_too(tmp_path):
    empty = sp.csr_matrix((5, 3), dtype=np.float32)
    writers.write_sparse_npz(Rows(empty), str(tmp_path / "w.npz"))
    writers.write_sparse_zarr(Rows(empty), str(tmp_path / "w.zarr"))
    same(sp.load_npz(tmp_path / "w.npz"), empty)
    assert zarr.open_group(tmp_path / "w.zarr", mode="r")["data"].shape == (0,)


@pytest.mark.parametrize(
    ("shape", "entries", "expected"),
    [
        ((10, 10), 50, np.int32),
        ((2**31, 10), 50, np.int64),
        ((10, 10), 2**31, np.int64),
        ((10, 2**31 - 1), 5, np.int32),
    ],
)
def test_columns_and_bounds_are_as_wide_as_they_need_to_be(shape, entries, expected):
    class Sized:
        pass

    sized = Sized()
    sized.shape, sized.indptr = shape, np.array([0, entries])
    assert writers.index_dtype(sized) == expected
