"""Large arrays in memory that earlier ones have left: a descent makes several of one shape in every iteration."""

import weakref
from collections import defaultdict

import numpy as np
from numpy.typing import DTypeLike

from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.arrays.workspace import Workspace

LEAST_BYTES = 2**18  # of smaller arrays the allocator keeps the memory itself


class Recycled:
    """Makes arrays whose memory is used again: its method `empty` stands in for `numpy.empty`.

    Memory that is freed goes back to the system, which hands out cleared pages for the next array: at ten million
    points that is a fifth of a descent. Here it waits for an array of as many bytes: of each size there is as much as
    was in use at one time. All goes back when the object and its arrays are gone.
    """

    def __init__(self) -> None:
        self._left: dict[int, list[np.ndarray]] = defaultdict(list)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return an array of any values; its memory comes back when it and all views of it are gone."""
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if n_bytes < LEAST_BYTES:
            return np.empty(shape, dtype)
        left = self._left[n_bytes]
        try:
            memory = left.pop()
        except IndexError:
            memory = np.empty(n_bytes, np.uint8)
        # Views of an array refer to the one that lies over a memoryview, and keep it.
        made = np.frombuffer(memoryview(memory), dtype)
        weakref.finalize(made, left.append, memory).atexit = False
        return made.reshape(shape)


def recycling(over: Mapper = map) -> Workspace:
    """Return a workspace whose large arrays take the memory that earlier ones have left."""
    return Workspace(over, Recycled().empty)
