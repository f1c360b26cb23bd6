"""How kernels are compiled: serial, kept from process to process, and free of the GIL; callers run them side by side.

The decorators differ in what the compiler may do to sums and products of floats: nothing, reorder, fuse. In plain mode
nothing is compiled: Python and NumPy that a person can step through, slow, and equal to rounding. Code that emits LLVM
instructions, or that is written to be vectorised, is then replaced by a reference implementation in NumPy, which takes
the arguments of what it replaces, addresses among them, so that no kernel needs to know the mode. The mode holds for a
process from its start to its end. Python differs from compiled code where a sum starts from 0.0 and its terms are
float32, which it then is too, and where `math` raises an OverflowError instead of returning infinity.
"""

import ctypes
import functools
import os
import threading
import time
from collections.abc import Callable, Set
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import event
from numpy.typing import DTypeLike

from scalemani.kernels.machine.code_cache import CodeCache

PLAIN_VARIABLE = "SCALEMANI_PLAIN"
# Without its compiler numba cannot run instructions at all.
PLAIN = os.environ.get(PLAIN_VARIABLE, "0") not in ("", "0") or bool(vars(numba.config)["DISABLE_JIT"])

# Reassociation lets LLVM vectorise sums; the other fast-math flags would make isnan(nan) False and undo exact tricks.
REASSOCIATE = frozenset({"reassoc", "contract", "nsz"})
FUSE = frozenset({"contract"})  # a product and a sum may become one instruction that rounds once
Function = TypeVar("Function", bound=Callable[..., Any])


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


def _decorator(fastmath: Set[str] = frozenset(), inlined: bool = False) -> Callable[[Function], Any]:
    def compile_kernel(function: Function) -> Any:
        if PLAIN:
            return _silent(function)
        kernel: Any = numba.njit(nogil=True, error_model="numpy", fastmath=set(fastmath), forceinline=inlined)(function)
        kernel._cache = CodeCache(function, sorted(fastmath))  # as `cache=True` would set numba's own
        return kernel

    return compile_kernel


def _silent(function: Function) -> Any:
    """Return a function that, like compiled ones, says nothing of overflow, division by zero and invalid values."""

    @functools.wraps(function)
    def run_silently(*arguments: Any, **named: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments, **named)

    return run_silently


compiled: Any = _decorator()
compiled_sums: Any = _decorator(REASSOCIATE)
compiled_fused: Any = _decorator(FUSE)
# A process may have several compilations of a function that kernels call: its own, and a copy in each caller. Sums in
# them may be associated differently, and which one a call reaches depends on what was loaded before. Hence inlined.
inlined_sums: Any = _decorator(REASSOCIATE, inlined=True)
inlined: Any = _decorator(inlined=True)


@inlined
def square_of(value: float) -> float:
    """Return the square of a number, rounded once.

    Numba compiles `value ** 2` once a process for all kernels, with what the first of them permits the compiler.
    """
    return value * value


class CompileSeconds(event.Listener):
    """Adds up the time in which at least one thread compiles; what is loaded from a cache is not compiled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work, self._since, self._total = 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        """Take note that a thread compiles, or that what it compiles calls what is to be compiled."""
        with self._lock:
            self._at_work += 1
            if self._at_work == 1:
                self._since = time.monotonic()

    def on_end(self, event: Any) -> None:
        """Take note that one of these is done."""
        with self._lock:
            self._at_work -= 1
            if self._at_work == 0:
                self._total += time.monotonic() - self._since

    @property
    def total(self) -> float:
        """The seconds until this moment."""
        with self._lock:
            return self._total + (time.monotonic() - self._since if self._at_work else 0.0)


COMPILING = CompileSeconds()
event.register("numba:compile", COMPILING)
