"""The compile decorators: serial, kept from process to process, and free of the GIL; callers run kernels side by side.

They differ in what the compiler may do to sums and products of floats: nothing, reorder, fuse.
"""

import functools
from collections.abc import Callable, Set
from typing import Any, TypeVar

import numba
import numpy as np

from scalemani.kernels.machine.code_cache import CodeCache
from scalemani.kernels.machine.plain import PLAIN

# Reassociation lets LLVM vectorise sums; the other fast-math flags would make isnan(nan) False and undo exact tricks.
REASSOCIATE = frozenset({"reassoc", "contract", "nsz"})
FUSE = frozenset({"contract"})  # a product and a sum may become one instruction that rounds once

Function = TypeVar("Function", bound=Callable[..., Any])


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
