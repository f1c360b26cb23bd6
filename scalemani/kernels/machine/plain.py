"""The switch to plain kernels: Python and NumPy that a person can step through; slow, and equal to rounding.

In plain mode nothing is compiled, and code that emits LLVM instructions, or that is written to be vectorised, is
replaced by a reference implementation in NumPy. A reference takes the arguments of what it replaces, addresses among
them, so that no kernel needs to know the mode. The mode holds for a process from its start to its end.

Python differs from compiled code where a sum starts from 0.0 and its terms are float32, which it then is too, and where
`math` raises an OverflowError instead of returning infinity.
"""

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import DTypeLike

PLAIN_VARIABLE = "SCALEMANI_PLAIN"
# Without its compiler numba cannot run instructions at all.
PLAIN = os.environ.get(PLAIN_VARIABLE, "0") not in ("", "0") or bool(vars(numba.config)["DISABLE_JIT"])


def in_plain_mode(reference: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a decorator that replaces a function by its reference implementation where kernels are plain."""

    def choose(optimized: Any) -> Any:
        return reference if PLAIN else optimized

    return choose


def numbers_at(
    address: int, shape: tuple[int, ...], dtype: DTypeLike, strides: tuple[int, ...] | None = None
) -> np.ndarray:
    """Return the numbers at an address as an array that shares the memory of the array that lies there.

    `strides` are bytes, not negative, along each axis; those of a C-contiguous array by default. All numbers must lie
    within an array that somebody keeps alive.
    """
    if strides is None:
        strides = np.empty(shape, dtype).strides
    n_bytes = np.dtype(dtype).itemsize + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    memory = (ctypes.c_char * n_bytes).from_address(int(address))
    return np.ndarray(shape, dtype, memory, strides=strides)
