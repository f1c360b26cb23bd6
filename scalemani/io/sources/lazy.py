"""Arrays of which rows are computed as they are read."""

from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np


@dataclass(frozen=True)
class LazyRows:
    """An array of which `reader(start, stop)` gives rows: nothing is read before it is requested.

    Slices of rows, `rows[...]` and `numpy.asarray(rows)` read them.
    """

    shape: tuple[Any, ...]
    dtype: np.dtype
    reader: Callable[[int, int], np.ndarray]
    description: str
    preferred_rows: int | None = None
    sequential: bool = True
    remote: bool = False

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        return np.ascontiguousarray(self.reader(start, stop), self.dtype)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, requested: slice | EllipsisType) -> np.ndarray:
        rows = slice(None) if requested is Ellipsis else requested
        if not isinstance(rows, slice) or (rows.step or 1) < 1:
            raise TypeError(f"{self.description} is read by slices of rows, such as [0:1000], got {requested!r}")
        start, stop, step = rows.indices(len(self))
        return self.read(start, max(start, stop))[::step]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        rows = self.read(0, len(self))
        return rows if dtype is None else rows.astype(dtype)


def lazy_rows(array: Any, description: str) -> LazyRows:
    """Return an array of NumPy or zarr, or a lazy one, to be read by rows."""
    if isinstance(array, LazyRows):
        return array
    chunks = getattr(array, "chunks", None)

    def read(start: int, stop: int) -> np.ndarray:
        return np.asarray(array[start:stop])

    return LazyRows(array.shape, np.dtype(array.dtype), read, description, chunks[0] if chunks else None, False)
