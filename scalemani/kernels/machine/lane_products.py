"""Products of a few short rows with a strip of others, sums in registers from the first term to the last.

Written out for the compiler below: of a loop over lanes within a loop over terms it keeps no sum in a register.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from scalemani.kernels.machine.lane_instructions import ITEM_BYTES, LANES_AT_ONCE, by_one_instruction, spread
from scalemani.kernels.machine.plain import in_plain_mode, numbers_at

PANEL_ROWS = 128  # eight strips
# Sums of as many rows as leave registers for a strip and a factor: 32 registers of 16 lanes, or 16 of eight.
ROWS_AT_ONCE = 12 if by_one_instruction() else 6

_PLACE, _SINGLE = ir.IntType(64), ir.FloatType()
_LANES = ir.VectorType(_SINGLE, LANES_AT_ONCE)


def plain_multiply_strip(rows: int, bases: int, n_terms: int, strip: int, norms: int, sums: int) -> None:
    """Write the sums of products of some rows with those of a strip, each begun with what belongs to its two rows.

    A sum is formed term by term, in float32, so that its bits depend on its two rows alone.

    Parameters
    ----------
    rows : int
        Address of ROWS_AT_ONCE rows of `n_terms` float32, one behind the other.
    bases : int
        Address of ROWS_AT_ONCE float32, a beginning for each of these.
    n_terms : int
        Of a row, at least 1.
    strip : int
        Address of `n_terms` times 16 float32: the first term of 16 rows, then the second, and so on.
    norms : int
        Address of 16 float32, a beginning for each of these.
    sums : int
        Address to which the first sum is written: the 16 of a strip side by side, those of the next row behind room
        for PANEL_ROWS.
    """
    single = np.float32
    factors = numbers_at(rows, (ROWS_AT_ONCE, n_terms), single)
    others = numbers_at(strip, (n_terms, LANES_AT_ONCE), single)
    begun = numbers_at(bases, (ROWS_AT_ONCE, 1), single) + numbers_at(norms, (LANES_AT_ONCE,), single)
    strides = (ITEM_BYTES * PANEL_ROWS, ITEM_BYTES)
    numbers_at(sums, (ROWS_AT_ONCE, LANES_AT_ONCE), single, strides)[...] = begun + factors @ others


@in_plain_mode(plain_multiply_strip)
@intrinsic
def multiply_strip(typing_context: Any, rows: Any, bases: Any, n_terms: Any, strip: Any, norms: Any, sums: Any) -> Any:
    """Emit what `plain_multiply_strip` does, a product and its sum by one instruction where there is one."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, bases, n_terms, strip, norms, sums = arguments
        numbers = range(ROWS_AT_ONCE)
        starts = [_item(builder, rows, builder.mul(_number(i), n_terms)) for i in numbers]
        norm = builder.load(_lanes_at(builder, norms, _number(0)), align=ITEM_BYTES)
        begun = [builder.fadd(norm, spread(builder, builder.load(_item(builder, bases, _number(i))))) for i in numbers]
        before, loop, after = builder.block, *(builder.append_basic_block(f"terms.{name}") for name in ("add", "end"))
        builder.branch(loop)
        builder.position_at_end(loop)
        term, totals = builder.phi(_PLACE), [builder.phi(_LANES) for _ in numbers]
        lanes = builder.load(_lanes_at(builder, strip, builder.mul(term, _number(LANES_AT_ONCE))), align=ITEM_BYTES)
        added = []
        for start, total in zip(starts, totals, strict=True):
            factor = spread(builder, builder.load(builder.gep(start, [term])))
            added.append(_multiply_and_add(builder, factor, lanes, total))
        following = builder.add(term, _number(1))
        for phi, first, later in zip((term, *totals), (_number(0), *begun), (following, *added), strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(later, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, n_terms), loop, after)
        builder.position_at_end(after)
        for i, total in enumerate(added):
            place = _lanes_at(builder, sums, _number(i * PANEL_ROWS))
            builder.store(total, place, align=ITEM_BYTES)
        return context.get_dummy_value()

    address = numba.types.int64
    return numba.types.void(*[address] * 6), emit


def _number(value: int) -> Any:
    return ir.Constant(_PLACE, value)


def _item(builder: Any, address: Any, number: Any) -> Any:
    """Return a pointer to a numbered float32 behind an address."""
    return builder.gep(builder.inttoptr(address, _SINGLE.as_pointer()), [number])


def _lanes_at(builder: Any, address: Any, number: Any) -> Any:
    """Return a pointer to the 16 float32 from a numbered one on behind an address."""
    return builder.bitcast(_item(builder, address, number), _LANES.as_pointer())


def _multiply_and_add(builder: Any, one: Any, other: Any, total: Any) -> Any:
    """Return one * other + total, lane by lane."""
    name = f"llvm.fmuladd.v{LANES_AT_ONCE}f32"
    function = builder.module.declare_intrinsic(name, (), ir.FunctionType(_LANES, [_LANES] * 3))
    return builder.call(function, [one, other, total])
