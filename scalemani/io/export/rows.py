"""Arrays out to files that other programs read, by blocks of rows: one, or several together in one file."""

import contextlib
import functools
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

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
EVERY_CHUNK: Any = {"write_empty_chunks": True}

Progress = Callable[[int], None]
WriteRows = Callable[[int, np.ndarray], None]  # of which the first one is at a place of the whole array
Arrays = Mapping[str, LazyRows]


@contextlib.contextmanager
def npy_writer(target: str, rows: LazyRows) -> Iterator[WriteRows]:
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
        try:
            node = create(place if remote else str(place))
        except ImportError as error:
            raise ConfigError(f"{without_credentials(target)} needs another package: {error}") from error
        except ScalemaniError:
            raise
        except Exception as error:  # the errors of stores are of many kinds, and all mean the same here
            reason = without_credentials(str(error))
            raise StoreError(f"cannot create {without_credentials(target)}: {reason}") from error
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
    step = block_rows or rows_per_block(math.prod(shape[1:]) * kind.itemsize)
    rows = LazyRows(shape, kind, read, target, step)
    if suffix == ".parquet":
        write_parquet({"component": rows}, target, step, progress)
        return
    with (npy_writer if suffix == ".npy" else zarr_writer)(target, rows) as write:
        run_blocks(rows, write, progress, workers)


def checked_target(path: str | Path, suffixes: Sequence[str], what: str = "") -> tuple[str, str]:
    """Return the target and its suffix; refuse any but `suffixes`, for a reason that `what` gives."""
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


def run_blocks(rows: LazyRows, write: WriteRows, progress: Progress | None = None, workers: int | None = None) -> None:
    """Read and write blocks of the preferred rows, in parallel and in any order, by `workers` threads."""
    n_rows, step = len(rows), rows.preferred_rows or TILE_ROWS

    def move(start: int) -> int:
        stop = min(start + step, n_rows)
        write(start, rows.read(start, stop))
        return stop - start

    with ThreadPoolExecutor(workers or cpu_count()) as pool:
        futures = [pool.submit(move, start) for start in range(0, n_rows, step)]
        try:
            for future in futures:
                moved = future.result()
                if progress:
                    progress(moved)
        finally:
            for future in futures:
                future.cancel()


def whole_group(target: str, zarr_format: Literal[2, 3] = 3) -> contextlib.AbstractContextManager[zarr.Group]:
    """Yield a new zarr group that is at `target` at the end."""
    return new_zarr(target, functools.partial(zarr.open_group, mode="w-", zarr_format=zarr_format))


def blocks(rows: LazyRows | PointsSource) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (first row, rows) in order."""
    n_rows, step = rows.shape[0], block_rows(rows)
    for start in range(0, n_rows, step):
        yield start, rows.read(start, min(start + step, n_rows))


def block_rows(rows: LazyRows | PointsSource) -> int:
    """Return how many rows are read at once."""
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
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
        np.lib.format.write_array_header_1_0(member, header)
        yield member


def write_parquet(arrays: Arrays, target: str, step: int | None = None, progress: Progress | None = None) -> None:
    """Write arrays (N,) as columns of their names, arrays (N, m) as columns name_1 ... name_m."""
    arrow = optional_module("pyarrow", "parquet")

    def table(start: int, stop: int) -> Any:
        columns: dict[str, np.ndarray] = {}
        for name, rows in arrays.items():
            names = column_names(name, rows)
            block = rows.read(start, stop).reshape(stop - start, len(names))
            columns |= zip(names, np.ascontiguousarray(block.T), strict=True)
        return arrow.table(columns)

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


def column_names(name: str, rows: LazyRows) -> list[str]:
    """Return the column names of an array in a table."""
    return [name] if rows.ndim == 1 else [f"{name}_{number + 1}" for number in range(rows.shape[1])]


def write_zarr(arrays: Arrays, target: str) -> None:
    """Write a zarr v3 group of arrays."""
    with whole_group(target) as group:
        for name, rows in arrays.items():
            fill(group_array(group, name, rows.shape, rows.dtype, block_rows(rows)), blocks(rows))


def group_array(group: zarr.Group, name: str, shape: tuple[int, ...], dtype: np.dtype, rows: int) -> zarr.Array:
    """Create an array of a group."""
    return group.create_array(name, shape=shape, dtype=dtype, chunks=(rows, *shape[1:]), config=EVERY_CHUNK)


def fill(array: Any, parts: Iterator[tuple[int, np.ndarray]]) -> None:
    """Write parts (first row, rows) of an array."""
    for start, rows in parts:
        array[start : start + len(rows)] = rows


def beside(path: str | Path, name: str) -> str:
    """Return the path of an array that belongs to one at `path`: points.NAME.npy for points.npy (URL: .zarr)."""
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
    workers = 1 if source.sequential else None  # sources that cannot go back are read in order
    write_rows(source.read, source.shape, source.dtype, path, block_rows(source), progress, workers)


WRITERS: Mapping[str, Callable[..., None]] = {
    ".npz": write_npz,
    ".parquet": write_parquet,
    ".zarr": write_zarr,
}
