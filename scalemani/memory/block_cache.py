"""Decoded blocks of stored arrays, kept for the tasks that follow."""

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable

import scipy.sparse as sp

from scalemani.kernels.rows.compressed import Points
from scalemani.store.groups import StageGroup

BlockKey = tuple[str, str, str, int]


class BlockCache:
    """Decoded blocks of rows. The least recently used are dropped once there are more than `limit` bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: OrderedDict[BlockKey, Points] = OrderedDict()
        self._bytes = 0

    def read(
        self,
        group: StageGroup,
        name: str,
        block: int,
        limit: int,
        load: Callable[[int], Points] | None = None,
    ) -> Points:
        """Return a block of rows of an array, decoded before or read now; `load` reads what is no row array."""
        read = functools.partial(group.read_block, name, block) if load is None else functools.partial(load, block)
        return self.kept((str(group.root), group.path, name, block), limit, read)

    def kept(self, key: BlockKey, limit: int, read: Callable[[], Points]) -> Points:
        """Return what was read before under a key of root, group, name and number, or what `read` returns."""
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
                return self._blocks[key]
        rows = read()
        with self._lock:
            if key not in self._blocks and bytes_of(rows) <= limit:
                self._blocks[key] = rows
                self._bytes += bytes_of(rows)
                while self._bytes > limit:
                    self._bytes -= bytes_of(self._blocks.popitem(last=False)[1])
        return rows

    def clear(self) -> None:
        """Drop all blocks."""
        with self._lock:
            self._blocks.clear()
            self._bytes = 0


def bytes_of(rows: Points) -> int:
    """Return the bytes of rows in memory."""
    return sum(part.nbytes for part in (rows.indptr, rows.indices, rows.data)) if sp.issparse(rows) else rows.nbytes
