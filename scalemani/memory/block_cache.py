"""Decoded blocks of stored arrays, kept for the tasks that follow."""

import threading
from collections import OrderedDict

import numpy as np

from scalemani.store.groups import StageGroup


class BlockCache:
    """Decoded blocks of rows. The least recently used are dropped once there are more than `limit` bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[str, str, str, int], np.ndarray] = OrderedDict()
        self._bytes = 0

    def read(self, group: StageGroup, name: str, block: int, limit: int) -> np.ndarray:
        """Return a block of rows of an array, decoded before or read now."""
        key = (str(group.root), group.path, name, block)
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
                return self._blocks[key]
        rows = group.read_block(name, block)
        with self._lock:
            if key not in self._blocks and rows.nbytes <= limit:
                self._blocks[key] = rows
                self._bytes += rows.nbytes
                while self._bytes > limit:
                    self._bytes -= self._blocks.popitem(last=False)[1].nbytes
        return rows

    def clear(self) -> None:
        """Drop all blocks."""
        with self._lock:
            self._blocks.clear()
            self._bytes = 0
