"""Arrays out to files that other programs read, by blocks of rows: one or several, sparse matrices, and tables."""

import contextlib
import csv
import functools
import io
import math
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp
import zarr

from scalemani.errors import ConfigError, refuse_credentials, refuse_home
from scalemani.io.export.atomic import already_there, new_folder, replaced_file
from scalemani.io.sources.base import PointsSource, optional_module, without_credentials
from scalemani.io.sources.label_values import categories_of, is_absent, is_number
from scalemani.io.sources.lazy import LazyRows, lazy_rows
from scalemani.io.sources.opening import open_points
from scalemani.io.sources.stores import as_zarr_errors, store_at
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.machine.control_groups import usable_processors

BLOCK_BYTES = 2**24
EVERY_CHUNK: Any = {"write_empty_chunks": True}

Progress = Callable[[int], None]
WriteRows = Callable[[int, np.ndarray], None]  # of which the first one is at a place of the whole array
Arrays = Mapping[str, LazyRows]
ENTRIES_AT_ONCE = 2**23  # of a sparse matrix: 64 MB of columns and values of four bytes each
CHUNK_ENTRIES = 2**21
NewArray = Callable[[Any, str, tuple[int, ...], np.dtype, int], Any]  # as `group_array`
CSV = ".csv"
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # with which spreadsheets begin one, or what they leave out before it
AXES = ("x", "y", "z")
ROW = "row"  # of a .csv, which has no other identifier
NEIGHBORS = "neighbors"  # {"ids": [...], "distances": [...]} in each row, ids being rows of the table


@contextlib.contextmanager
def npy_writer(target: str, rows: LazyRows) -> Iterator[WriteRows]:
    """Yield the writer of an .npy file, written at offsets: unlike a memory map, nothing written stays resident."""
    row_bytes = math.prod(rows.shape[1:]) * rows.dtype.itemsize
    with replaced_file(target) as file:
        write_npy_header(file, rows.shape, rows.dtype)
        file.flush()
        first = file.tell()

        def write(start: int, block: np.ndarray) -> None:
            content = np.ascontiguousarray(block).data.cast("B")
            offset = first + start * row_bytes
            while content:
                written = os.pwrite(file.fileno(), content, offset)
                content, offset = content[written:], offset + written

        yield write


@contextlib.contextmanager
def zarr_writer(
    target: str, rows: LazyRows, attributes: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[WriteRows]:
    """Yield the writer of a zarr v3 array of one chunk a block, which has its attributes once all rows are written."""
    chunks = (min(rows.preferred_rows or TILE_ROWS, max(len(rows), 1)), *rows.shape[1:])

    def create(place: Any) -> zarr.Array:
        return zarr.create_array(place, shape=rows.shape, dtype=rows.dtype, chunks=chunks, config=EVERY_CHUNK)

    with new_zarr(target, create) as array:

        def write(start: int, block: np.ndarray) -> None:
            array[start : start + len(block)] = block

        yield write
        if attributes:
            array.attrs.update(attributes)


@contextlib.contextmanager
def new_zarr(target: str, create: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield a new zarr array or group, which is at `target` at the end; a partial store behind a URL stays."""
    remote = "://" in target
    opening: Any = contextlib.nullcontext(store_at(target, read_only=False)) if remote else new_folder(target)
    with opening as place:
        shown = without_credentials(target)
        with as_zarr_errors(shown, f"cannot create {shown}"):
            node = create(place if remote else str(place))
        refuse_other(target, node)
        yield node


def refuse_other(target: str, node: zarr.Array | zarr.Group) -> None:
    """Refuse to replace a zarr store of another kind, before anything is written."""
    if "://" in target or not Path(target).exists():
        return
    try:
        there: Any = zarr.open(target, mode="r")
    except Exception as error:  # of a damaged store, of many kinds
        raise already_there(target) from error
    kinds = [[getattr(one, name, None) for name in ("shape", "dtype", "chunks")] for one in (node, there)]
    if kinds[0] != kinds[1]:
        raise already_there(target)


# Of one array with rows, by threads; a table of .parquet is written in order.
ROW_WRITERS: Mapping[str, Callable[[str, LazyRows], contextlib.AbstractContextManager[WriteRows]]] = {
    ".npy": npy_writer,
    ".zarr": zarr_writer,
}
SUFFIXES = tuple(sorted((*ROW_WRITERS, ".parquet")))


def rows_per_block(row_bytes: int, preferred: int | None = None) -> int:
    """Return a number of rows of about 16 MB: a multiple of the rows that the source prefers, or of 1024."""
    step = preferred or TILE_ROWS
    return step * max(1, BLOCK_BYTES // max(1, row_bytes * step))


def write_rows(
    read: Callable[[int, int], np.ndarray],
    shape: tuple[int, ...],
    dtype: Any,
    path: str | Path,
    block_rows: int | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> None:
    """Write rows to a file by blocks of `read(start, stop)`, which several threads may call; memory is a few blocks.

    `block_rows` defaults to about 16 MB, `workers` to the number of processors. A .zarr that is there and holds
    anything else is refused.
    """
    target, suffix = checked_target(path, SUFFIXES)
    kind = np.dtype(dtype)
    step = block_rows or rows_per_block(math.prod(shape[1:]) * kind.itemsize)
    rows = LazyRows(shape, kind, read, target, step)
    if suffix == ".parquet":
        write_parquet({"component": rows}, target, step, progress)
        return
    with ROW_WRITERS[suffix](target, rows) as write:
        run_blocks(rows, write, progress, workers)


def checked_target(path: str | Path, suffixes: Sequence[str], what: str = "") -> tuple[str, str]:
    """Return the target and its suffix; refuse any but `suffixes`, for a reason that `what` gives."""
    refuse_credentials(str(path))
    refuse_home(str(path))
    target = str(path).rstrip("/")
    suffix, shown = Path(target).suffix.lower(), without_credentials(target)
    if "://" in target and "?" in target:
        raise ConfigError(f"{shown} has a query: leave it out, nothing is written to one")
    if suffix not in suffixes:
        said = f"; {what}" if what else ""
        raise ConfigError(f"{path} ends in {suffix or 'no suffix'}{said}; allowed: {', '.join(suffixes)}")
    if "://" in target and suffix != ".zarr":
        raise ConfigError(f"{shown}: behind a URL a .zarr can be written, {suffix} in a folder")
    return target, suffix


def run_blocks(rows: LazyRows, write: WriteRows, progress: Progress | None = None, workers: int | None = None) -> None:
    """Read and write blocks of the preferred rows, in parallel and in any order, by `workers` threads."""
    n_rows, step = len(rows), rows.preferred_rows or TILE_ROWS

    def move(start: int) -> int:
        stop = min(start + step, n_rows)
        write(start, rows.read(start, stop))
        return stop - start

    with ThreadPoolExecutor(workers or usable_processors()) as pool:
        for moved in pool.map(move, range(0, n_rows, step)):  # which cancels what has not begun where one fails
            if progress:
                progress(moved)


def whole_group(target: str, zarr_format: Literal[2, 3] = 3) -> contextlib.AbstractContextManager[zarr.Group]:
    """Yield a new zarr group, in place behind a URL; a folder becomes `target` once the block ends."""
    return new_zarr(target, functools.partial(zarr.open_group, mode="w-", zarr_format=zarr_format))


def blocks(rows: LazyRows | PointsSource) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (first row, rows) of all rows in order, `block_rows` at a time."""
    n_rows, step = rows.shape[0], block_rows(rows)
    for start in range(0, n_rows, step):
        yield start, rows.read(start, min(start + step, n_rows))


def block_rows(rows: LazyRows | PointsSource) -> int:
    """Return how many rows are read at once: by their bytes and the rows that the source prefers, at least 1."""
    row_bytes = math.prod(rows.shape[1:]) * rows.dtype.itemsize
    return min(rows_per_block(row_bytes, rows.preferred_rows), max(1, rows.shape[0]))


def write_npz(arrays: Arrays, target: str) -> None:
    """Write arrays of any shapes as `numpy.load` reads them."""
    with replaced_file(target) as file, zipfile.ZipFile(file, "w") as archive:
        for name, rows in arrays.items():
            with npy_member(archive, name, rows.shape, rows.dtype) as member:
                for _, block in blocks(rows):
                    member.write(block.data.cast("B") if block.size else b"")


@contextlib.contextmanager
def npy_member(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: np.dtype) -> Iterator[Any]:
    """Yield a new member of an .npz archive, with the header of an array written, to be filled by its rows."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        write_npy_header(member, shape, dtype)
        yield member


def write_npy_header(file: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Write the header of an .npy file of version 1.0, in C order; values follow."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(file, header)


def write_parquet(arrays: Arrays, target: str, step: int | None = None, progress: Progress | None = None) -> None:
    """Write arrays (N,) as columns of their names, arrays (N, m) as columns name_1 ... name_m."""
    arrow = optional_module("pyarrow", "parquet")

    def table(start: int, stop: int) -> Any:
        return arrow.table(columns_of(arrays, start, stop))

    n_rows = len(next(iter(arrays.values())))
    write_table(table, n_rows, step or min(map(block_rows, arrays.values())), target, progress)


def write_table(
    table: Callable[[int, int], Any], n_rows: int, step: int, target: str, progress: Progress | None = None
) -> None:
    """Write the tables of Arrow that `table(start, stop)` returns of blocks of rows as Parquet, a row group a block."""
    parquet = optional_module("pyarrow.parquet", "parquet")
    block = table(0, min(step, n_rows))
    with replaced_file(target) as file, parquet.ParquetWriter(file, block.schema) as writer:
        for start in range(0, n_rows, step):
            block = table(start, min(start + step, n_rows)) if start else block
            writer.write_table(block)
            if progress:
                progress(len(block))


def columns_of(arrays: Mapping[Any, LazyRows], start: int, stop: int) -> dict[str, np.ndarray]:
    """Return rows [start, stop) as columns (n,), of arrays (N, m) those of a tuple of names or name_1 ... name_m."""
    columns: dict[str, np.ndarray] = {}
    for name, rows in arrays.items():
        block = rows.read(start, stop)
        numbered = [f"{name}_{number + 1}" for number in range(block.shape[1])] if block.ndim > 1 else [name]
        names = name if isinstance(name, tuple) else numbered
        columns |= zip(names, np.ascontiguousarray(block.reshape(stop - start, len(names)).T), strict=True)
    return columns


def write_zarr(arrays: Arrays, target: str) -> None:
    """Write arrays by blocks into a new zarr v3 group at `target`, each under its name."""
    with whole_group(target) as group:
        for name, rows in arrays.items():
            fill(group_array(group, name, rows.shape, rows.dtype, block_rows(rows)), blocks(rows))


def group_array(group: zarr.Group, name: str, shape: tuple[int, ...], dtype: np.dtype, rows: int) -> zarr.Array:
    """Create an array of a group, of one number where its shape is ()."""
    chunks = (rows, *shape[1:])[: len(shape)]
    return group.create_array(name, shape=shape, dtype=dtype, chunks=chunks, config=EVERY_CHUNK if shape else None)


def fill(array: Any, parts: Iterator[tuple[int, np.ndarray]]) -> None:
    """Write parts (first row, rows) of an array."""
    for start, rows in parts:
        array[start : start + len(rows)] = rows


def companion_path(path: str | Path, name: str) -> str:
    """Return the path of an array that belongs to one at `path`: points.NAME.npy for points.npy (URL: .zarr)."""
    stem = str(path).rstrip("/").removesuffix(Path(path).suffix)
    return f"{stem}.{name}.{'zarr' if '://' in stem else 'npy'}"


def export(embedding: Any, path: str | Path, progress: Progress | None = None) -> None:
    """Write an embedding (N, d), rows in input order, as .npy, .parquet (component_1, ...) or .zarr.

    Parameters
    ----------
    embedding : array of NumPy, zarr or Dask, or any other that `open_points` takes
    path : where to; an .npy or .parquet file that is there is replaced, a .zarr that holds anything else is refused
    """
    source: PointsSource = open_points(embedding)
    workers = 1 if source.sequential else None  # sources that cannot go back are read in order
    write_rows(source.read, source.shape, source.dtype, path, block_rows(source), progress, workers)


WRITERS: Mapping[str, Callable[..., None]] = {
    ".npz": write_npz,
    ".parquet": write_parquet,
    ".zarr": write_zarr,
}


class SparseMatrix(Protocol):
    """What writers need of a sparse matrix (N, M): `indptr` in memory, and slices of rows."""

    shape: tuple[int, int]
    dtype: np.dtype

    @property
    def indptr(self) -> np.ndarray:
        """Where each row begins and ends among the entries: (N + 1,) int64."""

    def rows(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) in CSR form, of `dtype`."""


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


def write_sparse_npz(matrix: SparseMatrix, target: str, entries: int = ENTRIES_AT_ONCE) -> None:
    """Write a CSR matrix as `scipy.sparse.load_npz` reads it, in one pass over its rows, so many `entries` at a time.

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
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, values)
        with npy_member(archive, "indices", (n_entries,), kind) as member:
            for start, stop in row_parts(matrix.indptr, entries):
                rows = matrix.rows(start, stop)
                member.write(rows.indices.astype(kind, copy=False).data.cast("B"))
                waiting.write(rows.data.data.cast("B"))
        waiting.seek(0)
        with npy_member(archive, "data", (n_entries,), matrix.dtype) as member:
            shutil.copyfileobj(waiting, member)


def write_sparse_zarr(matrix: SparseMatrix, target: str, chunk_entries: int = CHUNK_ENTRIES) -> None:
    """Write a zarr group of `data`, `indices` and `indptr` with the attributes by which AnnData knows a CSR matrix."""
    with whole_group(target) as group:
        fill_matrix(matrix, group, group_array, chunk_entries)


def fill_matrix(matrix: SparseMatrix, group: Any, new_array: NewArray, chunk_entries: int = CHUNK_ENTRIES) -> None:
    """Write a CSR matrix as AnnData does into an empty group of zarr or HDF5, where `new_array` creates arrays."""
    kind, n_entries = index_dtype(matrix), int(matrix.indptr[-1])
    group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(matrix.shape)})
    chunk = min(chunk_entries, max(1, n_entries))
    data = new_array(group, "data", (n_entries,), matrix.dtype, chunk)
    indices = new_array(group, "indices", (n_entries,), kind, chunk)
    indptr = new_array(group, "indptr", matrix.indptr.shape, kind, min(chunk_entries, len(matrix.indptr)))
    indptr[:] = matrix.indptr.astype(kind)
    for start, stop in row_parts(matrix.indptr):
        rows, entries = matrix.rows(start, stop), slice(int(matrix.indptr[start]), int(matrix.indptr[stop]))
        data[entries], indices[entries] = rows.data, rows.indices.astype(kind, copy=False)


SPARSE_WRITERS = {".npz": write_sparse_npz, ".zarr": write_sparse_zarr}


def write_map(
    positions: LazyRows,
    columns: Mapping[str, np.ndarray],
    graph: Sequence[LazyRows] | None,
    target: str,
    step: int | None = None,
) -> None:
    """Write a Parquet table of points by blocks of rows, `step` each, by default as many as are read at once.

    `positions` (N, d) are x, y, z, or component_1 and so on where d is neither 2 nor 3; `columns` are (N,) by name, NaN
    and empty strings missing; `graph` holds the neighbours (N, k), rows of the table, and their distances (N, k).
    """
    arrow = optional_module("pyarrow", "parquet")
    axes = checked_axes(positions, columns, NEIGHBORS)

    def table(start: int, stop: int) -> Any:
        block = dict(zip(axes, np.ascontiguousarray(positions.read(start, stop).T), strict=True))
        block |= {name: with_missing(arrow, values[start:stop]) for name, values in columns.items()}
        if graph is not None:
            block[NEIGHBORS] = listed_neighbors(arrow, *(part.read(start, stop) for part in graph))
        return arrow.table(block)

    write_table(table, len(positions), step or min(map(block_rows, (positions, *(graph or ())))), target)


def write_map_csv(
    rows: LazyRows, positions: LazyRows, columns: Mapping[str, np.ndarray], target: str, escaped: bool = False
) -> None:
    """Write a .csv table of points as `write_map` does, with the row (N,) of each among the points passed."""
    table: dict[Any, LazyRows] = {ROW: rows, checked_axes(positions, columns, ROW): positions}
    write_csv(table | {name: lazy_rows(values, name) for name, values in columns.items()}, target, escaped)


def checked_axes(positions: LazyRows, columns: Mapping[str, np.ndarray], further: str) -> tuple[str, ...]:
    """Return the names of the axes of a map, numbers where it is not drawn; refuse columns with names of axes."""
    n_axes = positions.shape[1]
    axes = AXES[:n_axes] if n_axes in (2, 3) else tuple(f"component_{number + 1}" for number in range(n_axes))
    if taken := [name for name in columns if name in (*axes, further)]:
        raise ConfigError(f"a column of labels is called {taken[0]!r}, as one of the map is: rename it")
    return axes


def with_missing(arrow: Any, values: np.ndarray) -> Any:
    """Return labels (n,) as a column of Arrow; NaN and empty strings are missing, categories with an order keep it."""
    if categories := categories_of(values):
        codes = {name: code for code, name in enumerate(categories)}
        numbers = arrow.array([codes.get(value) for value in values.tolist()], arrow.int32())
        return arrow.DictionaryArray.from_arrays(numbers, arrow.array(categories, arrow.string()), ordered=True)
    return arrow.array(values, mask=is_absent(values))


def listed_neighbors(arrow: Any, indices: np.ndarray, distances: np.ndarray) -> Any:
    """Return neighbours (n, k) and their distances as a column of structs of two lists."""
    bounds = np.arange(0, indices.size + 1, indices.shape[1], dtype=np.int32)
    lists = [arrow.ListArray.from_arrays(bounds, np.ascontiguousarray(part).ravel()) for part in (indices, distances)]
    return arrow.StructArray.from_arrays(lists, ["ids", "distances"])


def write_csv(arrays: Mapping[Any, LazyRows], target: str, escaped: bool = False) -> None:
    """Write arrays as columns, which `columns_of` names.

    Numbers have as many digits as it takes to read the same ones again; NaN is an empty cell.
    """
    n_rows, step = len(next(iter(arrays.values()))), min(map(block_rows, arrays.values()))
    with replaced_file(target) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
        table = csv.writer(text, lineterminator="\n")
        for start in range(0, max(1, n_rows), step):
            columns = columns_of(arrays, start, min(start + step, n_rows))
            if start == 0:
                table.writerow(map(without_formula, columns) if escaped else columns)
            table.writerows(zip(*(cells(column, escaped) for column in columns.values()), strict=True))


def cells(values: np.ndarray, escaped: bool) -> list[str]:
    """Return values (n,) as text, numbers as they are."""
    texts = values.astype(str)
    if escaped and values.dtype.kind == "U":
        return list(map(without_formula, texts.tolist()))
    return (np.where(np.isnan(values), "", texts) if values.dtype.kind == "f" else texts).tolist()


def without_formula(text: str) -> str:
    """Return a text as a spreadsheet shows it: one that it would take for a formula behind an apostrophe."""
    return f"'{text}" if text.startswith(FORMULAS) and not is_number(text) else text
