"""What a process keeps at hand while a stage runs: whole small arrays, and decoded blocks up to a number of bytes."""

import contextlib
import ctypes
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import zarr

from scalemani.kernels.arrays.workspace import Empty
from scalemani.memory.mapped import MappedRows, Table
from scalemani.store.groups import StageGroup
from scalemani.store.objects import LocalObjects

M_ARENA_MAX, M_MMAP_THRESHOLD = -8, -3  # of mallopt(3)
ARENAS = 2
SHORT_OF_MEMORY = 2 * 10**9  # with more, mapping each array anew costs time for nothing
SHARED_BYTES = 2**18  # larger arrays go back to the system as soon as they are freed

Made = TypeVar("Made")

_lock = threading.Lock()
_kept: dict[Hashable, Any] = {}
_making: dict[Hashable, threading.Lock] = {}
_scope: list[str] = [""]


class BlockCache:
    """Decoded blocks of arrays, the least recently used dropped first once `limit` bytes are held."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[tuple[str, str, str, int], np.ndarray] = OrderedDict()
        self._bytes = 0

    def block(self, group: StageGroup, name: str, block: int, limit: int) -> np.ndarray:
        """Return a block of rows, from memory where it is held."""
        key = (group.root, group.path, name, block)
        with _lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
                return self._blocks[key]
        rows = group.read_block(name, block)
        with _lock:
            if key not in self._blocks and rows.nbytes <= limit:
                self._blocks[key] = rows
                self._bytes += rows.nbytes
                while self._bytes > limit:
                    self._bytes -= self._blocks.popitem(last=False)[1].nbytes
        return rows

    def clear(self) -> None:
        """Drop every block."""
        with _lock:
            self._blocks.clear()
            self._bytes = 0


_cache = BlockCache()


def kept(key: Hashable, make: Callable[[], Made]) -> Made:
    """Return what `make` returns, made once a process and kept under `key` until `release`."""
    return kept_latest(key, None, make)


def kept_latest(slot: Hashable, version: Hashable, make: Callable[[], Made]) -> Made:
    """Return what `make` returns, made once a process and `version`; that of another version is dropped before."""
    with _lock:
        making = _making.setdefault(slot, threading.Lock())
    with making:
        # Another run in this process may end a stage, and release what is kept, at any moment.
        held = _kept.get(slot)
        if held is None or held[0] != version:
            _kept.pop(slot, None)
            held = _kept[slot] = (version, make())
    return held[1]


def resident(group: StageGroup, name: str) -> np.ndarray:
    """Return a whole array, read once a process and kept until `release`; it cannot be written to."""

    def read_only() -> np.ndarray:
        values = group.read(name)
        values.flags.writeable = False
        return values

    return kept((group.root, group.path, name), read_only)


def mapped(group: StageGroup, name: str) -> MappedRows:
    """As `resident`, for an array with a row a point, in a mapped file: of which little is in memory at any moment."""

    def filled() -> MappedRows:
        array = group.array(name)
        rows = MappedRows(scratch_folder(group), array.shape, array.dtype)
        fill(rows, array)
        return rows

    return kept((group.root, group.path, name), filled)


def read_large(group: StageGroup, name: str, empty: Empty) -> np.ndarray:
    """Return a whole array in one made by `empty`; chunk by chunk unless that is `numpy.empty`."""
    if empty is np.empty:
        return group.read(name)
    array = group.array(name)
    values = empty(array.shape, array.dtype)
    fill(values, array)
    return values


def fill(rows: Table, array: zarr.Array) -> None:
    """Write all rows of a stored array to a table of its shape, chunk by chunk."""
    step = array.chunks[0]
    for start in range(0, len(rows), step):
        rows[start : start + step] = np.asarray(array[start : start + step])


def scratch_folder(group: StageGroup) -> Path:
    """Return where the files of mapped arrays lie: in the run, or where temporary files go if that is in a bucket."""
    return Path(group.root) if isinstance(group.objects, LocalObjects) else Path(tempfile.gettempdir())


def gather_rows(group: StageGroup, name: str, rows: np.ndarray, cache_bytes: int) -> np.ndarray:
    """Return the rows of an array at given row numbers: `gather_into` new memory."""
    array = group.array(name)
    gathered = np.empty((len(rows), *array.shape[1:]), dtype=array.dtype)
    gather_into(gathered, group, name, rows, cache_bytes)
    return gathered


def gather_into(gathered: Table, group: StageGroup, name: str, rows: np.ndarray, cache_bytes: int) -> None:
    """Write the rows of an array at given row numbers to a table, reading each block that holds one of them once.

    Shapes: rows (n,) int, in any order; gathered (n, columns...). Blocks are kept, `cache_bytes` of them, for the next.
    """
    ordered = bool(np.all(rows[1:] >= rows[:-1]))
    order = np.arange(0) if ordered else np.argsort(rows, kind="stable")
    ascending = rows if ordered else rows[order]
    blocks = np.unique(ascending // group.block_rows)
    cuts = np.searchsorted(ascending, np.append(blocks, blocks[-1:] + 1) * group.block_rows)
    for position, block in enumerate(blocks):
        inside = slice(cuts[position], cuts[position + 1])
        local = ascending[inside] - block * group.block_rows
        gathered[inside if ordered else order[inside]] = _cache.block(group, name, int(block), cache_bytes)[local]


def release() -> None:
    """Drop all that is kept, and hand its memory back to the system: called when a stage ends."""
    with _lock:
        _kept.clear()
        _making.clear()
    _cache.clear()
    with contextlib.suppress(OSError, AttributeError):  # glibc keeps what threads have freed until it is told not to
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def share_freed_memory(memory: int) -> None:
    """Have glibc's allocator keep freed memory for all threads and not for each: called before threads are started.

    Where the budget is short it keeps nothing of large arrays. Left alone it would keep those of up to 32 MB, with
    holes between them that nothing fits into.
    """
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(M_ARENA_MAX, ARENAS)
        if memory < SHORT_OF_MEMORY:
            libc.mallopt(M_MMAP_THRESHOLD, SHARED_BYTES)


def enter(scope: str) -> None:
    """Drop what is kept when the first task of another scope comes: on a worker, where no stage is seen to end."""
    with _lock:
        before, _scope[0] = _scope[0], scope
    if before not in ("", scope):
        release()
