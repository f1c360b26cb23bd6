"""The instructions that add up the pulls of a point's neighbours, 16 of them at a time.

Written out for the compiler below. Of a loop over neighbours it makes vectors for whole groups of them and visits what
is left one by one, which of 44 neighbours takes as long again; and it gathers each coordinate by itself.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from scalemani.kernels.machine.lane_instructions import ITEM_BYTES, LANES_AT_ONCE, spread
from scalemani.kernels.machine.plain import in_plain_mode, numbers_at

PLACE_BYTES = 2 * ITEM_BYTES  # of a point: two whole numbers
REORDER = ("reassoc", "contract", "nsz")  # terms are added as suits the machine, in the same order at each call

_COUNT, _PLACE, _SINGLE = ir.IntType(32), ir.IntType(64), ir.FloatType()
_COUNTS, _PLACES, _SINGLES, _MASK = (
    ir.VectorType(element, LANES_AT_ONCE) for element in (_COUNT, _PLACE, _SINGLE, ir.IntType(1))
)
_POINTERS = ir.VectorType(_PLACE.as_pointer(), LANES_AT_ONCE)


def reference_sum_pulls(
    columns: int, weights: int, count: int, places: int, own: tuple[int, int], square: float
) -> tuple[float, float]:
    """Return the sum of w_m (x - x_m) / (1 + s |x - x_m|^2) over some neighbours m, along both axes, two float32.

    Parameters
    ----------
    columns, weights : addresses of the neighbours' rows, `count` uint32, and of their w_m, `count` float32
    places : address of the places x_m of all points, (N, 2) int32; their differences are int32 too
    own : two int, the place x of the point
    square : s, float32: the square of what one stands for in a place
    """
    single = np.float32
    rows = numbers_at(columns, (count,), np.uint32)
    others = [numbers_at(places + PLACE_BYTES * int(row), (2,), np.int32) for row in rows]
    apart = (np.array(own, np.int32) - np.array(others, np.int32).reshape(-1, 2)).astype(single)
    pulls = numbers_at(weights, (count,), single) / (1 + single(square) * (apart**2).sum(axis=1, dtype=single))
    along_x, along_y = pulls @ apart
    return along_x, along_y


class _Emitter:
    """Emits the instructions for up to 16 neighbours of a point."""

    def __init__(self, builder: Any, arguments: Any):
        self.builder = builder
        self.columns, self.weights, self.count, self.places, own, self.square = arguments
        self.own = [spread(builder, builder.extract_value(own, axis)) for axis in range(2)]

    def read(self, start: Any, first: Any, vector: Any, mask: Any) -> Any:
        """Return the items from the `first` of an array on; of lanes outside of the mask nothing is read, but zero."""
        address = self.builder.add(start, self.builder.mul(first, _PLACE(ITEM_BYTES)))
        place = self.builder.inttoptr(address, vector.as_pointer())
        kind = "i32" if vector is _COUNTS else "f32"
        signature = ir.FunctionType(vector, [place.type, _COUNT, _MASK, vector])
        load = self.builder.module.declare_intrinsic(f"llvm.masked.load.v{LANES_AT_ONCE}{kind}.p0", (), signature)
        return self.builder.call(load, [place, _COUNT(ITEM_BYTES), mask, ir.Constant(vector, None)])

    def gathered(self, rows: Any, mask: Any) -> list[Any]:
        """Return both coordinates of the places of some rows: one gathering reads both."""
        builder = self.builder
        offsets = builder.mul(builder.zext(rows, _PLACES), _alike(_PLACES, PLACE_BYTES))
        pointers = builder.inttoptr(builder.add(spread(builder, self.places), offsets), _POINTERS)
        signature = ir.FunctionType(_PLACES, [_POINTERS, _COUNT, _MASK, _PLACES])
        name = f"llvm.masked.gather.v{LANES_AT_ONCE}i64.v{LANES_AT_ONCE}p0"
        gather = builder.module.declare_intrinsic(name, (), signature)
        found = builder.call(gather, [pointers, _COUNT(ITEM_BYTES), mask, ir.Constant(_PLACES, None)])
        both = builder.bitcast(found, ir.VectorType(_COUNT, 2 * LANES_AT_ONCE))
        lanes = [ir.Constant(_COUNTS, list(range(axis, 2 * LANES_AT_ONCE, 2))) for axis in range(2)]
        return [builder.shuffle_vector(both, both, each) for each in lanes]

    def added(self, first: Any, mask: Any, sums: list[Any]) -> list[Any]:
        """Return sums with the terms of the neighbours from the `first` on, of lanes under a mask."""
        builder = self.builder
        rows, weights = self.read(self.columns, first, _COUNTS, mask), self.read(self.weights, first, _SINGLES, mask)
        places = zip(self.own, self.gathered(rows, mask), strict=True)
        apart = [builder.sitofp(builder.sub(own, other), _SINGLES) for own, other in places]
        squares = builder.fadd(*(builder.fmul(one, one, flags=REORDER) for one in apart), flags=REORDER)
        scaled = builder.fmul(squares, spread(builder, self.square), flags=REORDER)
        pulls = builder.fdiv(weights, builder.fadd(_alike(_SINGLES, 1.0), scaled, flags=REORDER))
        terms = [builder.fmul(pulls, one, flags=REORDER) for one in apart]
        return [builder.fadd(total, term, flags=REORDER) for total, term in zip(sums, terms, strict=True)]

    def total(self) -> list[Any]:
        """Return the sums over all neighbours: whole groups of 16, then those that are left under a mask."""
        builder, before = self.builder, self.builder.block
        names = ("test", "group", "rest", "part", "after")
        test, group, rest, part, after = (builder.append_basic_block(f"pulls.{name}") for name in names)
        builder.branch(test)
        builder.position_at_end(test)
        first, sums = builder.phi(_PLACE), [builder.phi(_SINGLES) for _ in range(2)]
        following = builder.add(first, _PLACE(LANES_AT_ONCE))
        builder.cbranch(builder.icmp_signed("<=", following, self.count), group, rest)

        builder.position_at_end(group)
        added = self.added(first, _alike(_MASK, 1), sums)
        builder.branch(test)
        none = ir.Constant(_SINGLES, None)
        for phi, begun, later in zip((first, *sums), (_PLACE(0), none, none), (following, *added), strict=True):
            phi.add_incoming(begun, before)
            phi.add_incoming(later, group)

        builder.position_at_end(rest)
        builder.cbranch(builder.icmp_signed("<", first, self.count), part, after)
        builder.position_at_end(part)
        left = spread(builder, builder.trunc(builder.sub(self.count, first), _COUNT))
        mask = builder.icmp_signed("<", ir.Constant(_COUNTS, list(range(LANES_AT_ONCE))), left)
        with_rest = self.added(first, mask, sums)
        builder.branch(after)

        builder.position_at_end(after)
        totals = [builder.phi(_SINGLES) for _ in range(2)]
        for phi, whole, masked in zip(totals, sums, with_rest, strict=True):
            phi.add_incoming(whole, rest)
            phi.add_incoming(masked, part)
        return [self.over_lanes(phi) for phi in totals]

    def over_lanes(self, vector: Any) -> Any:
        """Return the sum of all lanes."""
        signature = ir.FunctionType(_SINGLE, [_SINGLE, _SINGLES])
        name = f"llvm.vector.reduce.fadd.v{LANES_AT_ONCE}f32"
        add = self.builder.module.declare_intrinsic(name, (), signature)
        return self.builder.call(add, [_SINGLE(0.0), vector], fastmath=REORDER)


def _alike(vector: Any, value: float) -> Any:
    return ir.Constant(vector, [value] * LANES_AT_ONCE)


@in_plain_mode(reference_sum_pulls)
@intrinsic
def sum_pulls(typing_context: Any, columns: Any, weights: Any, count: Any, places: Any, own: Any, square: Any) -> Any:
    """Emit what `reference_sum_pulls` does."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_tuple(builder, signature.return_type, _Emitter(builder, arguments).total())

    address, two = numba.types.int64, numba.types.UniTuple
    returned = two(numba.types.float32, 2)
    return returned(address, address, address, address, two(numba.types.int32, 2), numba.types.float32), emit
