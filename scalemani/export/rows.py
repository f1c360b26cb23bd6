"""Rows out to a file that other programs read, block by block: .npy, .zarr and .parquet."""

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr
from dask.system import cpu_count

from scalemani.errors import ConfigError, ScalemaniError, StoreError, refuse_credentials
from scalemani.export.atomic import already_there, new_folder, replaced_file
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.sources.base import PointsSource, optional_module, without_credentials
from scalemani.sources.opening import open_points
from scalemani.sources.stores import store_at

BLOCK_BYTES = 2**24
SUFFIXES = (".npy", ".parquet", ".zarr")

Progress = Callable[[int], None]


class Rows(NamedTuple):
    """What is written: the shape and dtype of the whole array, and how many rows make a block."""

    shape: tuple[int, ...]
    dtype: np.dtype
    block_rows: int


@dataclass(frozen=True)
class RowWriter:
    """What takes blocks of rows: from several threads and in any order where it is `parallel`, else in order."""

    write: Callable[[int, np.ndarray], None]
    parallel: bool = True


@contextlib.contextmanager
def npy_writer(target: str, rows: Rows) -> Iterator[RowWriter]:
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

        yield RowWriter(write)


@contextlib.contextmanager
def parquet_writer(target: str, rows: Rows) -> Iterator[RowWriter]:
    """Yield the writer of a Parquet file with columns component_1, component_2, ...; a block is a row group."""
    arrow, parquet = optional_module("pyarrow", "parquet"), optional_module("pyarrow.parquet", "parquet")
    kind = arrow.from_numpy_dtype(rows.dtype)
    schema = arrow.schema([(f"component_{column + 1}", kind) for column in range(math.prod(rows.shape[1:]))])
    with replaced_file(target) as file, parquet.ParquetWriter(file, schema) as table:

        def write(start: int, block: np.ndarray) -> None:
            columns = np.ascontiguousarray(block.reshape(len(block), -1).T)
            table.write_table(arrow.table(list(columns), schema=schema))

        yield RowWriter(write, parallel=False)


@contextlib.contextmanager
def zarr_writer(target: str, rows: Rows) -> Iterator[RowWriter]:
    """Yield the writer of a zarr v3 array of which one block is one chunk."""
    with new_zarr_array(target, rows) as array:
        yield zarr_rows(array)


def zarr_rows(array: zarr.Array) -> RowWriter:
    """Return the writer of an array whose chunks are blocks."""

    def write(start: int, rows: np.ndarray) -> None:
        array[start : start + len(rows)] = rows

    return RowWriter(write)


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


WRITERS = {".npy": npy_writer, ".parquet": parquet_writer, ".zarr": zarr_writer}


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
    """Write rows to a file by blocks that `read(start, stop)` gives; memory is a few blocks.

    Parameters
    ----------
    read : returns rows [start, stop) as an array of `dtype`; called from several threads where the format allows it
    shape, dtype : of the whole array
    path : ends in .npy, .parquet or .zarr (also a URL)
    block_rows : rows a block (None: about 16 MB)
    progress : called with the number of rows just written
    workers : threads (None: one a core)

    Raises
    ------
    ConfigError
        For another suffix or an extra that is not installed.
    StoreError, DiskSpaceError
        When the place cannot be written, and for a .zarr that is there and does not hold the same rows.
    """
    target, suffix = checked_target(path, SUFFIXES)
    kind = np.dtype(dtype)
    rows = Rows(shape, kind, block_rows or rows_per_block(math.prod(shape[1:]) * kind.itemsize))
    with WRITERS[suffix](target, rows) as writer:
        run_blocks(read, rows, writer, progress, workers)


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
    writer: RowWriter,
    progress: Progress | None = None,
    workers: int | None = None,
) -> None:
    """Read and write every block, side by side where the writer allows it.

    Parameters
    ----------
    read : returns rows [start, stop)
    rows : what is written
    writer : takes them
    progress : called with the number of rows after each block
    workers : threads; None for as many as there are processors
    """
    n_rows, block_rows = rows.shape[0], rows.block_rows

    def move(start: int) -> int:
        stop = min(start + block_rows, n_rows)
        writer.write(start, np.asarray(read(start, stop), dtype=rows.dtype))
        return stop - start

    threads = (workers or cpu_count()) if writer.parallel else 1
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(move, start) for start in range(0, n_rows, block_rows)]
        try:
            for future in futures:
                moved = future.result()
                if progress:
                    progress(moved)
        finally:
            for future in futures:
                future.cancel()


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
    progress : called with the number of rows just written
    """
    source: PointsSource = open_points(embedding)
    block_rows = rows_per_block(source.shape[1] * source.dtype.itemsize, source.preferred_rows)
    # Sources that cannot go back are read in order.
    workers = 1 if source.sequential else None
    write_rows(source.read, source.shape, source.dtype, path, block_rows, progress, workers)
