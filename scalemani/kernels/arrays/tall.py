"""Tall blocks: N rows of a few columns, in memory, or elsewhere and then read and written by panels of rows.

What computes with them reads `block[panel]` once a panel: of a block in memory a view, of another one a copy. The rows
that are read have the strides of those in memory, so that BLAS and compiled functions make the same bits of them.
"""

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import DTypeLike


class DistantRows(ABC):
    """Rows (N,) or (N, m) that are not in the memory of this process; small, and picklable.

    `shape` and `dtype` are those of all rows.
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, panel: slice) -> np.ndarray:
        """Return a copy of the rows of a panel."""

    @abstractmethod
    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Return rows by ascending numbers (n,), C-contiguous."""

    def write(self, panel: slice, rows: np.ndarray) -> None:
        """Write the rows of a panel, of which each is written once."""
        raise TypeError(f"{type(self).__name__} cannot be written")


Tall = np.ndarray | DistantRows


class DerivedRows(DistantRows):
    """What a function makes of each panel of other distant rows; it is computed as it is read.

    Parameters
    ----------
    base : the other rows.
    derive : a picklable function of some rows; it knows no row numbers.
    shape, dtype : of what it returns for all of them.
    """

    def __init__(
        self, base: DistantRows, derive: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...], dtype: DTypeLike
    ) -> None:
        self._base, self._derive, self.shape, self.dtype = base, derive, shape, np.dtype(dtype)

    def __getitem__(self, panel: slice) -> np.ndarray:
        return self._derive(self._base[panel])

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Return rows by ascending numbers (n,)."""
        return np.ascontiguousarray(self._derive(self._base.gather(rows)))


def _taken(columns: slice | np.ndarray, compact: bool, rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows[:, columns]) if compact else rows[:, columns]


def _as_column(dtype: DTypeLike, values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype)[:, np.newaxis]


def columns_of(block: Tall, columns: slice | np.ndarray, compact: bool = False) -> Tall:
    """Return some columns of a block (N, m), those of a slice as a view unless they are to be `compact`."""
    if isinstance(block, np.ndarray):
        return _taken(columns, compact, block)
    width = len(np.arange(block.shape[1])[columns])
    return DerivedRows(block, functools.partial(_taken, columns, compact), (len(block), width), block.dtype)


def as_column(values: Tall, dtype: DTypeLike) -> Tall:
    """Return values (N,) as a block (N, 1) of a dtype."""
    if isinstance(values, np.ndarray):
        return _as_column(dtype, values)
    return DerivedRows(values, functools.partial(_as_column, dtype), (len(values), 1), dtype)


@contextlib.contextmanager
def written_panel(out: Tall, panel: slice) -> Iterator[np.ndarray]:
    """Yield an array for the rows of a panel of `out`: what is written to it is there in the end."""
    if isinstance(out, np.ndarray):
        yield out[panel]
        return
    rows = np.zeros((panel.stop - panel.start, *out.shape[1:]), out.dtype)
    yield rows
    out.write(panel, rows)


def whole(block: Tall) -> np.ndarray:
    """Return all rows of a block in memory."""
    return block if isinstance(block, np.ndarray) else block.gather(np.arange(len(block)))
