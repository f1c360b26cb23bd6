"""Stored arrays in memory: whole and shared by all tasks, in a file, or the rows that a task asks for."""

import functools

import numpy as np

from scalemani.engine.memory.process import PROCESS, Key
from scalemani.engine.memory.rows_in_file import RowsInFile, Table
from scalemani.kernels.arrays.grouping import place_rows
from scalemani.kernels.arrays.workspace import Empty
from scalemani.store.groups import StageGroup
from scalemani.store.objects import damaged_object

FEW_ROWS = 4096  # are copied twice by NumPy before the machine code that copies them once is loaded


def read_once(group: StageGroup, name: str) -> np.ndarray:
    """Return a whole array, read once a process until the stage ends. It cannot be written to."""
    return PROCESS.once(Key.of(read_only, (name,), group), functools.partial(read_only, group, name))


def read_only(group: StageGroup, name: str) -> np.ndarray:
    """Read a whole array that cannot be written to."""
    values = group.read(name)
    values.flags.writeable = False
    return values


def keep_in_file(group: StageGroup, name: str) -> RowsInFile:
    """As `read_once`, in a file without a name: rows are copied out of it as they are asked for."""
    return PROCESS.once(Key.of(copy_to_file, (name,), group), functools.partial(copy_to_file, group, name))


def copy_to_file(group: StageGroup, name: str) -> RowsInFile:
    """Copy a whole array to a file, chunk by chunk."""
    array = group.array(name)
    rows = RowsInFile(group.objects.scratch_folder, array.shape, array.dtype)
    copy_chunks(group, name, rows)
    return rows


def read_large(group: StageGroup, name: str, empty: Empty) -> np.ndarray:
    """Read a whole array into one made by `empty`: chunk by chunk unless that is `numpy.empty`."""
    if empty is np.empty:
        return group.read(name)
    array = group.array(name)
    values = empty(array.shape, array.dtype)
    copy_chunks(group, name, values)
    return values


def copy_chunks(group: StageGroup, name: str, rows: Table) -> None:
    """Copy all rows of a stored array to a table of its shape, chunk by chunk."""
    step = group.array(name).chunks[0]
    for start in range(0, len(rows), step):
        rows[start : start + step] = group.read_rows(name, start, start + step)


def gather_rows(group: StageGroup, name: str, rows: np.ndarray, cache_bytes: int) -> np.ndarray:
    """Return rows of an array by their numbers.

    Parameters
    ----------
    group, name : StageGroup, str
        The array, (N, columns...).
    rows : ndarray of int, shape (n,)
        Row numbers in any order.
    cache_bytes : int
        How much this process keeps of decoded blocks, for the next call.

    Returns
    -------
    ndarray, shape (n, columns...)
        The rows, in the order of `rows` and in the dtype of the array.
    """
    array = group.array(name)
    gathered = np.empty((len(rows), *array.shape[1:]), dtype=array.dtype)
    gather_into(gathered, group, name, rows, cache_bytes)
    return gathered


def gather_into(gathered: Table, group: StageGroup, name: str, rows: np.ndarray, cache_bytes: int) -> None:
    """Write rows of an array by their numbers to a table (n, columns...): see `gather_rows`.

    Each block that holds one of the rows is read once.
    """
    ordered = bool(np.all(rows[1:] >= rows[:-1]))
    order = np.arange(0) if ordered else np.argsort(rows, kind="stable")
    ascending = rows if ordered else rows[order]
    n_rows = group.array(name).shape[0]
    if len(ascending) and not 0 <= ascending[0] <= ascending[-1] < n_rows:
        asked = ascending[0] if ascending[0] < 0 else ascending[-1]
        raise damaged_object(f"{group.root}/{group.path}/{name}", f"row {asked} of {n_rows} is asked for")
    blocks = np.unique(ascending // group.block_rows)
    cuts = np.searchsorted(ascending, np.append(blocks, blocks[-1:] + 1) * group.block_rows)
    for position, block in enumerate(blocks):
        inside = slice(cuts[position], cuts[position + 1])
        local = ascending[inside] - block * group.block_rows
        values = PROCESS.blocks.read(group, name, int(block), cache_bytes)
        if ordered:
            gathered[inside] = values[local]
        elif isinstance(gathered, np.ndarray) and len(rows) > FEW_ROWS:
            place_rows(values, local, gathered, order[inside])
        else:
            gathered[order[inside]] = values[local]
