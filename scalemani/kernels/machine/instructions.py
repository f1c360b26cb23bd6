"""Instructions written out for the compiler: lanes moved to the front of a pool, scalars spread, rows prefetched.

Values which pass a bound, and their labels, are moved in order: the compiler makes no vector code of a loop that writes
to a place it has yet to count. Processors without such instructions move the lanes that count one by one. Hints to the
cache are for kernels that visit rows out of order: a row of neighbours is a dozen lines of cache.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numpy.typing import DTypeLike

from scalemani.kernels.machine.compile import compiled, emitted, in_plain_mode, numbers_at

LANES_AT_ONCE = 16
ITEM_BYTES = 4  # of a value and of a label

_ADDRESS = numba.types.int64
_COUNT, _SINGLE = ir.IntType(32), ir.FloatType()

CACHE_LINE_BYTES = 64
WILL_BE_READ, KEEP_IN_ALL_LEVELS, DATA_CACHE = 0, 3, 1  # arguments of llvm.prefetch


def reference_compress_lanes(values: int, labels: int, bound: float, values_to: int, labels_to: int) -> int:
    """Write those of 16 values that are not above a bound to the front of another place, in order; their labels too.

    Nothing is above infinity, and NaN is above all. All 16 places may be written: those behind the ones that count mean
    nothing. Return how many count.

    Parameters
    ----------
    values, labels : addresses of 16 float32 and of 16 int32
    values_to, labels_to : addresses with room for 16 of each, which may be those of `values` and `labels` or lie before
    """
    read, named = (
        numbers_at(place, (LANES_AT_ONCE,), kind).copy() for place, kind in ((values, np.float32), (labels, np.int32))
    )
    within = read <= np.float32(bound)
    count = int(within.sum())
    for place, items, nothing in ((values_to, read, np.nan), (labels_to, named, -1)):
        written = numbers_at(place, (LANES_AT_ONCE,), items.dtype)
        written[:count], written[count:] = items[within], nothing
    return count


def has_features(*names: str) -> bool:
    """Return whether code is compiled for a processor with features as LLVM names them, such as "+avx512f"."""
    features = vars(numba.config)["CPU_FEATURES"]
    there = llvmlite.binding.get_host_cpu_features().flatten() if features is None else features
    return set(names) <= set(there.split(","))


def by_one_instruction() -> bool:
    """Return whether code is compiled for a processor that moves lanes under a mask at once, as those of AVX-512 do."""
    return has_features("+avx512f")


@in_plain_mode(reference_compress_lanes)
@emitted(numba.types.int64, _ADDRESS, _ADDRESS, numba.types.float32, _ADDRESS, _ADDRESS)
def compress_lanes(builder: Any, values: Any, labels: Any, bound: Any, values_to: Any, labels_to: Any) -> Any:
    """Emit what `reference_compress_lanes` does: as two vector instructions, or lane by lane of those that count."""
    return emit_compression(builder, by_one_instruction(), (values, labels, bound, values_to, labels_to))


def emit_compression(builder: Any, at_once: bool, arguments: tuple[Any, ...]) -> Any:
    """Emit what `reference_compress_lanes` does of its arguments, for a processor that moves lanes at once, or not."""
    values, labels, bound, values_to, labels_to = arguments
    single, count = (ir.VectorType(element, LANES_AT_ONCE).as_pointer() for element in (_SINGLE, _COUNT))
    read = builder.load(builder.inttoptr(values, single), align=ITEM_BYTES)
    mask = builder.fcmp_ordered("<=", read, spread(builder, bound))
    bits = builder.bitcast(mask, ir.IntType(LANES_AT_ONCE))
    n_within = builder.zext(builder.ctpop(bits), ir.IntType(64))
    if at_once:
        named = builder.load(builder.inttoptr(labels, count), align=ITEM_BYTES)
        builder.store(_compressed(builder, read, mask), builder.inttoptr(values_to, single), align=ITEM_BYTES)
        builder.store(_compressed(builder, named, mask), builder.inttoptr(labels_to, count), align=ITEM_BYTES)
    else:
        _move_by_lane(builder, bits, n_within, ((values, values_to), (labels, labels_to)))
    return n_within


def _move_by_lane(builder: Any, bits: Any, n_set: Any, moves: tuple[tuple[Any, Any], ...]) -> None:
    """Move items of the lanes whose bits are set, of so many, to the front of other places, lowest lane first.

    A compiler would move all lanes one by one where there is no such instruction; mostly none or few of them count.
    """
    item, width = _COUNT.as_pointer(), place_number(ITEM_BYTES)

    def move_lowest(place: Any, carried: list[Any]) -> list[Any]:
        (left,) = carried
        lane = builder.zext(builder.cttz(left, ir.Constant(ir.IntType(1), 1)), place.type)
        for source, target in moves:
            read_at, write_at = (
                builder.inttoptr(builder.add(start, builder.mul(number, width)), item)
                for start, number in ((source, lane), (target, place))
            )
            builder.store(builder.load(read_at, align=ITEM_BYTES), write_at, align=ITEM_BYTES)
        return [builder.and_(left, builder.sub(left, ir.Constant(left.type, 1)))]

    with builder.if_then(builder.icmp_unsigned("!=", n_set, place_number(0))):
        emit_loop(builder, n_set, [bits], move_lowest)


def _compressed(builder: Any, vector: Any, mask: Any) -> Any:
    """Return the lanes of `vector` under `mask`, moved to its front; what stands behind them means nothing."""
    element = "f32" if isinstance(vector.type.element, ir.FloatType) else "i32"
    name = f"llvm.experimental.vector.compress.v{LANES_AT_ONCE}{element}"
    return call_llvm(builder, name, vector.type, vector, mask, ir.Constant(vector.type, ir.Undefined))


def call_llvm(builder: Any, name: str, returned: Any, *arguments: Any) -> Any:
    """Call an intrinsic function of LLVM, which returns a value of a type."""
    kind = ir.FunctionType(returned, [argument.type for argument in arguments])
    return builder.call(builder.module.declare_intrinsic(name, (), kind), arguments)


def emit_loop(builder: Any, count: Any, begun: Sequence[Any], step: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
    """Emit a loop over the numbers below `count`, at least one; return the values that are carried out of it.

    Parameters
    ----------
    begun : the values that are carried into the loop
    step : emits what is done with a number and the values so far, and returns these after it
    """
    before, loop, after = builder.block, *(builder.append_basic_block(f"terms.{name}") for name in ("add", "end"))
    builder.branch(loop)
    builder.position_at_end(loop)
    number, carried = builder.phi(count.type), [builder.phi(value.type) for value in begun]
    added = step(number, carried)
    following = builder.add(number, place_number(1))
    for phi, first, later in zip((number, *carried), (place_number(0), *begun), (following, *added), strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, count), loop, after)
    builder.position_at_end(after)
    return added


def spread(builder: Any, scalar: Any, n_lanes: int = LANES_AT_ONCE) -> Any:
    """Return a vector with `scalar` in every lane."""
    vector, lane = ir.VectorType(scalar.type, n_lanes), ir.IntType(32)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(lane, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(lane, n_lanes), None))


def place_number(value: int) -> Any:
    """Return a constant of 64 bits: an address, or a number that is added to one."""
    return ir.Constant(ir.IntType(64), value)


def reference_count_bits(word: int) -> int:
    """Return how many bits of a word are set."""
    return int(word).bit_count()


@in_plain_mode(reference_count_bits)
@emitted(numba.types.int64, numba.types.uint64)
def count_bits(builder: Any, word: Any) -> Any:
    """Emit what `reference_count_bits` does, of an unsigned word of 64 bits."""
    return builder.ctpop(word)


def ignore_hint(*place: Any) -> None:
    """Do nothing, as a hint may."""


@in_plain_mode(ignore_hint)
@emitted(numba.types.void, numba.types.intp)
def prefetch_line(builder: Any, address: Any) -> None:
    """Emit the hint that the cache line at an address, in bytes, will be read."""
    pointer = ir.IntType(8).as_pointer()
    prefetch = builder.module.declare_intrinsic(
        "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, _COUNT, _COUNT, _COUNT])
    )
    hints = [_COUNT(WILL_BE_READ), _COUNT(KEEP_IN_ALL_LEVELS), _COUNT(DATA_CACHE)]
    builder.call(prefetch, [builder.inttoptr(address, pointer), *hints])


@in_plain_mode(ignore_hint)
@compiled
def prefetch_row(matrix: np.ndarray, row: int) -> None:
    """Ask for a row of a C-contiguous matrix to be brought into the cache; changes no value.

    The row may be one that is not there: a hint reads nothing.
    """
    address = matrix.ctypes.data + row * matrix.strides[0]
    for offset in range(0, matrix.strides[0], CACHE_LINE_BYTES):
        prefetch_line(address + offset)


def reference_lowest_bit(word: int) -> int:
    """Return the number of the lowest bit of a word that is set."""
    return (int(word) & -int(word)).bit_length() - 1


@in_plain_mode(reference_lowest_bit)
@emitted(numba.types.int64, numba.types.uint64)
def lowest_bit(builder: Any, word: Any) -> Any:
    """Emit what `reference_lowest_bit` does."""
    return builder.cttz(word, ir.Constant(ir.IntType(1), 1))


NEAR_LANES = 4 * LANES_AT_ONCE


def reference_near_lanes(sums: int, reaches: int, reach: float, least: float, dtype: DTypeLike) -> np.uint64:
    """Return which of 64 sums, with the greater of a reach of theirs and of one for all, are not below `least`: bits.

    Parameters
    ----------
    sums, reaches : addresses of 64 numbers of a dtype
    """
    read, lane_reaches = (numbers_at(place, (NEAR_LANES,), dtype) for place in (sums, reaches))
    one = np.dtype(dtype).type
    near = read + np.maximum(lane_reaches, one(reach)) >= one(least)
    return (near.astype(np.uint64) << np.arange(NEAR_LANES, dtype=np.uint64)).sum(dtype=np.uint64)


@in_plain_mode(functools.partial(reference_near_lanes, dtype=np.int32))
@emitted(numba.types.uint64, _ADDRESS, _ADDRESS, numba.types.int32, numba.types.int32)
def near_integers(builder: Any, sums: Any, reaches: Any, reach: Any, least: Any) -> Any:
    """Emit what `reference_near_lanes` does, of int32."""
    return _near_lanes(builder, sums, reaches, reach, least, builder.icmp_signed, builder.add)


@in_plain_mode(functools.partial(reference_near_lanes, dtype=np.float32))
@emitted(numba.types.uint64, _ADDRESS, _ADDRESS, numba.types.float32, numba.types.float32)
def near_singles(builder: Any, sums: Any, reaches: Any, reach: Any, least: Any) -> Any:
    """Emit what `reference_near_lanes` does, of float32."""
    return _near_lanes(builder, sums, reaches, reach, least, builder.fcmp_ordered, builder.fadd)


def _near_lanes(
    builder: Any, sums: Any, reaches: Any, reach: Any, least: Any, compare: Callable[..., Any], add: Callable[..., Any]
) -> Any:
    vector, bits = ir.VectorType(reach.type, LANES_AT_ONCE).as_pointer(), place_number(0)
    for_all, lowest = spread(builder, reach), spread(builder, least)
    for number in range(NEAR_LANES // LANES_AT_ONCE):
        offset = place_number(number * LANES_AT_ONCE * ITEM_BYTES)
        read, lane_reaches = (
            builder.load(builder.inttoptr(builder.add(place, offset), vector), align=ITEM_BYTES)
            for place in (sums, reaches)
        )
        greater = builder.select(compare(">", lane_reaches, for_all), lane_reaches, for_all)
        near = builder.bitcast(compare(">=", add(read, greater), lowest), ir.IntType(LANES_AT_ONCE))
        bits = builder.or_(bits, builder.shl(builder.zext(near, bits.type), place_number(number * LANES_AT_ONCE)))
    return bits
