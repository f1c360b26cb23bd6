"""Points in arrays that are read by slices of rows: zarr, HDF5, memory maps, labelled arrays, other libraries.

Sparse rows are three such arrays. What the attributes of an array say of its numbers, by the CF conventions that xarray
and netCDF follow, is applied: scale, offset, and the values that stand for gaps.
"""

import base64
import contextlib
import mmap
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from scipy import sparse

from scalemani.config.validation import check_dtype, check_exact, refuse_gaps, unmasked, with_nan
from scalemani.errors import DataError, warn
from scalemani.io.sources.base import PointsSource, Source, as_damage, as_store_errors, check_read
from scalemani.io.sources.chunks import chunks_of, missing_chunks
from scalemani.io.sources.columns import coordinate_names

SPARSE_PARTS = ("data", "indices", "indptr")
BY_ROWS, BY_COLUMNS = "csr_matrix", "csc_matrix"  # what AnnData calls the two ways of compression
INDEX_BYTES = 4  # of the column of a nonzero
# Attributes of the CF conventions, and one of netCDF 3, which has no unsigned integers.
GAPS, SCALES, UNSIGNED = ("_FillValue", "missing_value"), ("scale_factor", "add_offset"), "_Unsigned"
XARRAY = "_ARRAY_DIMENSIONS"  # an attribute of arrays that xarray writes to zarr of format 2
LEAST_SAVING = 4  # times as many bytes as sparse rows that dense ones take, for rows to stay sparse


@dataclass(frozen=True)
class Packing:
    """How stored values stand for numbers: times `scale` plus `offset` where `scaled`; `fills` are gaps.

    `dtype` is that of integers whose sign is not what their array says.
    """

    dtype: np.dtype | None = None
    fills: tuple[float, ...] = ()
    scale: float = 1.0
    offset: float = 0.0
    scaled: bool = False

    @classmethod
    def of(cls, array: Any, description: str) -> "Packing":
        """Return what the attributes of an array say, those of zarr, h5py and xarray."""
        attributes, dtype = getattr(array, "attrs", None), np.dtype(array.dtype)
        if not isinstance(attributes, Mapping):
            return cls()
        try:
            attributes = dict(attributes)
        except (TypeError, ValueError) as error:
            raise DataError(f"{description} was damaged: its attributes are no names with values ({error})") from error
        if UNSIGNED in attributes and dtype.kind in "iu":
            unsigned = np.asarray(attributes[UNSIGNED], str).item().lower() == "true"
            dtype = np.dtype(f"{'u' if unsigned else 'i'}{dtype.itemsize}")
        stated = {name: attributes[name] for name in (*GAPS, *SCALES) if name in attributes}
        if isinstance(array, zarr.Array) and array.metadata.zarr_format == 2 and XARRAY in attributes:
            stated.setdefault("_FillValue", array.fill_value)  # where xarray keeps it in this format
        with contextlib.suppress(TypeError, ValueError, struct.error):
            fills = [fill for name in GAPS for fill in fill_values(stated.get(name), dtype)]
            for name in GAPS if dtype != array.dtype else ():
                fills += np.array(fill_values(stated.get(name), array.dtype), array.dtype).astype(dtype).tolist()
            scale, offset = (float(np.asarray(stated.get(name, 1 - place)).item()) for place, name in enumerate(SCALES))
            other = None if dtype == array.dtype else dtype
            return cls(other, tuple(dict.fromkeys(fills)), scale, offset, not stated.keys().isdisjoint(SCALES))
        raise DataError(
            f"{description} has attributes that are not one number: {stated}; {' and '.join(SCALES)} are one number "
            "each, and values of gaps are numbers"
        )

    def unpacked(self, stored: np.ndarray, first_row: int, points: Source) -> np.ndarray:
        """Return the numbers (n, D) of stored rows; refuse gaps, or give NaN for them where the points do."""
        stored = stored.astype(self.dtype or stored.dtype, copy=False)
        gaps = np.isin(stored, np.array(self.fills, stored.dtype)) if self.fills else np.zeros((1, 1), bool)
        if not points.gaps:
            marks = f"{' or '.join(GAPS)} {', '.join(map(str, self.fills))}"
            refuse_gaps(gaps, first_row, f"{points.description} ({marks})")
        if not (self.scaled or (points.gaps and gaps.any())):
            return stored
        check_exact(np.where(gaps, 0, stored), first_row, points.description)
        numbers = stored.astype(points.dtype)
        if self.scaled:
            numbers *= self.scale
            numbers += self.offset
        numbers[np.broadcast_to(gaps, numbers.shape)] = np.nan
        return numbers


def fill_values(attribute: Any, dtype: Any) -> list[float]:
    """Return the values of `dtype` that are gaps by an attribute: none where it is not there, NaN or of another type.

    xarray keeps the bytes of a float64 in base64.
    """
    if isinstance(attribute, str):
        with contextlib.suppress(ValueError):
            return fill_values(float(attribute), dtype)
        attribute = struct.unpack("<d", base64.b64decode(attribute))[0]
    values = [] if attribute is None else np.ravel(np.asarray(attribute)).tolist()
    if dtype.kind == "f":
        return [float(np.asarray(value, dtype)) for value in values if value == value]
    limits = np.iinfo(dtype) if dtype.kind in "iu" else np.iinfo(np.uint8)
    return [int(value) for value in values if limits.min <= value <= limits.max and value == int(value)]


class SlicedPoints(Source):
    """An object with a shape and a dtype whose slices of rows become arrays; no more is read than is requested."""

    def __init__(self, array: Any, description: str | None = None) -> None:
        where = description or f"{type(array).__name__} in memory"
        check_dtype(array.dtype, where)  # before its attributes are looked at
        self.packing, no_rows = Packing.of(array, where), no_rows_of(array)
        dtype = self.packing.dtype or (array.dtype if no_rows is None else no_rows.dtype)
        self.gapped = bool(self.packing.fills) or np.ma.isMaskedArray(no_rows)
        super().__init__(tuple(array.shape), np.float64 if self.packing.scaled else dtype, where)
        self.array, self.remark = array, missing_chunks(array, self.description)
        most_rows, self.preferred_rows, *_ = chunks_of(array, where)
        self.held_bytes = most_rows * self.shape[1] * self.dtype.itemsize
        self.column_names = coordinate_names(array)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), unpacked by CF conventions; those of a memory map as a copy."""
        with as_store_errors(self.description, start, stop):
            rows = self.array[start:stop]
            if isinstance(self.array, np.memmap):
                rows = np.array(rows)
                release_pages(self.array)
        return self.packing.unpacked(np.asarray(unmasked(rows, self.description, self.gaps, start)), start, self)

    def accept_gaps(self) -> None:
        """Give gaps as NaN; a dtype of integers that has gaps becomes one of floats."""
        super().accept_gaps()
        if self.gapped:
            self.dtype = with_nan(self.dtype)


def release_pages(array: np.memmap) -> None:
    """Let go of the pages of a mapped file, which stay in memory else: they are read again where they are needed.

    Those of a map that is copied on write hold what was written.
    """
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and array.mode in ("r", "r+", "w+") and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def no_rows_of(array: Any) -> Any:
    """Return no rows of an array, in the type of its slices, which netCDF4 unpacks; None where it gives none."""
    with contextlib.suppress(Exception):  # arrays that have no empty slices say so in many ways
        return np.asanyarray(array[:0])
    return None


def is_sliced(points: Any) -> bool:
    """Return whether an object is a table (N, D) of numbers to be read by slices: not an array that is in memory."""
    if isinstance(points, np.memmap):
        return points.ndim == 2
    if isinstance(points, np.ndarray | np.generic) or not hasattr(points, "__getitem__"):
        return False
    shape, dtype = getattr(points, "shape", None), getattr(points, "dtype", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or dtype is None or not hasattr(points, "__array__"):
        return False
    try:
        np.dtype(dtype)
    except TypeError:  # of another library, which NumPy does not know: NumPy asks the object for all of it
        return False
    return all(isinstance(length, int | np.integer) for length in shape)


class SparseSource(Source):
    """A source whose rows may be stored as sparse ones."""

    def read_sparse(self, start: int, stop: int) -> sparse.csr_matrix:
        """Return rows [start, stop): columns ascend, none comes twice, and no zero is stored."""
        self.check_range(start, stop)
        return sparse_rows(self.rows(start, stop), start, stop, self)


class SparseRows(SparseSource):
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
        size = self.dtype.itemsize  # rows that take little less room than dense ones are read dense, which is quicker
        if LEAST_SAVING * ends[1] * (size + INDEX_BYTES) <= self.shape[0] * self.shape[1] * size:
            self.nonzeros = ends[1]

    def rows(self, start: int, stop: int) -> sparse.csr_matrix:
        """Return rows [start, stop) in CSR form as stored, repeated entries too; DataError for columns out of range."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        with as_store_errors(self.description, start, stop):
            values, columns = np.asarray(self.data[first:last]), np.asarray(self.indices[first:last])
        if columns.size and (columns.min() < 0 or columns.max() >= self.shape[1]):
            raise DataError(f"{self.description}: column indices of rows [{start}, {stop}) leave [0, {self.shape[1]})")
        parts = (values, columns, self.indptr[start : stop + 1] - first)
        # Sums of small integers written twice could overflow their dtype; that of the points counts. True
        # written twice is True, and wide integers are checked before they become float64.
        as_stored = values.dtype.kind == "b" or (values.dtype.kind in "iu" and values.dtype.itemsize == 8)
        dtype = values.dtype if as_stored else self.dtype
        return sparse.csr_matrix(parts, shape=(stop - start, self.shape[1]), dtype=dtype)


def sparse_rows(values: Any, start: int, stop: int, points: PointsSource) -> sparse.csr_matrix:
    """Return rows [start, stop) of points, sparse or not, as `PointsSource.read_sparse` does; refuse any others."""
    rows = sparse.csr_matrix(values)
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()  # the parts may be those of somebody's matrix
        rows.sum_duplicates()
        rows.eliminate_zeros()
    check_read(rows, start, stop, points)
    return rows.astype(points.dtype, copy=False)


def sparse_file(path: Path) -> SparseRows:
    """Open a file of `scipy.sparse.save_npz`, or the parts of compressed rows, in memory."""
    with as_damage(path):
        with np.load(path, allow_pickle=False) as parts:
            if "format" not in parts:  # then the row pointers show whether these are rows
                data, indices, indptr = (parts[name] for name in SPARSE_PARTS)
                return SparseRows(data, indices, indptr, tuple(parts["shape"].tolist()), str(path))
        return sparse_matrix(sparse.load_npz(path), str(path))


def sparse_matrix(matrix: Any, description: str | None = None) -> SparseRows:
    """Return the source of a matrix of SciPy of any format, by its rows in CSR form."""
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


def sparse_group(group: Any, description: str) -> SparseRows:
    """Open compressed sparse rows in AnnData's encoding; a square matrix by columns is read whole and converted."""
    attributes = dict(group.attrs)
    if any(name not in group for name in SPARSE_PARTS) or "shape" not in attributes:
        frame = attributes.get("encoding-type") == "dataframe"
        remedy = ": give it in Python, as adata.obsm[name], or store it as a matrix, by its to_numpy()" if frame else ""
        held = ", ".join(group.keys()) or "nothing"
        raise DataError(f"{description} is a {'frame' if frame else 'group'} and no matrix; it holds {held}{remedy}")
    data, indices, indptr = (group[name] for name in SPARSE_PARTS)
    try:
        shape = tuple(int(length) for length in attributes["shape"])
    except (TypeError, ValueError) as error:
        raise DataError(f"{description}: its shape is {attributes['shape']!r}, two numbers are needed") from error
    encoding = attributes.get("encoding-type", BY_ROWS)
    if encoding == BY_ROWS:
        return SparseRows(data, indices, indptr, shape, description)
    if encoding != BY_COLUMNS or len(set(shape)) != 1:
        raise DataError(
            f"{description} is a {encoding} {shape}: rows can be read from a {BY_ROWS} only, save it again as one, for "
            "example with .tocsr()"
        )
    if remark := missing_parts((data, indices, indptr), description):
        warn(remark)
    with as_store_errors(description, 0, shape[0]):
        return sparse_matrix(sparse.csc_matrix((data[...], indices[...], indptr[...]), shape=shape), description)
