"""Sparse matrices out to files that other programs read: .npz of SciPy, and .zarr in AnnData's encoding."""

import itertools
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from scalemani.io.export.atomic import replaced_file
from scalemani.io.export.rows import fill, group_array, npy_member, whole_group

ENTRIES_AT_ONCE = 2**23  # of a sparse matrix: 64 MB of columns and values of four bytes each
CHUNK_ENTRIES = 2**21
NewArray = Callable[[Any, str, tuple[int, ...], np.dtype, int], Any]  # as `group_array`


class SparseMatrix(Protocol):
    """A sparse matrix that is read by rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def dtype(self) -> np.dtype:
        """Of the values."""

    @property
    def indptr(self) -> np.ndarray:
        """Where each row begins and ends among the entries: (N + 1,) int64."""

    def rows(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop)."""


def row_parts(indptr: np.ndarray, entries: int = ENTRIES_AT_ONCE) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of consecutive rows that hold about so many entries, at least one row each."""
    start, n_rows = 0, len(indptr) - 1
    while start < n_rows:
        stop = int(np.searchsorted(indptr, indptr[start] + entries, "right")) - 1
        stop = min(max(stop, start + 1), n_rows)
        yield start, stop
        start = stop


def index_dtype(matrix: SparseMatrix) -> np.dtype:
    """Return the type of row bounds and columns: that which SciPy would choose."""
    return np.dtype(np.int32 if max(*matrix.shape, matrix.indptr[-1]) < 2**31 else np.int64)


def write_npz(matrix: SparseMatrix, target: str) -> None:
    """Write a CSR matrix as `scipy.sparse.load_npz` reads it, in one pass over its rows.

    The values wait in a file without a name until all columns are written.
    """
    kind, n_entries = index_dtype(matrix), int(matrix.indptr[-1])
    with (
        replaced_file(target) as file,
        zipfile.ZipFile(file, "w") as archive,
        tempfile.TemporaryFile(dir=Path(target).parent) as waiting,
    ):
        small = {"format": np.array(b"csr"), "shape": np.array(matrix.shape), "indptr": matrix.indptr.astype(kind)}
        for name, values in small.items():
            write_member(archive, name, values)
        with npy_member(archive, "indices", (n_entries,), kind) as member:
            for start, stop in row_parts(matrix.indptr):
                rows = matrix.rows(start, stop)
                member.write(rows.indices.astype(kind, copy=False).data.cast("B"))
                waiting.write(rows.data.data.cast("B"))
        waiting.seek(0)
        with npy_member(archive, "data", (n_entries,), matrix.dtype) as member:
            shutil.copyfileobj(waiting, member)


def write_member(archive: zipfile.ZipFile, name: str, values: Any) -> None:
    """Write a small array."""
    with archive.open(f"{name}.npy", "w") as member:
        np.lib.format.write_array(member, np.asanyarray(values))


def write_zarr(matrix: SparseMatrix, target: str) -> None:
    """Write a zarr group of `data`, `indices` and `indptr` with the attributes by which AnnData knows a CSR matrix."""
    with whole_group(target) as group:
        fill_matrix(matrix, group, group_array)


def fill_matrix(matrix: SparseMatrix, group: Any, new_array: NewArray) -> None:
    """Write a CSR matrix as AnnData does into an empty group of zarr or HDF5, where `new_array` creates arrays."""
    kind, n_entries = index_dtype(matrix), int(matrix.indptr[-1])
    group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(matrix.shape)})
    chunk = min(CHUNK_ENTRIES, max(1, n_entries))
    data = new_array(group, "data", (n_entries,), matrix.dtype, chunk)
    indices = new_array(group, "indices", (n_entries,), kind, chunk)
    indptr = new_array(group, "indptr", matrix.indptr.shape, kind, min(CHUNK_ENTRIES, len(matrix.indptr)))
    fill(indptr, iter([(0, matrix.indptr.astype(kind))]))
    for start, stop in row_parts(matrix.indptr):
        rows, first = matrix.rows(start, stop), int(matrix.indptr[start])
        fill(data, itertools.repeat((first, rows.data), 1))
        fill(indices, itertools.repeat((first, rows.indices.astype(kind, copy=False)), 1))


WRITERS = {".npz": write_npz, ".zarr": write_zarr}
