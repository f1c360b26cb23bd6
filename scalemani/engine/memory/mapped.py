"""Arrays in unnamed mapped files: where arrays that grow with the number of points lie when memory is short.

A kernel uses such an array as any other. Its pages are in the system's page cache: the system writes them out and drops
them where it has another use for the memory.
"""

import mmap
import os
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from scalemani.store.objects import as_store_error

LEAST_BYTES = 2**16  # smaller arrays stay in memory
SHARED_FILE_BYTES = 2**25  # of a file for arrays of up to a quarter of it: each file takes a descriptor
CACHE_LINE = 64
BYTES_AT_ONCE = 2**22  # of zeros that are written


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
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            take_space(file, n_bytes)
            return mmap.mmap(file.fileno(), n_bytes)
    except OSError as error:
        raise as_store_error(error, folder, n_bytes) from error


def take_space(file: BinaryIO, n_bytes: int) -> None:
    """Make an empty file one of so many zeros, with their room on the disk: writing to a map of it cannot fail."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
        return
    for start in range(0, n_bytes, BYTES_AT_ONCE):
        file.write(bytes(min(BYTES_AT_ONCE, n_bytes - start)))
    file.flush()
