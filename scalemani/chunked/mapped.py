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
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from scalemani.store.objects import as_store_error

MAPPED_BYTES = 16 * 2**20  # of mapped pages that a process holds before it lets go of all
TOUCHED_BYTES = 112 * 2**20  # at most, with what all cores touch between two looks
LEAST_BYTES = 2**16  # smaller arrays stay in memory
SHARED_FILE_BYTES = 2**25  # of a file for arrays of up to a quarter of it: each file takes a descriptor
CACHE_LINE = 64
SECONDS_BETWEEN_LOOKS = 0.0005  # a core that reads here and there maps some 30 MB in the meantime

Empty = Callable[[tuple[int, ...], DTypeLike], np.ndarray]

_lock = threading.Lock()
_maps: "weakref.WeakSet[mmap.mmap]" = weakref.WeakSet()
_watching: list[bool] = [False]


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
            _watching[0] = True
            statm = open("/proc/self/statm", "rb", buffering=0)  # noqa: SIM115 - the thread closes it
            arguments = statm, file_pages_bytes(statm)
            threading.Thread(target=watch, args=arguments, name="mapped pages", daemon=True).start()
    return made


def watch(statm: FileIO, others: int) -> None:
    """Let go of all mapped pages whenever there are too many of them, until nothing is mapped.

    Parameters: `statm`, of `file_pages_bytes`, closed at the end; `others`, bytes of files before anything was touched.
    """
    with statm:
        while True:
            with _lock:
                if not _maps:
                    _watching[0] = False
                    return
            if file_pages_bytes(statm) - others > MAPPED_BYTES:
                let_go()
                others = file_pages_bytes(statm)
            time.sleep(SECONDS_BETWEEN_LOOKS)


def let_go() -> None:
    """Give all mapped pages back to the page cache; what they hold is there when they are touched again."""
    with _lock:
        maps = list(_maps)
    for each in maps:
        each.madvise(mmap.MADV_DONTNEED)


def file_pages_bytes(statm: FileIO) -> int:
    """Return the bytes of files that this process holds in memory: mapped arrays, and the code of libraries.

    Parameters: `statm`, /proc/self/statm, opened once: it is read anew each time.
    """
    statm.seek(0)
    return int(statm.read().split()[2]) * mmap.PAGESIZE
