"""Rows of an open file by number: a call of the system for each run of rows that follow each other, without the GIL."""

import os

import numba
import numpy as np

from scalemani.kernels.machine.compile import compiled, in_plain_mode

# Of the C library, whose words, sizes and pointers are written as the integers of their width.
_SIGNATURE = numba.types.intp(numba.types.intc, numba.types.intp, numba.types.intp, numba.types.int64)
_pread = numba.types.ExternalFunction("pread", _SIGNATURE)
_pwrite = numba.types.ExternalFunction("pwrite", _SIGNATURE)


@compiled
def _run_end(starts: np.ndarray, lengths: np.ndarray, run: int) -> int:
    """Return the first run that does not begin where the one before it ends."""
    run += 1
    while run < starts.size and starts[run] == starts[run - 1] + lengths[run - 1]:
        run += 1
    return run


def reference_move_runs(
    writes: bool, descriptor: int, row_bytes: int, starts: np.ndarray, lengths: np.ndarray, values: np.ndarray
) -> bool:
    """Do what `move_runs` does, run by run."""
    place, buffer, move = 0, memoryview(values), os.pwritev if writes else os.preadv
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        part = buffer[place : place + length * row_bytes]
        if length and move(descriptor, [part], start * row_bytes) != len(part):
            return False
        place += len(part)
    return True


@in_plain_mode(reference_move_runs)
@compiled
def move_runs(
    writes: bool, descriptor: int, row_bytes: int, starts: np.ndarray, lengths: np.ndarray, values: np.ndarray
) -> bool:
    """Read runs of rows, or write them; return whether all could be.

    Parameters
    ----------
    row_bytes : bytes of a row
    starts, lengths : (n,) int64, the first row of each run, and how many it has
    values : (bytes of all of them,) uint8, one run behind the other
    """
    run, place = 0, 0
    while run < starts.size:
        end, first = _run_end(starts, lengths, run), starts[run] * row_bytes
        stop = (starts[end - 1] + lengths[end - 1]) * row_bytes
        while first < stop:
            at, left = values.ctypes.data + place, stop - first
            count = _pwrite(descriptor, at, left, first) if writes else _pread(descriptor, at, left, first)
            if count <= 0:
                return False
            first, place = first + count, place + count
        run = end
    return True
