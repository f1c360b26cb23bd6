"""Arrays in unnamed files that this process maps: where what grows with the number of points lies when memory is short.

A kernel uses such an array as any other. Its pages come from the system's page cache when they are touched, and go
back there as soon as the process holds more of them than MAPPED_BYTES: a page that is still in the cache comes back for
a microsecond or less, and the system writes it out and drops it where it has another use for the memory.
"""

import mmap
import os
import tempfile
import threading
import time
import weakref
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from scalemani.kernels.arrays.workspace import Empty
from scalemani.store.objects import as_store_error

MAPPED_BYTES = 16 * 2**20  # of mapped pages that a process holds before it lets go of all
TOUCHED_BYTES = 112 * 2**20  # at most, with what all cores touch between two looks
LEAST_BYTES = 2**16  # smaller arrays stay in memory
SHARED_FILE_BYTES = 2**25  # of a file for arrays of up to a quarter of it: each file takes a descriptor
CACHE_LINE = 64
AROUND_BYTES = 2**16  # that Linux maps around a page it is asked for
ROWS_AT_ONCE = 256  # rows by number, looked up before their pages are let go: 16 MiB if they are far from each other
BYTES_AT_ONCE = 2**22  # rows in sequence, copied before their pages are let go
SECONDS_BETWEEN_LOOKS = 0.0005  # a core that reads here and there maps some 30 MB in the meantime

_lock = threading.Lock()
_maps: "weakref.WeakSet[mmap.mmap]" = weakref.WeakSet()
_watching: list[bool] = [False]
_others: list[int] = [0]  # bytes of files that were held when pages were last let go


def mapped_arrays(folder: Path) -> Empty:
    """Return a function like `numpy.empty` whose arrays are mapped files in a folder, all zero at first.

    The files have no name and go with their arrays, or with the process; small arrays share one. Their space is taken
    at once: raises DiskSpaceError where there is too little, StoreError where the folder cannot be written.
    """
    lock, left = threading.Lock(), [memoryview(b"")]

    def place(n_bytes: int) -> memoryview:
        with lock:
            if n_bytes > len(left[0]):
                left[0] = memoryview(mapped_file(folder, SHARED_FILE_BYTES))
            found, left[0] = left[0][:n_bytes], left[0][-(-n_bytes // CACHE_LINE) * CACHE_LINE :]
            return found

    def empty(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if n_bytes < LEAST_BYTES:
            return np.zeros(shape, dtype)
        buffer = place(n_bytes) if n_bytes <= SHARED_FILE_BYTES // 4 else mapped_file(folder, n_bytes)
        return np.frombuffer(buffer, dtype).reshape(shape)

    return empty


def mapped_file(folder: Path, n_bytes: int) -> mmap.mmap:
    """Return a map of a new file; the process lets go of its pages when it holds too many."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, n_bytes)
            made = mmap.mmap(file.fileno(), n_bytes)
    except OSError as error:
        raise as_store_error(error, folder, n_bytes) from error
    with _lock:
        _maps.add(made)
        if not _watching[0]:
            _watching[0], _others[0] = True, file_pages_bytes()
            threading.Thread(target=watch, name="mapped pages", daemon=True).start()
    return made


class MappedRows:
    """A table (N, columns...) in a mapped file, all zero at first: what grows with the points and is looked up by row.

    As of an array, a slice or rows by number can be read, which copies them, and a slice be written. However many are
    asked for and in whatever order, few pages are held at a time: the system maps a dozen more around each it is asked
    for, so that rows from here and there would bring in most of the file.
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
            return self._copied(rows)
        found = np.empty((len(rows), *self.shape[1:]), self._values.dtype)
        for first in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            # Any other mode collects the rows in a copy first.
            np.take(self._values, rows[part], axis=0, out=found[part], mode="clip")
            self._let_go(int(rows[part][0]), int(rows[part][-1]) + 1)
        return found

    def __setitem__(self, rows: slice | np.ndarray, values: np.ndarray) -> None:
        """Write a slice of rows, or rows by numbers (n,) in any order."""
        if not isinstance(rows, slice):
            order = np.argsort(rows, kind="stable")
            for first in range(0, len(order), ROWS_AT_ONCE):
                chosen = order[first : first + ROWS_AT_ONCE]
                self._values[rows[chosen]] = values[chosen]
                self._let_go(int(rows[chosen[0]]), int(rows[chosen[-1]]) + 1)
            return
        start, stop, _ = rows.indices(len(self))
        for part in self._parts(start, stop):
            self._values[part] = values[part.start - start : part.stop - start]
            self._let_go(part.start, part.stop)

    def _copied(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        found = np.empty((max(0, stop - start), *self.shape[1:]), self._values.dtype)
        for part in self._parts(start, stop):
            found[part.start - start : part.stop - start] = self._values[part]
            self._let_go(part.start, part.stop)
        return found

    def _parts(self, start: int, stop: int) -> list[slice]:
        step = max(1, BYTES_AT_ONCE // self._row_bytes)
        return [slice(first, min(first + step, stop)) for first in range(start, stop, step)]

    def _let_go(self, start: int, stop: int) -> None:
        first = start * self._row_bytes // AROUND_BYTES * AROUND_BYTES
        last = -(-stop * self._row_bytes // AROUND_BYTES) * AROUND_BYTES
        self._file.madvise(mmap.MADV_DONTNEED, first, min(last, len(self._file)) - first)


Table = np.ndarray | MappedRows


def watch() -> None:
    """Let go of mapped pages whenever there are too many of them, until nothing is mapped."""
    while True:
        with _lock:
            if not _maps:
                _watching[0] = False
                return
        let_go_of_many()
        time.sleep(SECONDS_BETWEEN_LOOKS)


def let_go_of_many() -> None:
    """Give all mapped pages back to the page cache if there are too many.

    Whoever has done a part of some work calls it: the thread that watches may wait for a processor in the meantime.
    """
    if _watching[0] and file_pages_bytes() - _others[0] > MAPPED_BYTES:
        let_go()
        _others[0] = file_pages_bytes()


def let_go() -> None:
    """Give all mapped pages back to the page cache; what they hold is there when they are touched again."""
    with _lock:
        maps = list(_maps)
    for each in maps:
        each.madvise(mmap.MADV_DONTNEED)


def file_pages_bytes() -> int:
    """Return the bytes of files that this process holds in memory: mapped arrays, and the code of libraries."""
    with open("/proc/self/statm", "rb", buffering=0) as statm:
        return int(statm.read().split()[2]) * mmap.PAGESIZE
