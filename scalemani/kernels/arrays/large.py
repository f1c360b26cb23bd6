"""Where the arrays come from that have a row for every point or node: memory, or wherever a caller has more room.

What a kernel does with them is the same. It asks on the caller's thread, before it hands parts to others.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

Given = TypeVar("Given")
Made = TypeVar("Made")
Empty = Callable[[tuple[int, ...], DTypeLike], np.ndarray]

_empty: ContextVar[Empty] = ContextVar("empty", default=np.empty)


@contextlib.contextmanager
def large_arrays_from(empty: Empty) -> Iterator[None]:
    """Take large arrays from `empty(shape, dtype)` on this thread, until the block ends."""
    token = _empty.set(empty)
    try:
        yield
    finally:
        _empty.reset(token)


def large_arrays_in_memory() -> bool:
    """Return whether large arrays are made as others are."""
    return _empty.get() is np.empty


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """Return an array of this shape with anything in it."""
    return _empty.get()(shape, dtype)


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """Return an array of zeros."""
    made = empty(shape, dtype)
    made[...] = 0
    return made


def placed(values: np.ndarray) -> np.ndarray:
    """Return values where large arrays are: as they are if that is memory, else a copy."""
    if large_arrays_in_memory():
        return values
    made = empty(values.shape, values.dtype)
    made[...] = values
    return made


def as_here(function: Callable[[Given], Made]) -> Callable[[Given], Made]:
    """Return a function that takes large arrays, on any thread, from where this one takes them."""
    chosen = _empty.get()

    def called(given: Given) -> Made:
        with large_arrays_from(chosen):
            return function(given)

    return called


def concatenated(arrays: Sequence[np.ndarray], dtype: DTypeLike | None = None) -> np.ndarray:
    """Return arrays one after the other as a large array, of the dtype of the first or another."""
    made = empty((sum(map(len, arrays)), *arrays[0].shape[1:]), arrays[0].dtype if dtype is None else dtype)
    place = 0
    for values in arrays:
        made[place : place + len(values)] = values
        place += len(values)
    return made
