"""Products of rows of one-byte integers, exactly: by tiles or by lanes of four terms, where a processor has them.

Sums of integers are exact in any order, so what is returned depends on neither processor nor shape. A tile is 16 rows
of 64 terms, and one instruction multiplies two of them (AMX). A lane takes the products of four terms of 16 rows with
four of another row and adds them to 16 sums (AVX-512 VNNI). Other processors multiply in float32, in which these sums
are exact too.

Both instructions multiply bytes without a sign by bytes with one: 128 is added to the former, and sums begin with what
this adds, less.
"""

import ctypes
import functools
import sys
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir

from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.machine.compile import PLAIN, compiled, emitted, in_plain_mode, numbers_at
from scalemani.kernels.machine.instructions import (
    ITEM_BYTES,
    LANES_AT_ONCE,
    call_llvm,
    emit_loop,
    has_features,
    place_number,
    spread,
)

TERMS_OF_LANE = 4  # that one instruction multiplies and adds
PANEL_ROWS = 16  # whose sums are the lanes of a register, and a side of a tile
TILE_TERMS = 64
LEAST_TERMS = 128
BLOCK_ROWS = 32  # of both sides, whose products are formed together: two panels
WHOLE_ROWS = 64  # a multiple of which all tables have
ROWS_AT_ONCE = 8  # whose sums with two panels are in registers together
OFFSET = 128  # of a byte without a sign
EXACT_TERMS = 1024  # whose products sum to less than 2**24, below which float32 holds every integer
MOST_STEPS = 127
LONGEST = 46_000.0  # steps of a row: a product of two is less than 2**31
CLIPPED_ROWS = 0.01  # with the largest coordinates: one far row must not make the steps of all others long

# Of Linux: a process asks for the registers of tiles before it uses them.
ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18
CONFIG_BYTES, PALETTE, N_TILES, COLUMNS_AT, ROWS_AT = 64, 1, 8, 16, 48

_SUM, _BYTE, _NOTHING = ir.IntType(32), ir.IntType(8), ir.VoidType()
_LANES = ir.VectorType(_SUM, LANES_AT_ONCE)
_PLACE = _BYTE.as_pointer()


def compiles_tiles() -> bool:
    """Return whether code is compiled for a processor that multiplies tiles."""
    return has_features("+avx512f", "+amx-tile", "+amx-int8")


@functools.cache
def has_lanes() -> bool:
    """Return whether code is compiled for a processor that multiplies four bytes of a lane."""
    return not PLAIN and has_features("+avx512f", "+avx512vnni")


@functools.cache
def has_tiles() -> bool:
    """Return whether code is compiled for a processor that multiplies tiles, and the system permits their registers."""
    if PLAIN or sys.platform != "linux" or not compiles_tiles():
        return False
    return ctypes.CDLL(None).syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0


def uses_tiles(n_terms: int) -> bool:
    """Return whether products of so many terms are quicker by tiles: to store a tile takes as long as some terms."""
    return n_terms > LEAST_TERMS and has_tiles()


def has_byte_products() -> bool:
    """Return whether products of bytes are quicker than those in float32."""
    return has_tiles() or has_lanes()


def step_of_rows(vectors: np.ndarray, longest: float = LONGEST) -> float:
    """Return a step in which the coordinates of all but a few far rows are at most 127, and their lengths `longest`.

    Parameters
    ----------
    vectors : (n, D) float32, n >= 1
    """
    largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
    usual = np.partition(largest, -1 - int(CLIPPED_ROWS * len(largest)))[-1 - int(CLIPPED_ROWS * len(largest))]
    return max(float(usual) / MOST_STEPS, float(usual) * np.sqrt(vectors.shape[1]) / longest, np.finfo(np.float32).tiny)


class ByteRows(NamedTuple):
    """Rows of bytes as both sides of products: n rows of D terms, with zeros behind them to a multiple of 64.

    Both ways to multiply by an instruction share the fields; without one there are no panels.
    """

    count: int
    rows: np.ndarray  # (n or more, D or more) uint8, 128 added
    panels: np.ndarray  # (p, terms / 4, 16) int32: of 16 rows four terms, then the next four, and so on
    starts: np.ndarray  # (n or more,) int32, with which the sums of others with a row begin

    def part(self, rows: slice) -> "ByteRows":
        """Return consecutive rows, from a multiple of 64 on."""
        stop = -(-rows.stop // WHOLE_ROWS) * WHOLE_ROWS
        panels = self.panels[rows.start // PANEL_ROWS : stop // PANEL_ROWS]
        count = min(rows.stop, self.count) - rows.start
        return ByteRows(count, self.rows[rows.start : stop], panels, self.starts[rows.start : stop])


def whole_terms(n_terms: int) -> int:
    """Return how many terms rows of so many are multiplied with, zeros among them."""
    multiple = TILE_TERMS if uses_tiles(n_terms) else TERMS_OF_LANE
    return -(-n_terms // multiple) * multiple


def in_blocks(rows: np.ndarray, n_terms: int | None = None) -> np.ndarray:
    """Return rows (n,) or (n, D) with zeros behind them to whole blocks, and behind their terms to `n_terms`."""
    shape = (-(-len(rows) // WHOLE_ROWS) * WHOLE_ROWS, *(n_terms or width for width in rows.shape[1:]))
    if shape == rows.shape:
        return rows
    padded = np.zeros(shape, rows.dtype)
    padded[tuple(slice(length) for length in rows.shape)] = rows
    return padded


def byte_rows(codes: np.ndarray, begun: np.ndarray | None = None) -> ByteRows:
    """Return rows (n, D) int8 as `multiply_bytes` takes them.

    Parameters
    ----------
    begun : (n or more,) int32 in whole blocks, with which sums of products begin; default zeros
    """
    signed = in_blocks(codes, whole_terms(codes.shape[1]))
    rows = signed.view(np.uint8) ^ np.uint8(OFFSET)
    starts = np.zeros(len(signed), np.int32) if begun is None else begun
    if not has_byte_products():
        return ByteRows(len(codes), rows, np.empty((0, 0, PANEL_ROWS), np.int32), starts)
    groups = signed.view(np.int32).reshape(len(signed) // PANEL_ROWS, PANEL_ROWS, signed.shape[1] // TERMS_OF_LANE)
    panels = np.ascontiguousarray(groups.transpose(0, 2, 1))
    return ByteRows(len(codes), rows, panels, starts - np.int32(OFFSET) * signed.sum(axis=1, dtype=np.int32))


def multiply_bytes(rows: ByteRows, others: ByteRows) -> np.ndarray:
    """Return the products of n rows with m others, of at most 2**31, added to what they begin with.

    Returns
    -------
    (n, m or more) int32, C-contiguous; what stands behind the m products of a row means nothing
    """
    if not has_byte_products():
        signed = (np.subtract(side.rows, np.float32(OFFSET)) for side in (rows, others))
        return (multiplied_in_float32(*signed) + others.starts)[: rows.count]
    products = np.empty((len(rows.rows), len(others.starts)), np.int32)
    multiply_blocks(rows.rows, others.panels, others.starts, products, uses_tiles(rows.rows.shape[1]))
    return products[: rows.count]


def multiplied_in_float32(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the products (n, m) int32 of rows (n, D) and (m, D) float32 of integers up to 127."""
    products = np.zeros((len(rows), len(others)), np.int32)
    for terms in slices(rows.shape[1], EXACT_TERMS):
        products += (rows[:, terms] @ others[:, terms].T).astype(np.int32)
    return products


def plain_multiply_block(rows: int, panels: int, n_groups: int, starts: int, products: int, stride: int) -> None:
    """Write the products of 32 rows with those of two panels.

    Parameters
    ----------
    rows : int
        Address of 32 rows of uint8, one behind the other.
    panels : int
        Address of two panels, one behind the other, of `n_groups` times 16 rows of four int8.
    n_groups : int
        Groups of four terms of a row, at least 1; of tiles a multiple of 16.
    starts : int
        Address of 32 int32, with which the sums of a row of the panels begin.
    products : int
        Address to which the first sum is written: the 32 of a row side by side, those of the next `stride` bytes on.
    """
    terms = numbers_at(rows, (BLOCK_ROWS, n_groups * TERMS_OF_LANE), np.uint8)
    others = numbers_at(panels, (2, n_groups, PANEL_ROWS, TERMS_OF_LANE), np.int8).transpose(0, 2, 1, 3)
    sums = terms.astype(np.int32) @ others.reshape(BLOCK_ROWS, -1).astype(np.int32).T
    written = numbers_at(products, (BLOCK_ROWS, BLOCK_ROWS), np.int32, (stride, ITEM_BYTES))
    written[...] = numbers_at(starts, (BLOCK_ROWS,), np.int32) + sums


_ADDRESSES = [numba.types.int64] * 6


@in_plain_mode(plain_multiply_block)
@emitted(numba.types.void, *_ADDRESSES)
def multiply_block_by_lanes(
    builder: Any, rows: Any, panels: Any, n_groups: Any, starts: Any, products: Any, stride: Any
) -> None:
    """Emit what `plain_multiply_block` does: 16 sums of 16 lanes in registers, four terms of each an instruction."""
    row_bytes = builder.mul(n_groups, place_number(TERMS_OF_LANE))
    panel_bytes = builder.mul(n_groups, place_number(ITEM_BYTES * PANEL_ROWS))
    sides = [panels, builder.add(panels, panel_bytes)]
    begun = [_load(builder, starts, place_number(ITEM_BYTES * PANEL_ROWS * side), _LANES) for side in range(2)]
    for first in range(0, BLOCK_ROWS, ROWS_AT_ONCE):
        of_rows = [builder.add(rows, builder.mul(row_bytes, place_number(first + row))) for row in range(ROWS_AT_ONCE)]

        def add_products(group: Any, sums: list[Any], of_rows: list[Any] = of_rows) -> list[Any]:
            place = builder.mul(group, place_number(ITEM_BYTES * PANEL_ROWS))
            lanes = [_load(builder, side, place, _LANES) for side in sides]
            offset, name, added = builder.mul(group, place_number(TERMS_OF_LANE)), "llvm.x86.avx512.vpdpbusd.512", []
            for row, start in enumerate(of_rows):
                terms = spread(builder, _load(builder, start, offset, _SUM))
                # To each sum, the products of four bytes without and four with a sign.
                added += [
                    call_llvm(builder, name, _LANES, sums[2 * row + side], terms, lanes[side]) for side in range(2)
                ]
            return added

        sums = emit_loop(builder, n_groups, begun * ROWS_AT_ONCE, add_products)
        for number, total in enumerate(sums):
            row, side = divmod(number, 2)
            place = builder.add(
                builder.mul(stride, place_number(first + row)), place_number(ITEM_BYTES * PANEL_ROWS * side)
            )
            builder.store(total, builder.inttoptr(builder.add(products, place), _LANES.as_pointer()), align=ITEM_BYTES)


@in_plain_mode(plain_multiply_block)
@emitted(numba.types.void, *_ADDRESSES)
def multiply_block_by_tiles(
    builder: Any, rows: Any, panels: Any, n_groups: Any, starts: Any, products: Any, stride: Any
) -> None:
    """Emit what `plain_multiply_block` does, by tiles: sums in 0 to 3, rows in 4 and 5, panels in 6 and 7."""
    row_bytes, line = builder.mul(n_groups, place_number(TERMS_OF_LANE)), place_number(TILE_TERMS)
    panel_bytes = builder.mul(n_groups, place_number(ITEM_BYTES * PANEL_ROWS))
    lower, sides = builder.mul(row_bytes, place_number(PANEL_ROWS)), [panels, builder.add(panels, panel_bytes)]
    for number in range(4):  # all rows of a tile of sums begin with the same line
        place = builder.add(starts, place_number(ITEM_BYTES * PANEL_ROWS * (number % 2)))
        _on_tile(builder, "tileloadd64", number, place, place_number(0))

    def add_products(tile: Any, _: list[Any]) -> list[Any]:
        place = builder.add(rows, builder.mul(tile, line))
        _on_tile(builder, "tileloadd64", 4, place, row_bytes)
        along = builder.mul(tile, place_number(PANEL_ROWS * TILE_TERMS))
        for side in range(2):
            _on_tile(builder, "tileloadd64", 6 + side, builder.add(sides[side], along), line)
        _multiply_tiles(builder, 0, 4, 6)
        _multiply_tiles(builder, 1, 4, 7)
        _on_tile(builder, "tileloadd64", 5, builder.add(place, lower), row_bytes)
        _multiply_tiles(builder, 2, 5, 6)
        _multiply_tiles(builder, 3, 5, 7)
        return []

    emit_loop(builder, builder.udiv(n_groups, place_number(TILE_TERMS // TERMS_OF_LANE)), [], add_products)
    for number in range(4):
        below, right = divmod(number, 2)
        place = builder.mul(stride, place_number(PANEL_ROWS * below))
        place = builder.add(place, place_number(ITEM_BYTES * PANEL_ROWS * right))
        _on_tile(builder, "tilestored64", number, builder.add(products, place), stride)


@in_plain_mode(lambda config: None)
@emitted(numba.types.void, numba.types.int64)
def open_tiles(builder: Any, config: Any) -> None:
    """Emit the instruction that shapes the registers of tiles, by an address of `TILE_CONFIG`."""
    _call(builder, "llvm.x86.ldtilecfg", builder.inttoptr(config, _PLACE))


@in_plain_mode(lambda: None)
@emitted(numba.types.void)
def close_tiles(builder: Any) -> None:
    """Emit the instruction that gives the registers of tiles back: switches between threads save them until then."""
    _call(builder, "llvm.x86.tilerelease")


def _tile_config() -> np.ndarray:
    """Return what shapes eight tiles of 16 rows of 64 bytes, as the processor reads it."""
    config = np.zeros(CONFIG_BYTES, np.uint8)
    config[0] = PALETTE
    config[COLUMNS_AT:].view(np.uint16)[:N_TILES] = TILE_TERMS
    config[ROWS_AT:][:N_TILES] = PANEL_ROWS
    return config


TILE_CONFIG = _tile_config()


def _on_tile(builder: Any, name: str, tile: int, place: Any, stride: Any) -> None:
    """Load a tile from an address, lines `stride` bytes apart, or store it there."""
    _call(builder, f"llvm.x86.{name}", _BYTE(tile), builder.inttoptr(place, _PLACE), stride)


def _multiply_tiles(builder: Any, sums: int, rows: int, panel: int) -> None:
    """Add the products of a tile of bytes without a sign and one of bytes with one."""
    _call(builder, "llvm.x86.tdpbusd", _BYTE(sums), _BYTE(rows), _BYTE(panel))


def _call(builder: Any, name: str, *arguments: Any) -> None:
    """Call an instruction on tiles; where there are none, what calls it is never reached."""
    if not compiles_tiles():
        return
    kind = ir.FunctionType(_NOTHING, [argument.type for argument in arguments])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(function, arguments)


def _load(builder: Any, address: Any, offset: Any, kind: Any) -> Any:
    """Return what lies so many bytes behind an address."""
    return builder.load(builder.inttoptr(builder.add(address, offset), kind.as_pointer()), align=1)


@compiled
def multiply_blocks(
    rows: np.ndarray, panels: np.ndarray, starts: np.ndarray, products: np.ndarray, by_tiles: bool
) -> None:
    """Write the products of rows with panels.

    Parameters
    ----------
    rows : (n, D) uint8, n a multiple of 32, C-contiguous
    panels : (p, D / 4, 16) int32, p even
    starts : (16 p,) int32
    products : (n, 16 p or more) int32
    by_tiles : or by lanes; D is a multiple of 64 then
    """
    if by_tiles:
        config = TILE_CONFIG.copy()
        open_tiles(config.ctypes.data)
    n_groups, stride = panels.shape[1], products.strides[0]
    for panel in range(0, panels.shape[0], 2):
        panels_at = panels.ctypes.data + panel * panels.strides[0]
        starts_at = starts.ctypes.data + ITEM_BYTES * PANEL_ROWS * panel
        for row in range(0, rows.shape[0], BLOCK_ROWS):
            rows_at = rows.ctypes.data + row * rows.strides[0]
            products_at = products.ctypes.data + row * stride + ITEM_BYTES * PANEL_ROWS * panel
            if by_tiles:
                multiply_block_by_tiles(rows_at, panels_at, n_groups, starts_at, products_at, stride)
            else:
                multiply_block_by_lanes(rows_at, panels_at, n_groups, starts_at, products_at, stride)
    if by_tiles:
        close_tiles()
