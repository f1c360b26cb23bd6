"""Arrays in files without a name: where arrays that grow with the number of points lie when memory is short.

A kernel uses a mapped array as any other. Its pages are in the system's page cache: the system writes them out and
drops them where it has another use for the memory. Of a table, rows are copied out by calls of the system, not by pages
of a map: these count as resident memory of a worker, which Dask pauses and ends at its memory limit.
"""

import errno
import mmap
import os
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from scalemani.kernels.machine.file_rows import move_runs
from scalemani.store.objects import as_errors_of, as_store_error

LEAST_BYTES = 2**16  # smaller arrays stay in memory
SHARED_FILE_BYTES = 2**25  # of a file for arrays of up to a quarter of it: each file takes a descriptor
CACHE_LINE = 64
BYTES_AT_ONCE = 2**22  # of zeros that are written
ROWS_AT_ONCE = 4096  # rows by number, brought into ascending order before they are written


class MappedArrays:
    """Makes arrays in mapped files in a folder: its method `empty` stands in for `numpy.empty`.

    The files have no name and end with their arrays, or with the process; small arrays share one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._unused = memoryview(b"")  # of the file that small arrays share

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return an array of zeros.

        Raises
        ------
        DiskSpaceError
            Where the disk has too little room; the space is taken at once.
        StoreError
            Where the folder cannot be written.
        """
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if n_bytes < LEAST_BYTES:
            return np.zeros(shape, dtype)
        shared = n_bytes <= SHARED_FILE_BYTES // 4
        buffer = self._shared_bytes(n_bytes) if shared else mapped_file(self._folder, n_bytes)
        return np.frombuffer(buffer, dtype).reshape(shape)

    def _shared_bytes(self, n_bytes: int) -> memoryview:
        with self._lock:
            if n_bytes > len(self._unused):
                self._unused = memoryview(mapped_file(self._folder, SHARED_FILE_BYTES))
            taken, self._unused = self._unused[:n_bytes], self._unused[-(-n_bytes // CACHE_LINE) * CACHE_LINE :]
            return taken


def mapped_file(folder: Path, n_bytes: int) -> mmap.mmap:
    """Return a map of a new file of zeros."""
    with as_errors_of(folder, n_bytes), tempfile.TemporaryFile(dir=folder) as file:
        take_space(file, n_bytes)
        return mmap.mmap(file.fileno(), n_bytes)


def take_space(file: BinaryIO, n_bytes: int) -> None:
    """Make an empty file one of so many zeros, with their room on the disk: writing to a map of it cannot fail."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
        return
    for start in range(0, n_bytes, BYTES_AT_ONCE):
        file.write(bytes(min(BYTES_AT_ONCE, n_bytes - start)))
    file.flush()


class RowsInFile:
    """A table (N, columns...) in a file without a name, all zero at first; of it no row is in memory by itself.

    As of an array, a slice or rows by number can be read, which copies them, and written. Threads may share it.
    """

    def __init__(self, folder: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.shape, self.dtype, self._folder = shape, np.dtype(dtype), folder
        self._row_bytes = int(np.prod(shape[1:], dtype=np.int64)) * self.dtype.itemsize
        with as_errors_of(folder, shape[0] * self._row_bytes):
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (open as long as the table is)
            take_space(self._file, max(1, shape[0] * self._row_bytes))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return a copy of a slice of rows, or of rows by numbers (n,) in any order."""
        if isinstance(rows, slice):
            return self.take_runs(*self._run(rows))
        starts, lengths = np.asarray(rows, np.int64), np.ones(len(rows), np.int64)
        if np.all(starts[1:] >= starts[:-1]):
            return self.take_runs(starts, lengths)
        order, values = np.argsort(starts, kind="stable"), np.empty((len(starts), *self.shape[1:]), self.dtype)
        values[order] = self.take_runs(starts[order], lengths)  # neighbouring rows are read together
        return values

    def __setitem__(self, rows: slice | np.ndarray, values: np.ndarray) -> None:
        """Write a slice of rows, or rows by numbers (n,) in any order."""
        if isinstance(rows, slice):
            self._move(*self._run(rows), values)
            return
        order = np.argsort(rows, kind="stable")
        for first in range(0, len(order), ROWS_AT_ONCE):
            chosen = order[first : first + ROWS_AT_ONCE]
            self._move(np.asarray(rows[chosen], np.int64), np.ones(len(chosen), np.int64), values[chosen])

    def take_runs(self, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return runs of rows, one behind the other; they begin at `starts` (n,), and have `lengths`."""
        return self._move(starts, lengths)

    def _run(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        start, stop, _ = rows.indices(len(self))
        return np.array([start], np.int64), np.array([max(0, stop - start)], np.int64)

    def _move(self, starts: np.ndarray, lengths: np.ndarray, source: np.ndarray | None = None) -> np.ndarray:
        """Write runs of rows from the values of `source`, or read them where it is None; return the values."""
        if len(starts) and not (starts.min() >= 0 and (starts + lengths).max() <= len(self)):
            raise IndexError(f"rows {starts.min()} to {(starts + lengths).max() - 1} of a table of {len(self)}")
        shape = (int(lengths.sum()), *self.shape[1:])
        if source is None:
            values = np.empty(shape, self.dtype)
        else:
            values = np.ascontiguousarray(np.broadcast_to(source, shape), self.dtype)
        in_bytes = values.reshape(-1).view(np.uint8)
        if not move_runs(source is not None, self._file.fileno(), self._row_bytes, starts, lengths, in_bytes):
            error = OSError(errno.EIO, "a row of a file without a name could not be read or written")
            raise as_store_error(error, self._folder) from error
        return values


Table = np.ndarray | RowsInFile
