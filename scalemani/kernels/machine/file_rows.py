"""Rows of an open file by number: a call of the system for each run of rows that follow each other, without the GIL."""

import os

import numba
import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.plain import in_plain_mode

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


def read_runs_plainly(
    descriptor: int, row_bytes: int, starts: np.ndarray, lengths: np.ndarray, found: np.ndarray
) -> bool:
    """Do what `read_runs` does, run by run."""
    place, given = 0, memoryview(found)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        wanted = given[place : place + length * row_bytes]
        if length and os.preadv(descriptor, [wanted], start * row_bytes) != len(wanted):
            return False
        place += len(wanted)
    return True


@in_plain_mode(read_runs_plainly)
@compiled
def read_runs(descriptor: int, row_bytes: int, starts: np.ndarray, lengths: np.ndarray, found: np.ndarray) -> bool:
    """Read runs of rows, one behind the other.

    Parameters
    ----------
    descriptor : of a file that is open for reading
    row_bytes : bytes of a row
    starts, lengths : (n,) int64, the first row of each run, and how many it has
    found : (bytes of all of them,) uint8, written

    Returns
    -------
    whether all could be read
    """
    run, place = 0, 0
    while run < starts.size:
        end, first = _run_end(starts, lengths, run), starts[run] * row_bytes
        stop = (starts[end - 1] + lengths[end - 1]) * row_bytes
        while first < stop:
            count = _pread(descriptor, found.ctypes.data + place, stop - first, first)
            if count <= 0:
                return False
            first, place = first + count, place + count
        run = end
    return True


def write_runs_plainly(
    descriptor: int, row_bytes: int, starts: np.ndarray, lengths: np.ndarray, values: np.ndarray
) -> bool:
    """Do what `write_runs` does, run by run."""
    place, given = 0, memoryview(values)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        wanted = given[place : place + length * row_bytes]
        if length and os.pwritev(descriptor, [wanted], start * row_bytes) != len(wanted):
            return False
        place += len(wanted)
    return True


@in_plain_mode(write_runs_plainly)
@compiled
def write_runs(descriptor: int, row_bytes: int, starts: np.ndarray, lengths: np.ndarray, values: np.ndarray) -> bool:
    """Write runs of rows; the parameters are those of `read_runs`, `values` uint8 instead of `found`.

    Returns
    -------
    whether all could be written
    """
    run, place = 0, 0
    while run < starts.size:
        end, first = _run_end(starts, lengths, run), starts[run] * row_bytes
        stop = (starts[end - 1] + lengths[end - 1]) * row_bytes
        while first < stop:
            count = _pwrite(descriptor, values.ctypes.data + place, stop - first, first)
            if count <= 0:
                return False
            first, place = first + count, place + count
        run = end
    return True
