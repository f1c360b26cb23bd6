"""Rows out to a file that other programs read, block by block: .npy, .zarr and .parquet."""

import contextlib
import math
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from dask.system import cpu_count

from scalemani.errors import ConfigError, StoreError, installing, refuse_credentials
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.sources.base import PointsSource, optional_module, without_credentials
from scalemani.sources.opening import open_points
from scalemani.store.objects import as_store_error
from scalemani.store.retrying import may_pass, retried

BLOCK_BYTES = 2**24
PARTIAL = ".partial"
SUFFIXES = (".npy", ".parquet", ".zarr")

Progress = Callable[[int], None]


def new_file(partial: Path) -> Any:
    """Open a new file for writing in the place of one that a killed command has left, or of a link planted there."""
    partial.unlink(missing_ok=True)
    return partial.open("xb")


@contextlib.contextmanager
def replaced_file(path: Path) -> Iterator[Any]:
    """Yield a new file, and put it in the place of `path` when the block ends: readers see one of them whole."""
    partial = path.with_name(path.name + PARTIAL)
    try:
        with new_file(partial) as file:
            yield file
        os.replace(partial, path)
    except OSError as error:
        raise as_store_error(error, path) from error
    finally:
        partial.unlink(missing_ok=True)


class RowWriter(ABC):
    """Writes blocks of rows in any order; what is at the target changes only with `finish`."""

    parallel = True

    def __init__(self, target: str, shape: tuple[int, ...], dtype: np.dtype, block_rows: int) -> None:
        self.target = target
        self.shape = shape
        self.dtype = dtype
        self.block_rows = block_rows
        self.partial = Path(target + PARTIAL)

    @abstractmethod
    def write(self, start: int, rows: np.ndarray) -> None:
        """Write rows from `start` on."""

    @abstractmethod
    def finish(self) -> None:
        """Put what was written in place."""

    @abstractmethod
    def abandon(self) -> None:
        """Remove what was written."""


class FileWriter(RowWriter):
    """One file, written beside the target and put in its place when it is whole."""

    file: Any

    def __init__(self, target: str, shape: tuple[int, ...], dtype: np.dtype, block_rows: int) -> None:
        super().__init__(target, shape, dtype, block_rows)
        self.file = new_file(self.partial)

    def finish(self) -> None:
        """Put the file in place of what was there."""
        self.file.close()
        os.replace(self.partial, self.target)

    def abandon(self) -> None:
        """Remove the file."""
        self.file.close()
        self.partial.unlink(missing_ok=True)


class NpyWriter(FileWriter):
    """An .npy file, written at offsets: unlike a memory map, what was written does not stay resident."""

    def __init__(self, target: str, shape: tuple[int, ...], dtype: np.dtype, block_rows: int) -> None:
        super().__init__(target, shape, dtype, block_rows)
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self.file, header)
        self.file.flush()
        self.offset = self.file.tell()
        self.row_bytes = math.prod(shape[1:]) * dtype.itemsize

    def write(self, start: int, rows: np.ndarray) -> None:
        """Write rows from `start` on; threads may write side by side."""
        content = np.ascontiguousarray(rows).data.cast("B")
        offset = self.offset + start * self.row_bytes
        while content:
            written = os.pwrite(self.file.fileno(), content, offset)
            content = content[written:]
            offset += written


class ParquetWriter(FileWriter):
    """A Parquet file with columns component_1, component_2, ...; blocks have to come in order."""

    parallel = False

    def __init__(self, target: str, shape: tuple[int, ...], dtype: np.dtype, block_rows: int) -> None:
        self.arrow = optional_module("pyarrow", "parquet")
        parquet = optional_module("pyarrow.parquet", "parquet")
        super().__init__(target, shape, dtype, block_rows)
        kind = self.arrow.from_numpy_dtype(dtype)
        columns = math.prod(shape[1:])
        self.schema = self.arrow.schema([(f"component_{column + 1}", kind) for column in range(columns)])
        self.writer = parquet.ParquetWriter(self.file, self.schema)

    def write(self, start: int, rows: np.ndarray) -> None:
        """Write the next rows as one row group."""
        columns = np.ascontiguousarray(rows.reshape(len(rows), -1).T)
        self.writer.write_table(self.arrow.table(list(columns), schema=self.schema))

    def finish(self) -> None:
        """Write the footer, then put the file in place of what was there."""
        self.writer.close()
        super().finish()

    def abandon(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError, ValueError):
            self.writer.close()
        super().abandon()


def refuse_taken(target: str) -> None:
    """Refuse to write a zarr store into a folder where something lies."""
    if "://" not in target:
        refuse_there(Path(target))
        refuse_there(Path(target + PARTIAL))


def refuse_there(place: Path) -> None:
    """Refuse to write where something lies."""
    if place.exists():
        raise StoreError(f"{place} is already there and is not overwritten: remove it or choose another name")


@contextlib.contextmanager
def creating(target: str) -> Iterator[None]:
    """Refuse to create a zarr store where something lies; errors of the store say what was to be created."""
    refuse_taken(target)
    where = without_credentials(target)
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{where} needs s3fs: {installing('s3')}") from error
    except Exception as error:  # a store's own errors are of many kinds, and all mean the same here
        raise StoreError(f"cannot create {where}: {without_credentials(str(error))}") from error


class ZarrWriter(RowWriter):
    """A zarr v3 array of which one block is one chunk; a directory or store that is there already is left alone."""

    def __init__(self, target: str, shape: tuple[int, ...], dtype: np.dtype, block_rows: int) -> None:
        super().__init__(target, shape, dtype, block_rows)
        self.local = "://" not in target
        self.created = False
        with creating(target):
            self.array = zarr.create_array(
                str(self.partial) if self.local else target,
                shape=shape,
                dtype=dtype,
                chunks=(min(block_rows, max(shape[0], 1)), *shape[1:]),
                config={"write_empty_chunks": True},
            )
        self.created = True

    def write(self, start: int, rows: np.ndarray) -> None:
        """Write rows from `start` on, which are whole chunks."""

        def write() -> None:
            self.array[start : start + len(rows)] = rows

        if self.local:
            write()
        else:
            retried(write, may_pass)

    def finish(self) -> None:
        """Put the store in place."""
        if self.local:
            self.partial.rename(self.target)

    def abandon(self) -> None:
        """Remove the local directory that was created here; a partial store behind a URL stays."""
        if self.local and self.created:
            shutil.rmtree(self.partial, ignore_errors=True)


WRITERS: dict[str, type[RowWriter]] = {".npy": NpyWriter, ".parquet": ParquetWriter, ".zarr": ZarrWriter}


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
        When the place cannot be written; a .zarr that exists is not overwritten.
    """
    target, suffix = checked_target(path, SUFFIXES)
    kind = np.dtype(dtype)
    block_rows = block_rows or rows_per_block(math.prod(shape[1:]) * kind.itemsize)
    try:
        writer = WRITERS[suffix](target, shape, kind, block_rows)
    except OSError as error:
        raise as_store_error(error, Path(target)) from error
    try:
        run_blocks(read, writer, progress, workers)
        writer.finish()
    except OSError as error:
        writer.abandon()
        raise as_store_error(error, Path(target)) from error
    except BaseException:
        writer.abandon()
        raise


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
    read: Callable[[int, int], np.ndarray], writer: RowWriter, progress: Progress | None, workers: int | None
) -> None:
    """Read and write every block, side by side where the writer allows it.

    Parameters
    ----------
    read : returns rows [start, stop)
    writer : takes them; it says how many there are, and how many make a block
    progress : called with the number of rows after each block
    workers : threads; None for as many as there are processors
    """
    n_rows = writer.shape[0]

    def move(start: int) -> int:
        stop = min(start + writer.block_rows, n_rows)
        writer.write(start, np.asarray(read(start, stop), dtype=writer.dtype))
        return stop - start

    threads = (workers or cpu_count()) if writer.parallel else 1
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(move, start) for start in range(0, n_rows, writer.block_rows)]
        try:
            for future in futures:
                rows = future.result()
                if progress:
                    progress(rows)
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
    path : where to; an .npy or .parquet file that is there is replaced, a .zarr is not
    progress : called with the number of rows just written
    """
    source: PointsSource = open_points(embedding)
    block_rows = rows_per_block(source.shape[1] * source.dtype.itemsize, source.preferred_rows)
    # Sources that cannot go back are read in order.
    workers = 1 if source.sequential else None
    write_rows(source.read, source.shape, source.dtype, path, block_rows, progress, workers)
