"""Products of rows of one-byte integers, exactly: four terms by one instruction where a processor has it.

A register takes the products of four terms of 16 rows with four of another row and adds them to 16 sums, which is six
to ten times as quick as the same in float32. Sums of integers are exact in any order, so what is returned depends on
neither processor nor shape. Processors without the instruction multiply in float32, in which these sums are exact too.

The instruction multiplies bytes without a sign by bytes with one: 128 is added to the former, and sums begin with what
this adds, less.
"""

import functools
from typing import Any

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
ROWS_AT_ONCE, REGISTERS = 6, 4  # whose sums, of 16 lanes each, are in registers together
PANEL_ROWS = REGISTERS * LANES_AT_ONCE
OFFSET = 128  # of a byte without a sign
EXACT_TERMS = 1024  # whose products sum to less than 2**24, below which float32 holds every integer
MOST_STEPS = 127
LONGEST = 46_000.0  # steps of a row: a product of two is less than 2**31
CLIPPED_ROWS = 0.01  # with the largest coordinates: one far row must not make the steps of all others long

_SUM = ir.IntType(32)
_LANES = ir.VectorType(_SUM, LANES_AT_ONCE)


@functools.cache
def has_byte_products() -> bool:
    """Return whether code is compiled for a processor that has the instruction."""
    return not PLAIN and has_features("+avx512f", "+avx512vnni")


def step_of_rows(vectors: np.ndarray) -> float:
    """Return a step in which the coordinates of all but a few far rows are at most 127.

    Parameters
    ----------
    vectors : (n, D) float32, n >= 1
    """
    largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
    usual = np.partition(largest, -1 - int(CLIPPED_ROWS * len(largest)))[-1 - int(CLIPPED_ROWS * len(largest))]
    return max(float(usual) / MOST_STEPS, float(usual) * np.sqrt(vectors.shape[1]) / LONGEST, np.finfo(np.float32).tiny)


def byte_panels(rows: np.ndarray) -> np.ndarray:
    """Return rows (m, D) int8 as `multiply_bytes` takes them: of 64 rows four terms, then the next four, and so on."""
    if not has_byte_products():
        return rows.astype(np.float32)
    n_panels, n_terms = -(-len(rows) // PANEL_ROWS), -(-rows.shape[1] // TERMS_OF_LANE)
    padded = _padded(rows, n_panels * PANEL_ROWS).view(np.int32).reshape(n_panels, PANEL_ROWS, n_terms)
    panels = np.ascontiguousarray(padded.transpose(0, 2, 1))
    panels.view(np.uint8)[...] ^= OFFSET
    return panels


def multiply_bytes(rows: np.ndarray, panels: np.ndarray) -> np.ndarray:
    """Return the products of rows with the m rows of panels.

    Parameters
    ----------
    rows : (n, D) int8, of at most 2**31 as a product
    panels : from `byte_panels`

    Returns
    -------
    (n, m or more) int32, C-contiguous; what stands behind the m products of a row means nothing
    """
    if panels.dtype == np.float32:
        products = np.zeros((len(rows), len(panels)), np.int32)
        for terms in slices(rows.shape[1], EXACT_TERMS):
            products += (rows[:, terms].astype(np.float32) @ panels[:, terms].T).astype(np.int32)
        return products
    n_rows = -(-len(rows) // ROWS_AT_ONCE) * ROWS_AT_ONCE
    products = np.empty((n_rows, len(panels) * PANEL_ROWS), np.int32)
    _multiply_panels(_padded(rows, n_rows), rows.sum(axis=1, dtype=np.int32), panels, products)
    return products[: len(rows)]


def _padded(rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Return rows (n, D) int8 with zeros behind them and behind their terms, as many as groups ask for."""
    padded = np.zeros((n_rows, -(-rows.shape[1] // TERMS_OF_LANE) * TERMS_OF_LANE), np.int8)
    padded[: len(rows), : rows.shape[1]] = rows
    return padded


@compiled
def _multiply_panels(rows: np.ndarray, totals: np.ndarray, panels: np.ndarray, products: np.ndarray) -> None:
    """Write the products of rows (n, D) int8, n a multiple of ROWS_AT_ONCE, with panels (p, D / 4, 64) int32.

    Parameters
    ----------
    totals : (n or less,) int32, the sum of each row, whose others are zero
    products : (n, 64 p) int32
    """
    begun = np.zeros(rows.shape[0], np.int32)
    begun[: totals.size] = -OFFSET * totals
    for panel in range(panels.shape[0]):
        for row in range(0, rows.shape[0], ROWS_AT_ONCE):
            multiply_group(
                rows.ctypes.data + row * rows.shape[1],
                begun.ctypes.data + ITEM_BYTES * row,
                panels.shape[1],
                panels.ctypes.data + panel * panels.strides[0],
                products.ctypes.data + row * products.strides[0] + panel * ITEM_BYTES * PANEL_ROWS,
                products.strides[0],
            )


def plain_multiply_group(rows: int, begun: int, n_groups: int, panel: int, products: int, stride: int) -> None:
    """Write the products of some rows with those of a panel.

    Parameters
    ----------
    rows : int
        Address of ROWS_AT_ONCE rows of 4 `n_groups` int8, one behind the other.
    begun : int
        Address of ROWS_AT_ONCE int32, with which the sums of each begin.
    n_groups : int
        Groups of four terms of a row, at least 1.
    panel : int
        Address of 4 `n_groups` times 64 uint8: the first four terms of 64 rows, row after row, then the next four.
    products : int
        Address to which the first sum is written: the 64 of a row side by side, those of the next `stride` bytes on.
    """
    terms = numbers_at(rows, (ROWS_AT_ONCE, n_groups * TERMS_OF_LANE), np.int8)
    others = numbers_at(panel, (n_groups, PANEL_ROWS, TERMS_OF_LANE), np.uint8).transpose(1, 0, 2)
    sums = terms.astype(np.int32) @ others.reshape(PANEL_ROWS, -1).astype(np.int32).T
    written = numbers_at(products, (ROWS_AT_ONCE, PANEL_ROWS), np.int32, (stride, ITEM_BYTES))
    written[...] = numbers_at(begun, (ROWS_AT_ONCE, 1), np.int32) + sums


@in_plain_mode(plain_multiply_group)
@emitted(numba.types.void, *[numba.types.int64] * 6)
def multiply_group(builder: Any, rows: Any, begun: Any, n_groups: Any, panel: Any, products: Any, stride: Any) -> None:
    """Emit what `plain_multiply_group` does: 24 sums of 16 lanes in registers, four terms of each an instruction."""
    row_bytes = builder.mul(n_groups, place_number(TERMS_OF_LANE))
    starts = [builder.add(rows, builder.mul(row_bytes, place_number(i))) for i in range(ROWS_AT_ONCE)]
    first = [spread(builder, _load(builder, begun, place_number(ITEM_BYTES * i), _SUM)) for i in range(ROWS_AT_ONCE)]
    places = [place_number(ITEM_BYTES * LANES_AT_ONCE * j) for j in range(REGISTERS)]

    def add_products(group: Any, sums: list[Any]) -> list[Any]:
        place = builder.mul(group, place_number(ITEM_BYTES * PANEL_ROWS))
        lanes = [_load(builder, panel, builder.add(place, at), _LANES) for at in places]
        added, offset, name = [], builder.mul(group, place_number(TERMS_OF_LANE)), "llvm.x86.avx512.vpdpbusd.512"
        for row, start in zip(slices(len(sums), REGISTERS), starts, strict=True):
            terms = spread(builder, _load(builder, start, offset, _SUM))
            # To each sum, the products of four bytes without and four with a sign.
            added += [call_llvm(builder, name, _LANES, *pair, terms) for pair in zip(sums[row], lanes, strict=True)]
        return added

    sums = emit_loop(builder, n_groups, [one for one in first for _ in places], add_products)
    for i, row in enumerate(slices(len(sums), REGISTERS)):
        for total, at in zip(sums[row], places, strict=True):
            place = builder.add(builder.mul(stride, place_number(i)), at)
            builder.store(total, builder.inttoptr(builder.add(products, place), _LANES.as_pointer()), align=ITEM_BYTES)


def _load(builder: Any, address: Any, offset: Any, kind: Any) -> Any:
    """Return what lies so many bytes behind an address."""
    return builder.load(builder.inttoptr(builder.add(address, offset), kind.as_pointer()), align=1)
