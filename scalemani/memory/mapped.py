"""Arrays in unnamed mapped files: where arrays that grow with the number of points lie when memory is short.

A kernel uses such an array as any other. Its pages come from the system's page cache when they are touched, and return
there when the process holds too many of them: a page that is still in the cache comes back in a microsecond or less,
and the system writes it out and drops it where it has another use for the memory.
"""

import mmap
import os
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from scalemani.memory.process import PROCESS
from scalemani.store.objects import as_store_error

TOUCHED_BYTES = 112 * 2**20  # of mapped pages at most, with what all cores touch between two looks
LEAST_BYTES = 2**16  # smaller arrays stay in memory
SHARED_FILE_BYTES = 2**25  # of a file for arrays of up to a quarter of it: each file takes a descriptor
CACHE_LINE = 64
AROUND_BYTES = 2**16  # that Linux maps around a page it is asked for
ROWS_AT_ONCE = 256  # rows by number, looked up before their pages are released: 16 MiB if they are far from each other
BYTES_AT_ONCE = 2**22  # rows in sequence, copied before their pages are released


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
    """Return a map of a new file of zeros; the process releases its pages when it holds too many."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            take_space(file, n_bytes)
            made = mmap.mmap(file.fileno(), n_bytes)
    except OSError as error:
        raise as_store_error(error, folder, n_bytes) from error
    PROCESS.pages.add(made)
    return made


def take_space(file: BinaryIO, n_bytes: int) -> None:
    """Make an empty file one of so many zeros, with their room on the disk: writing to a map of it cannot fail."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
        return
    for start in range(0, n_bytes, BYTES_AT_ONCE):
        file.write(bytes(min(BYTES_AT_ONCE, n_bytes - start)))
    file.flush()


class MappedRows:
    """A table (N, columns...) in a mapped file, all zero at first, that is looked up by row.

    As of an array, a slice or rows by number can be read, which copies them, and written. Few pages are in memory at a
    time, however many rows are asked for and in whatever order: Linux maps a dozen more pages around each one it is
    asked for, so that scattered rows would bring in most of the file.
    """

    def __init__(self, folder: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        n_bytes = max(1, int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)
        self._file, self.shape = mapped_file(folder, n_bytes), shape
        self._values = np.frombuffer(self._file, dtype, int(np.prod(shape, dtype=np.int64))).reshape(shape)
        self._row_bytes = max(1, n_bytes // max(1, shape[0]))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return a copy of a slice of rows, or of rows by ascending numbers (n,)."""
        if isinstance(rows, slice):
            return self._copy(rows)
        found = np.empty((len(rows), *self.shape[1:]), self._values.dtype)
        for first in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            # Any other mode collects the rows in a copy first.
            np.take(self._values, rows[part], axis=0, out=found[part], mode="clip")
            self._release(int(rows[part][0]), int(rows[part][-1]) + 1)
        return found

    def __setitem__(self, rows: slice | np.ndarray, values: np.ndarray) -> None:
        """Write a slice of rows, or rows by numbers (n,) in any order."""
        if not isinstance(rows, slice):
            order = np.argsort(rows, kind="stable")
            for first in range(0, len(order), ROWS_AT_ONCE):
                chosen = order[first : first + ROWS_AT_ONCE]
                self._values[rows[chosen]] = values[chosen]
                self._release(int(rows[chosen[0]]), int(rows[chosen[-1]]) + 1)
            return
        start, stop, _ = rows.indices(len(self))
        for part in self._parts(start, stop):
            self._values[part] = values[part.start - start : part.stop - start]
            self._release(part.start, part.stop)

    def take_runs(self, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return runs of rows, one behind the other; they begin at `starts` (n,), ascending, and have `lengths`."""
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        found = np.empty((int(bounds[-1]), *self.shape[1:]), self._values.dtype)
        for first in range(0, len(starts), ROWS_AT_ONCE):
            part = slice(first, min(first + ROWS_AT_ONCE, len(starts)))
            own = slice(int(bounds[part.start]), int(bounds[part.stop]))
            rows = np.arange(own.start, own.stop) + np.repeat(starts[part] - bounds[part], lengths[part])
            if len(rows):
                np.take(self._values, rows, axis=0, out=found[own], mode="clip")
                self._release(int(rows[0]), int(rows[-1]) + 1)
        return found

    def _copy(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        found = np.empty((max(0, stop - start), *self.shape[1:]), self._values.dtype)
        for part in self._parts(start, stop):
            found[part.start - start : part.stop - start] = self._values[part]
            self._release(part.start, part.stop)
        return found

    def _parts(self, start: int, stop: int) -> list[slice]:
        step = max(1, BYTES_AT_ONCE // self._row_bytes)
        return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]

    def _release(self, start: int, stop: int) -> None:
        first = start * self._row_bytes // AROUND_BYTES * AROUND_BYTES
        last = -(-stop * self._row_bytes // AROUND_BYTES) * AROUND_BYTES
        self._file.madvise(mmap.MADV_DONTNEED, first, min(last, len(self._file)) - first)


Table = np.ndarray | MappedRows
