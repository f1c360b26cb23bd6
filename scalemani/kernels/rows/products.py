"""Squared distances of many short float32 rows by products, looked at before they leave the first-level cache.

A panel holds 128 rows in eight strips, each with the first dimension of its 16 rows, then the second, and so on. Twelve
queries are multiplied with a panel at a time, so that a strip is read once for all of them. This needs no (n, m) matrix
of results, and a product depends on its two rows alone, never on the shape of the call. Indices in the inner loops are
unsigned and no slices are taken there: wrap-around checks keep loops from becoming vector code, and each slice counts
references.

The products of a few rows with a strip are written out for the compiler below: of a loop over lanes within a loop over
terms it keeps no sum in a register.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir

from scalemani.kernels.machine.compile import compiled, emitted, in_plain_mode, numbers_at
from scalemani.kernels.machine.instructions import (
    ITEM_BYTES,
    LANES_AT_ONCE,
    by_one_instruction,
    call_llvm,
    emit_loop,
    place_number,
    spread,
)

PANEL_ROWS = 128  # eight strips
# Sums of as many rows as leave registers for a strip and a factor: 32 registers of 16 lanes, or 16 of eight.
ROWS_AT_ONCE = 12 if by_one_instruction() else 6

_SINGLE = ir.FloatType()
_LANES = ir.VectorType(_SINGLE, LANES_AT_ONCE)

QUERY_GROUP = 12  # a multiple of ROWS_AT_ONCE
CENTER_MEANS = 5  # the middle one of five has no far row where two rows are far
MOST_MEAN_ROWS = 13  # 65 rows determine a centre within a fraction of what they spread, which costs products no digit
_PANEL, _STRIP = np.uint64(PANEL_ROWS), np.uint64(LANES_AT_ONCE)


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
@emitted(numba.types.void, *[numba.types.int64] * 6)
def multiply_strip(builder: Any, rows: Any, bases: Any, n_terms: Any, strip: Any, norms: Any, sums: Any) -> None:
    """Emit what `plain_multiply_strip` does, a product and its sum by one instruction where there is one."""
    emit_products(builder, ROWS_AT_ONCE, (rows, bases, n_terms, strip, norms, sums))


def emit_products(builder: Any, n_rows: int, arguments: tuple[Any, ...]) -> None:
    """Emit what `plain_multiply_strip` does of its arguments, for so many rows at once."""
    (rows, bases, n_terms, strip, norms, sums), numbers = arguments, range(n_rows)
    starts = [_item(builder, rows, builder.mul(place_number(i), n_terms)) for i in numbers]
    norm = builder.load(_lanes_at(builder, norms, place_number(0)), align=ITEM_BYTES)
    begun = [builder.fadd(norm, spread(builder, builder.load(_item(builder, bases, place_number(i))))) for i in numbers]

    def add_products(term: Any, totals: list[Any]) -> list[Any]:
        place = _lanes_at(builder, strip, builder.mul(term, place_number(LANES_AT_ONCE)))
        lanes = builder.load(place, align=ITEM_BYTES)
        factors = (spread(builder, builder.load(builder.gep(start, [term]))) for start in starts)
        return [
            call_llvm(builder, f"llvm.fmuladd.v{LANES_AT_ONCE}f32", _LANES, factor, lanes, total)
            for factor, total in zip(factors, totals, strict=True)
        ]

    for i, total in enumerate(emit_loop(builder, n_terms, begun, add_products)):
        place = _lanes_at(builder, sums, place_number(i * PANEL_ROWS))
        builder.store(total, place, align=ITEM_BYTES)


def _item(builder: Any, address: Any, number: Any) -> Any:
    """Return a pointer to a numbered float32 behind an address."""
    return builder.gep(builder.inttoptr(address, _SINGLE.as_pointer()), [number])


def _lanes_at(builder: Any, address: Any, number: Any) -> Any:
    """Return a pointer to the 16 float32 from a numbered one on behind an address."""
    return builder.bitcast(_item(builder, address, number), _LANES.as_pointer())


@compiled
def whole_groups(n_queries: int) -> int:
    """Return the least multiple of QUERY_GROUP that is at least `n_queries`."""
    return (n_queries + QUERY_GROUP - 1) // QUERY_GROUP * QUERY_GROUP


@compiled
def middle_row(rows: np.ndarray) -> np.ndarray:
    """Return `middle_of_rows` of `rows` (u, s) float32 in float32: (s,)."""
    return middle_of_rows(rows).astype(np.float32)


@compiled
def middle_of_rows(rows: np.ndarray) -> np.ndarray:
    """Return the median (s,) float64, in each coordinate, of five means of up to 13 of `rows` (u, s) real.

    It is near the mean, but no one or two far rows draw it away from all others, whose distances by float32 products
    would lose their digits then. The rows are evenly spread and go to the means in turn. Of less than five rows it is
    their mean, of none zero.
    """
    n_rows, n_dims = rows.shape
    each = min(n_rows // CENTER_MEANS, MOST_MEAN_ROWS)
    means = np.zeros((CENTER_MEANS, n_dims))
    if each == 0:
        for row in range(np.uint64(n_rows)):
            for d in range(np.uint64(n_dims)):
                means[0, d] += rows[row, d] / n_rows
        return means[0]
    step = n_rows // (CENTER_MEANS * each)
    for number in range(each * CENTER_MEANS):
        row, mean = np.uint64(number * step), np.uint64(number % CENTER_MEANS)
        for d in range(np.uint64(n_dims)):
            means[mean, d] += rows[row, d] / each
    center = np.empty(n_dims)
    for d in range(np.uint64(n_dims)):
        center[d] = _median_of_five(means[0, d], means[1, d], means[2, d], means[3, d], means[4, d])
    return center


@compiled
def _median_of_five(a: float, b: float, c: float, d: float, e: float) -> float:
    low, high = max(min(a, b), min(c, d)), min(max(a, b), max(c, d))  # neither the least nor the greatest of four
    return max(min(low, high), min(e, max(low, high)))


@compiled
def build_panels(rows: np.ndarray, center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre rows and lay them out in panels.

    Parameters
    ----------
    rows : (u, s) float32
    center : (s,) float32, subtracted from each row

    Returns
    -------
    panels : (p, s * 128) float32, p = ceil(u / 128)
    norms : (p, 128) float32, squared lengths of the centred rows; infinite for a missing row, which is never near
    """
    n_panels = (rows.shape[0] + PANEL_ROWS - 1) // PANEL_ROWS
    n_dims = np.uint64(rows.shape[1])
    panels = np.zeros((n_panels, rows.shape[1] * PANEL_ROWS), dtype=np.float32)
    norms = np.full((n_panels, PANEL_ROWS), np.inf, dtype=np.float32)
    for i in range(np.uint64(rows.shape[0])):
        p, lane = i // _PANEL, i % _PANEL
        first = lane // _STRIP * _STRIP * n_dims + lane % _STRIP
        norm = np.float32(0.0)
        for d in range(n_dims):
            value = rows[i, d] - center[d]
            panels[p, first + d * _STRIP] = value
            norm += value * value
        norms[p, lane] = norm
    return panels, norms


@compiled
def center_queries(
    rows: np.ndarray, members: np.ndarray, center: np.ndarray, queries: np.ndarray, bases: np.ndarray
) -> None:
    """Centre some rows as queries of `multiply_panel`.

    Parameters
    ----------
    rows : (n, s) float32
    members : (m,) int, the rows that are queries
    center : (s,) float32, that of the panels
    queries : (>= whole_groups(m), s) float32; -2 (row - center) is written, and zeros in the rest of the last group
    bases : (>= m,) float32; |row - center|^2 is written
    """
    n_dims = np.uint64(rows.shape[1])
    for i in range(np.uint64(members.size)):
        row = np.uint64(members[i])
        norm = np.float32(0.0)
        for d in range(n_dims):
            value = rows[row, d] - center[d]
            queries[i, d] = np.float32(-2.0) * value
            norm += value * value
        bases[i] = norm
    for i in range(members.size, whole_groups(members.size)):
        queries[i] = np.float32(0.0)


@compiled
def multiply_panel(
    queries: np.ndarray,
    bases: np.ndarray,
    first: int,
    panels: np.ndarray,
    norms: np.ndarray,
    panel: int,
    products: np.ndarray,
) -> None:
    """Write the squared distances of a group of queries to the rows of a panel.

    Parameters
    ----------
    queries : (m, s) float32, C-contiguous, from `center_queries`
    bases : (m,) float32, from `center_queries`
    panels, norms : from `build_panels`
    products : (QUERY_GROUP, 128) float32, C-contiguous; norms + bases + queries . panel is written, which rounding can
        take below zero
    """
    n_dims = queries.shape[1]
    strips_at = panels.ctypes.data + panel * panels.strides[0]
    norms_at = norms.ctypes.data + panel * norms.strides[0]
    for lane in range(0, PANEL_ROWS, LANES_AT_ONCE):
        for query in range(first, first + QUERY_GROUP, ROWS_AT_ONCE):
            multiply_strip(
                queries.ctypes.data + ITEM_BYTES * query * n_dims,
                bases.ctypes.data + ITEM_BYTES * query,
                n_dims,
                strips_at + ITEM_BYTES * lane * n_dims,
                norms_at + ITEM_BYTES * lane,
                products.ctypes.data + ITEM_BYTES * ((query - first) * PANEL_ROWS + lane),
            )


@compiled
def number_lanes(numbers: np.ndarray, first: int) -> None:
    """Write the 128 numbers from `first` on into `numbers` (128,) int32."""
    for lane in range(_PANEL):
        numbers[lane] = first + np.int64(lane)
