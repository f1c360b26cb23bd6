"""Cache hints for kernels that visit rows out of order: a row of neighbours is a dozen lines of cache."""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from scalemani.kernels.machine.compile import compiled

CACHE_LINE_BYTES = 64
WILL_BE_READ, KEEP_IN_ALL_LEVELS, DATA_CACHE = 0, 3, 1  # arguments of llvm.prefetch


def _type_prefetch_line(typing_context: Any, address: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        )
        hints = [word(WILL_BE_READ), word(KEEP_IN_ALL_LEVELS), word(DATA_CACHE)]
        builder.call(prefetch, [builder.inttoptr(arguments[0], pointer), *hints])
        return context.get_dummy_value()

    return numba.types.void(numba.types.intp), emit


prefetch_line: Any = intrinsic(_type_prefetch_line)


@compiled
def prefetch_row(matrix: np.ndarray, row: int) -> None:
    """Ask for a row of a C-contiguous matrix to be brought into cache; changes no value."""
    address = matrix.ctypes.data + row * matrix.strides[0]
    for offset in range(0, matrix.strides[0], CACHE_LINE_BYTES):
        prefetch_line(address + offset)
