"""The instructions that move values which pass a bound, and their labels, to the front of a pool, in order.

Written out for the compiler below, since it makes no vector code of a loop that writes to a place it has yet to count.
"""

from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic

LANES_AT_ONCE = 16
ITEM_BYTES = 4  # of a value and of a label

_COUNT, _SINGLE = ir.IntType(32), ir.FloatType()
_MASK = ir.VectorType(ir.IntType(1), LANES_AT_ONCE)


def _compressed(builder: Any, vector: Any, mask: Any) -> Any:
    """Return the lanes of `vector` under `mask`, moved to its front; what stands behind them means nothing."""
    element = "f32" if isinstance(vector.type.element, ir.FloatType) else "i32"
    compress = builder.module.declare_intrinsic(
        f"llvm.experimental.vector.compress.v{LANES_AT_ONCE}{element}",
        (),
        ir.FunctionType(vector.type, [vector.type, _MASK, vector.type]),
    )
    return builder.call(compress, [vector, mask, ir.Constant(vector.type, ir.Undefined)])


def _spread(builder: Any, scalar: Any) -> Any:
    """Return a vector with `scalar` in every lane."""
    vector = ir.VectorType(scalar.type, LANES_AT_ONCE)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_COUNT, 0))
    lanes = ir.Constant(ir.VectorType(_COUNT, LANES_AT_ONCE), [0] * LANES_AT_ONCE)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), lanes)


def _type_compress_lanes(
    typing_context: Any, values: Any, labels: Any, bound: Any, values_to: Any, labels_to: Any
) -> Any:
    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, labels, bound, values_to, labels_to = arguments
        single, count = (ir.VectorType(element, LANES_AT_ONCE).as_pointer() for element in (_SINGLE, _COUNT))
        read = builder.load(builder.inttoptr(values, single), align=ITEM_BYTES)
        named = builder.load(builder.inttoptr(labels, count), align=ITEM_BYTES)
        mask = builder.fcmp_ordered("<=", read, _spread(builder, bound))
        builder.store(_compressed(builder, read, mask), builder.inttoptr(values_to, single), align=ITEM_BYTES)
        builder.store(_compressed(builder, named, mask), builder.inttoptr(labels_to, count), align=ITEM_BYTES)
        return builder.zext(builder.ctpop(builder.bitcast(mask, ir.IntType(LANES_AT_ONCE))), ir.IntType(64))

    address = numba.types.int64
    return address(address, address, numba.types.float32, address, address), emit


# compress_lanes(values, labels, bound, values_to, labels_to): of 16 float32 values and int32 labels, named by their
# addresses, write those whose value is not above the bound to other addresses, which may be the same; return how many.
# 16 are written: those behind the ones that count mean nothing.
compress_lanes: Any = intrinsic(_type_compress_lanes)
