"""Where a kernel works: what runs its panels side by side, and where its large arrays lie.

Large arrays have a row for every point or node. A caller that is short of memory has them made in mapped files. That
changes what a computation costs, and no bit of its result.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from scalemani.kernels.arrays.tiles import Mapper

Empty = Callable[[tuple[int, ...], DTypeLike], np.ndarray]


class Workspace(NamedTuple):
    """What a caller lends to a kernel.

    `over` has the signature of the builtin `map` and runs panels of rows, side by side where it can; `empty` has that
    of `numpy.empty` and makes large arrays. The default is one thread, and memory.
    """

    over: Mapper = map
    empty: Empty = np.empty

    @property
    def in_memory(self) -> bool:
        """Whether large arrays are ordinary ones."""
        return self.empty is np.empty

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return a large array of zeros."""
        made = self.empty(shape, dtype)
        made[...] = 0
        return made

    def as_large(self, values: np.ndarray) -> np.ndarray:
        """Return values as a large array: themselves where these are ordinary ones, else a copy."""
        if self.in_memory:
            return values
        made = self.empty(values.shape, values.dtype)
        made[...] = values
        return made

    def concatenate(self, arrays: Sequence[np.ndarray], dtype: DTypeLike | None = None) -> np.ndarray:
        """Return arrays one after the other as a large array, by default of the dtype of the first."""
        made = self.empty((sum(map(len, arrays)), *arrays[0].shape[1:]), arrays[0].dtype if dtype is None else dtype)
        first = 0
        for values in arrays:
            made[first : first + len(values)] = values
            first += len(values)
        return made


IN_MEMORY = Workspace()
