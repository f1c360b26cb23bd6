"""Cache hints for kernels that visit rows out of order: a row of neighbours is a dozen lines of cache."""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.plain import in_plain_mode

CACHE_LINE_BYTES = 64
WILL_BE_READ, KEEP_IN_ALL_LEVELS, DATA_CACHE = 0, 3, 1  # arguments of llvm.prefetch


def ignore_hint(*place: Any) -> None:
    """Do nothing, as a hint may."""


@in_plain_mode(ignore_hint)
@intrinsic
def prefetch_line(typing_context: Any, address: Any) -> Any:
    """Emit the hint that the cache line at an address, in bytes, will be read."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        )
        hints = [word(WILL_BE_READ), word(KEEP_IN_ALL_LEVELS), word(DATA_CACHE)]
        builder.call(prefetch, [builder.inttoptr(arguments[0], pointer), *hints])
        return context.get_dummy_value()

    return numba.types.void(numba.types.intp), emit


@in_plain_mode(ignore_hint)
@compiled
def prefetch_row(matrix: np.ndarray, row: int) -> None:
    """Ask for a row of a C-contiguous matrix to be brought into the cache; changes no value.

    The row may be one that is not there: a hint reads nothing.
    """
    address = matrix.ctypes.data + row * matrix.strides[0]
    for offset in range(0, matrix.strides[0], CACHE_LINE_BYTES):
        prefetch_line(address + offset)
