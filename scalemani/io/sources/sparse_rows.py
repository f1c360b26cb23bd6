"""Points kept as compressed sparse rows, read as these or dense."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from scalemani.config.validation import check_exact
from scalemani.errors import DataError, warn
from scalemani.io.sources.base import Source, as_store_errors
from scalemani.io.sources.numpy_files import as_damage
from scalemani.io.sources.sliced import missing_chunks

SparseParts = tuple[Any, Any, Any, tuple[int, ...], str]
SPARSE_PARTS = ("data", "indices", "indptr")
BY_ROWS, BY_COLUMNS = "csr_matrix", "csc_matrix"  # what AnnData calls the two ways of compression
INDEX_BYTES = 4  # of the column of a nonzero
LEAST_SAVING = 4  # times as many bytes as sparse rows that dense ones take, for rows to stay sparse


class SparseRows(Source):
    """Compressed sparse rows whose parts are arrays in memory, HDF5 datasets or zarr arrays."""

    def __init__(self, data: Any, indices: Any, indptr: Any, shape: tuple[int, ...], description: str) -> None:
        super().__init__(shape, data.dtype, f"{description} (sparse)")
        self.remark = missing_parts((data, indices, indptr), description)
        self.data = data
        self.indices = indices
        self.indptr = np.asarray(indptr[...], dtype=np.int64)
        ends = (int(self.indptr[0]), int(self.indptr[-1])) if self.indptr.size else (0, 0)
        if self.indptr.shape != (self.shape[0] + 1,) or ends != (0, data.shape[0]) or np.any(np.diff(self.indptr) < 0):
            raise DataError(
                f"{description}: row pointers do not fit {self.shape} with {data.shape[0]} values; save it again"
            )

    @property
    def nonzeros(self) -> int | None:
        """The values that are stored; None where dense rows take little more room, and are quicker."""
        size, entries = self.dtype.itemsize, int(self.indptr[-1])
        sparse = LEAST_SAVING * entries * (size + INDEX_BYTES) <= self.shape[0] * self.shape[1] * size
        return entries if sparse else None

    def rows(self, start: int, stop: int) -> sparse.csr_matrix:
        """Return rows [start, stop) as they are stored."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        with as_store_errors(self.description, start, stop):
            values, columns = np.asarray(self.data[first:last]), np.asarray(self.indices[first:last])
        if columns.size and (columns.min() < 0 or columns.max() >= self.shape[1]):
            raise DataError(f"{self.description}: column indices of rows [{start}, {stop}) leave [0, {self.shape[1]})")
        parts = (values, columns, self.indptr[start : stop + 1] - first)
        # Sums of small integers written twice could overflow their dtype; the points' own dtype is what counts. True
        # written twice is True, and wide integers are checked before they become float64.
        as_stored = values.dtype.kind == "b" or (values.dtype.kind in "iu" and values.dtype.itemsize == 8)
        dtype = values.dtype if as_stored else self.dtype
        return sparse.csr_matrix(parts, shape=(stop - start, self.shape[1]), dtype=dtype)

    def read_sparse(self, start: int, stop: int) -> sparse.csr_matrix:
        """Return rows [start, stop): columns ascend, none comes twice, and no zero is stored."""
        self.check_range(start, stop)
        rows = self.rows(start, stop)
        if not rows.has_canonical_format or not rows.data.all():
            rows = rows.copy()  # the parts may be those of somebody's matrix
            rows.sum_duplicates()
            rows.eliminate_zeros()
        check_exact(rows, start, self.description)
        return rows.astype(self.dtype, copy=False)


def sparse_file(path: Path) -> SparseRows:
    """Open a file of `scipy.sparse.save_npz`, or the parts of compressed rows, in memory."""
    with as_damage(path):
        with np.load(path, allow_pickle=False) as parts:
            if "format" not in parts:  # then the row pointers tell whether these are rows
                data, indices, indptr = (parts[name] for name in SPARSE_PARTS)
                return SparseRows(data, indices, indptr, tuple(parts["shape"].tolist()), str(path))
        return sparse_matrix(sparse.load_npz(path), str(path))


def sparse_matrix(matrix: Any, description: str | None = None) -> SparseRows:
    """Open a matrix of SciPy, of any format."""
    where = description or f"{type(matrix).__name__} in memory"
    rows = compressed_rows(matrix, where)
    return SparseRows(rows.data, rows.indices, rows.indptr, rows.shape, where)


def compressed_rows(matrix: Any, description: str) -> Any:
    """Return a SciPy matrix as compressed rows; its indices are checked before compiled code uses them."""
    try:
        if matrix.format in ("csr", "csc", "bsr"):
            parts = (matrix.data, matrix.indices, matrix.indptr)
            type(matrix)(parts, shape=matrix.shape).check_format(full_check=True)  # which may change what it looks at
        elif matrix.format == "coo":
            type(matrix)((matrix.data, matrix.coords), shape=matrix.shape)
    except (ValueError, IndexError) as error:
        raise DataError(
            f"{description} is no sparse matrix that can be read: {error}; save or build it again"
        ) from error
    return matrix.tocsr()


def missing_parts(parts: Sequence[Any], description: str) -> str:
    """Return a warning about missing chunks of data, indices and indptr."""
    named = zip(parts, SPARSE_PARTS, strict=True)
    return "; ".join(filter(None, (missing_chunks(part, f"{description}/{name}") for part, name in named)))


def sparse_parts(group: Any, attributes: dict[str, Any], description: str) -> SparseParts:
    """Return compressed sparse rows in AnnData's encoding; a square matrix by columns is read whole and converted."""
    if any(name not in group for name in SPARSE_PARTS) or "shape" not in attributes:
        raise DataError(f"{description} is a group and no matrix; it holds {', '.join(group.keys()) or 'nothing'}")
    data, indices, indptr = (group[name] for name in SPARSE_PARTS)
    try:
        shape = tuple(int(length) for length in attributes["shape"])
    except (TypeError, ValueError) as error:
        raise DataError(f"{description}: its shape is {attributes['shape']!r}, two numbers are needed") from error
    encoding = attributes.get("encoding-type", BY_ROWS)
    if encoding == BY_ROWS:
        return data, indices, indptr, shape, description
    if encoding != BY_COLUMNS or len(set(shape)) != 1:
        raise DataError(
            f"{description} is a {encoding} {shape}: rows can be read from a {BY_ROWS} only, save it again as one, for "
            "example with .tocsr()"
        )
    if remark := missing_parts((data, indices, indptr), description):
        warn(remark)
    with as_store_errors(description, 0, shape[0]):
        columns = sparse.csc_matrix((data[...], indices[...], indptr[...]), shape=shape)
        rows = compressed_rows(columns, description)
    return rows.data, rows.indices, rows.indptr, shape, description
