"""Tables in unnamed files that are looked up by row: what tasks share where memory is short.

Rows are copied out by calls of the system, not by pages of a map: these count as resident memory of a worker, which
Dask pauses and ends at its memory limit.
"""

import errno
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from scalemani.engine.memory.mapped import take_space
from scalemani.kernels.machine.file_rows import move_runs
from scalemani.store.objects import as_store_error

ROWS_AT_ONCE = 4096  # rows by number, brought into ascending order before they are written


class RowsInFile:
    """A table (N, columns...) in a file without a name, all zero at first; of it no row is in memory by itself.

    As of an array, a slice or rows by number can be read, which copies them, and written. Threads may share it.
    """

    def __init__(self, folder: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.shape, self.dtype, self._folder = shape, np.dtype(dtype), folder
        self._row_bytes = int(np.prod(shape[1:], dtype=np.int64)) * self.dtype.itemsize
        try:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (open as long as the table is)
            take_space(self._file, max(1, shape[0] * self._row_bytes))
        except OSError as error:
            raise as_store_error(error, folder, shape[0] * self._row_bytes) from error

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
            self._write(*self._run(rows), values)
            return
        order = np.argsort(rows, kind="stable")
        for first in range(0, len(order), ROWS_AT_ONCE):
            chosen = order[first : first + ROWS_AT_ONCE]
            self._write(np.asarray(rows[chosen], np.int64), np.ones(len(chosen), np.int64), values[chosen])

    def take_runs(self, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return runs of rows, one behind the other; they begin at `starts` (n,), and have `lengths`."""
        self._check(starts, lengths)
        found = np.empty((int(lengths.sum()), *self.shape[1:]), self.dtype)
        self._move(False, starts, lengths, found)
        return found

    def _write(self, starts: np.ndarray, lengths: np.ndarray, values: np.ndarray) -> None:
        self._check(starts, lengths)
        shape = (int(lengths.sum()), *self.shape[1:])
        given = np.ascontiguousarray(np.broadcast_to(values, shape), self.dtype)
        self._move(True, starts, lengths, given)

    def _run(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        start, stop, _ = rows.indices(len(self))
        return np.array([start], np.int64), np.array([max(0, stop - start)], np.int64)

    def _check(self, starts: np.ndarray, lengths: np.ndarray) -> None:
        if len(starts) and not (starts.min() >= 0 and (starts + lengths).max() <= len(self)):
            raise IndexError(f"rows {starts.min()} to {(starts + lengths).max() - 1} of a table of {len(self)}")

    def _move(self, writes: bool, starts: np.ndarray, lengths: np.ndarray, values: np.ndarray) -> None:
        in_bytes = values.reshape(-1).view(np.uint8)
        if not move_runs(writes, self._file.fileno(), self._row_bytes, starts, lengths, in_bytes):
            error = OSError(errno.EIO, "a row of a file without a name could not be read or written")
            raise as_store_error(error, self._folder) from error


Table = np.ndarray | RowsInFile
