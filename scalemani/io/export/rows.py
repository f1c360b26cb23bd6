"""Arrays out to files that other programs read, by blocks of rows: one, or several together in one file."""

import contextlib
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import zarr
from dask.system import cpu_count

from scalemani.errors import ConfigError, ScalemaniError, StoreError, refuse_credentials
from scalemani.io.export.atomic import already_there, new_folder, replaced_file
from scalemani.io.sources.base import PointsSource, optional_module, without_credentials
from scalemani.io.sources.lazy import LazyRows
from scalemani.io.sources.opening import open_points
from scalemani.io.sources.stores import store_at
from scalemani.kernels.arrays.tiles import TILE_ROWS

BLOCK_BYTES = 2**24
SUFFIXES = (".npy", ".parquet", ".zarr")

Progress = Callable[[int], None]
WriteRows = Callable[[int, np.ndarray], None]  # of which the first one is at a place of the whole array
Arrays = Mapping[str, LazyRows]


class Rows(NamedTuple):
    """What is written: the shape and dtype of the whole array, and how many rows make a block."""

    shape: tuple[int, ...]
    dtype: np.dtype
    block_rows: int


@contextlib.contextmanager
def npy_writer(target: str, rows: Rows) -> Iterator[WriteRows]:
    """Yield the writer of an .npy file, written at offsets: unlike a memory map, nothing written stays resident."""
    row_bytes = math.prod(rows.shape[1:]) * rows.dtype.itemsize
    with replaced_file(target) as file:
        descr = np.lib.format.dtype_to_descr(rows.dtype)
        header = {"descr": descr, "fortran_order": False, "shape": rows.shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        first = file.tell()

        def write(start: int, block: np.ndarray) -> None:
            content = np.ascontiguousarray(block).data.cast("B")
            offset = first + start * row_bytes
            while content:
                written = os.pwrite(file.fileno(), content, offset)
                content = content[written:]
                offset += written

        yield write


@contextlib.contextmanager
def zarr_writer(target: str, rows: Rows) -> Iterator[WriteRows]:
    """Yield the writer of a zarr v3 array of which one block is one chunk."""
    with new_zarr_array(target, rows) as array:
        yield zarr_rows(array)


def zarr_rows(array: zarr.Array) -> WriteRows:
    """Return the writer of an array whose chunks are blocks."""

    def write(start: int, rows: np.ndarray) -> None:
        array[start : start + len(rows)] = rows

    return write


@contextlib.contextmanager
def new_zarr_array(target: str, rows: Rows) -> Iterator[zarr.Array]:
    """Yield a new zarr v3 array, which is at `target` at the end; an array of another kind that is there is refused."""
    with new_zarr(target) as place:
        with creating(target):
            array = zarr.create_array(
                place,
                shape=rows.shape,
                dtype=rows.dtype,
                chunks=(min(rows.block_rows, max(rows.shape[0], 1)), *rows.shape[1:]),
                config={"write_empty_chunks": True},
            )
        refuse_other(target, array)
        yield array


@contextlib.contextmanager
def new_zarr(target: str) -> Iterator[Any]:
    """Yield where a zarr store is created that is at `target` at the end; a partial store behind a URL stays."""
    if "://" in target:
        yield store_at(target, read_only=False)
        return
    with new_folder(target) as own:
        yield str(own)


@contextlib.contextmanager
def creating(target: str) -> Iterator[None]:
    """Have the errors of a store say what was to be created."""
    where = without_credentials(target)
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{where} needs another package: {error}") from error
    except ScalemaniError:
        raise
    except Exception as error:  # a store's own errors are of many kinds, and all mean the same here
        raise StoreError(f"cannot create {where}: {without_credentials(str(error))}") from error


def refuse_other(target: str, node: zarr.Array | zarr.Group) -> None:
    """Refuse a zarr store that is there and cannot be what is to be written, before anything is."""
    if "://" in target or not Path(target).exists():
        return
    try:
        there: Any = zarr.open(target, mode="r")
    except Exception as error:  # of a damaged store, of many kinds
        raise already_there(target) from error
    kinds = [[getattr(one, name, None) for name in ("shape", "dtype", "chunks")] for one in (node, there)]
    if kinds[0] != kinds[1]:
        raise already_there(target)


def rows_per_block(row_bytes: int, preferred: int | None = None) -> int:
    """Return a number of rows of about 16 MB: a multiple of the source's own rows, or of 1024."""
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
    rows = Rows(shape, kind, block_rows or rows_per_block(math.prod(shape[1:]) * kind.itemsize))
    if suffix == ".parquet":
        write_parquet({"component": LazyRows(shape, kind, read, target)}, target, rows.block_rows, progress)
        return
    with (npy_writer if suffix == ".npy" else zarr_writer)(target, rows) as write:
        run_blocks(read, rows, write, progress, workers)


def checked_target(path: str | Path, suffixes: Sequence[str], what: str = "") -> tuple[str, str]:
    """Return where to write and the suffix that chooses the format, one of `suffixes`.

    `what` says in the message of a refusal what is to be written and why not as anything else.
    """
    refuse_credentials(str(path))
    target = str(path).rstrip("/")
    suffix, shown = Path(target).suffix.lower(), without_credentials(target)
    if "://" in target and "?" in target:
        raise ConfigError(f"{shown} was given with a query: leave it out, nothing is written to one")
    if suffix not in suffixes:
        said = f"; {what}" if what else ""
        raise ConfigError(f"{path} ends in {suffix or 'no suffix'}{said}; allowed: {', '.join(suffixes)}")
    if "://" in target and suffix != ".zarr":
        raise ConfigError(f"{shown}: behind a URL a .zarr can be written, {suffix} in a folder")
    return target, suffix


def run_blocks(
    read: Callable[[int, int], np.ndarray],
    rows: Rows,
    write: WriteRows,
    progress: Progress | None = None,
    workers: int | None = None,
) -> None:
    """Read and write every block, in parallel and in any order; `workers` threads, None for one a processor."""
    n_rows, block_rows = rows.shape[0], rows.block_rows

    def move(start: int) -> int:
        stop = min(start + block_rows, n_rows)
        write(start, np.asarray(read(start, stop), dtype=rows.dtype))
        return stop - start

    with ThreadPoolExecutor(workers or cpu_count()) as pool:
        futures = [pool.submit(move, start) for start in range(0, n_rows, block_rows)]
        try:
            for future in futures:
                moved = future.result()
                if progress:
                    progress(moved)
        finally:
            for future in futures:
                future.cancel()


@contextlib.contextmanager
def whole_group(target: str, zarr_format: Literal[2, 3] = 3) -> Iterator[zarr.Group]:
    """Yield a new zarr group that is at `target` at the end; one in a folder goes where that is not reached."""
    with new_zarr(target) as place:
        with creating(target):
            group = zarr.open_group(place, mode="w-", zarr_format=zarr_format)
        refuse_other(target, group)
        yield group


def blocks(rows: LazyRows) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (first row, rows) in order."""
    step = block_rows(rows)
    for start in range(0, len(rows), step):
        yield start, rows.read(start, min(start + step, len(rows)))


def block_rows(rows: LazyRows) -> int:
    """Return how many rows are read at once."""
    row_bytes = math.prod(rows.shape[1:]) * rows.dtype.itemsize
    return min(rows_per_block(row_bytes, rows.preferred_rows), max(1, len(rows)))


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
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
        np.lib.format.write_array_header_1_0(member, header)
        yield member


def write_parquet(arrays: Arrays, target: str, step: int | None = None, progress: Progress | None = None) -> None:
    """Write arrays (N,) as columns of their names, arrays (N, m) as columns name_1 ... name_m, a row group a block."""
    arrow, parquet = optional_module("pyarrow", "parquet"), optional_module("pyarrow.parquet", "parquet")
    kinds = {name: arrow.from_numpy_dtype(rows.dtype) for name, rows in arrays.items()}
    names = {name: column_names(name, rows) for name, rows in arrays.items()}
    schema = arrow.schema([(column, kinds[name]) for name in arrays for column in names[name]])
    n_rows, step = len(next(iter(arrays.values()))), step or min(map(block_rows, arrays.values()))
    with replaced_file(target) as file, parquet.ParquetWriter(file, schema) as writer:
        for start in range(0, n_rows, step):
            columns: list[np.ndarray] = []
            for rows in arrays.values():
                block = rows.read(start, min(start + step, n_rows))
                columns.extend(np.ascontiguousarray(block.reshape(len(block), -1).T))
            writer.write_table(arrow.table(columns, schema=schema))
            if progress:
                progress(len(columns[0]))


def column_names(name: str, rows: LazyRows) -> list[str]:
    """Return the names of the columns of a table that an array makes."""
    return [name] if rows.ndim == 1 else [f"{name}_{number + 1}" for number in range(rows.shape[1])]


def write_zarr(arrays: Arrays, target: str) -> None:
    """Write a zarr v3 group of arrays."""
    with whole_group(target) as group:
        for name, rows in arrays.items():
            fill(group_array(group, name, rows.shape, rows.dtype, block_rows(rows)), blocks(rows))


def group_array(group: zarr.Group, name: str, shape: tuple[int, ...], dtype: np.dtype, rows: int) -> zarr.Array:
    """Create an array of a group."""
    config: Any = {"write_empty_chunks": True}
    return group.create_array(name, shape=shape, dtype=dtype, chunks=(rows, *shape[1:]), config=config)


def fill(array: Any, parts: Iterator[tuple[int, np.ndarray]]) -> None:
    """Write parts (first row, rows) of an array."""
    for start, rows in parts:
        array[start : start + len(rows)] = rows


def beside(path: str | Path, name: str) -> str:
    """Return where an array goes that belongs to one at `path`: points.NAME.npy beside points.npy (URL: .zarr)."""
    stem = str(path).rstrip("/").removesuffix(Path(path).suffix)
    return f"{stem}.{name}.{'zarr' if '://' in stem else 'npy'}"


def export(embedding: Any, path: str | Path, progress: Progress | None = None) -> None:
    """Write an embedding (N, d), rows in input order, as .npy, .parquet (component_1, ...) or .zarr.

    Parameters
    ----------
    embedding : array of NumPy, zarr or Dask, or whatever `open_points` takes
    path : where to; an .npy or .parquet file that is there is replaced, a .zarr that holds anything else is refused
    """
    source: PointsSource = open_points(embedding)
    block_rows = rows_per_block(source.shape[1] * source.dtype.itemsize, source.preferred_rows)
    # Sources that cannot go back are read in order.
    workers = 1 if source.sequential else None
    write_rows(source.read, source.shape, source.dtype, path, block_rows, progress, workers)


WRITERS: Mapping[str, Callable[..., None]] = {
    ".npz": write_npz,
    ".parquet": write_parquet,
    ".zarr": write_zarr,
}
