"""Invariants of sparse matrices in CSR form, stored in three arrays of one folder or in parts by blocks of rows."""

import functools
from dataclasses import replace

import numpy as np

from scalemani.store.invariants import Block, Invariant
from scalemani.store.invariants.values import (
    ROUNDING,
    difference_of_multisets,
    mixed,
    multisets_differ,
    with_last_before,
)

SUM_ROUNDING = 1e-12  # of float64 sums of the nonzeros of a row, relative to the sum of their magnitudes


def bounds(*names: str) -> Invariant:
    """Return that an array says where rows begin and end among other arrays of its folder, where these are stored."""
    return Invariant("from 0 to the number of nonzeros, never falling", functools.partial(broken_bounds, names))


def broken_bounds(names: tuple[str, ...], block: Block) -> int:
    """Count rows that end before they begin, and ends of an array that are not its own."""
    ends = with_last_before(block)
    broken = int(np.count_nonzero(np.diff(ends) < 0)) + int(block.start == 0 and (not len(ends) or ends[0] != 0))
    own = block.run.stored(block.stage, block.path)
    if own is not None and block.start + len(block.values) == own.shape[0]:
        lengths = {block.array(name).shape[0] for name in names if block.has(name)}
        broken += sum(int(not len(ends) or ends[-1] != length) for length in lengths)
    return broken


def row_numbers(block: Block, indptr: str) -> np.ndarray:
    """Return the row (m,) of its matrix that each nonzero of a block is in."""
    places = block.start + np.arange(len(block.values))
    return np.searchsorted(block.all_of(indptr), places, side="right") - 1


def columns_ascend(indptr: str) -> Invariant:
    """Return that the columns of a row ascend, and none is there twice."""
    return Invariant("ascending in each row, each column once", functools.partial(columns_out_of_order, indptr))


def columns_out_of_order(indptr: str, block: Block) -> int:
    """Count nonzeros whose column is not above the one before in the same row."""
    columns = with_last_before(block)
    rows = row_numbers(replace(block, start=block.start + len(block.values) - len(columns), values=columns), indptr)
    same = rows[1:] == rows[:-1]
    return int(np.count_nonzero(same & (columns[1:] <= columns[:-1])))


def symmetric(indptr: str, indices: str) -> Invariant:
    """Return that the parts of a matrix are symmetric, bit by bit, if the columns of each row are distinct."""
    part = functools.partial(above_less_below, indptr, indices)
    return Invariant("symmetric, to the bit", part, multisets_differ)


def above_less_below(indptr: str, indices: str, block: Block) -> int:
    """Return the entries above the diagonal less those below, as multisets of (row, column, value)."""
    rows = row_numbers(block, indptr) + block.first_point
    columns = block.all_of(indices).astype(np.int64)
    bits = block.values.view(f"uint{8 * block.values.dtype.itemsize}")
    above, under = rows < columns, rows > columns
    return difference_of_multisets(
        mixed(rows[above], columns[above], bits[above]), mixed(columns[under], rows[under], bits[under])
    )


def sums_of_rows(indptr: str, values: str) -> Invariant:
    """Return that an array holds the sums of the rows of a matrix, where its values are stored."""
    return Invariant("the sum of each row", functools.partial(other_sums, indptr, values))


def other_sums(indptr: str, values: str, block: Block) -> int:
    """Count rows whose sum is another."""
    if not block.has(values):
        return 0
    ends, terms = block.all_of(indptr), block.all_of(values)
    sums, sizes = (row_sums(numbers, ends) for numbers in (terms, np.abs(terms)))
    if sums.shape != block.values.shape:
        return len(block.values)
    return int(np.count_nonzero(~(np.abs(sums - block.values) <= SUM_ROUNDING * sizes)))


def row_sums(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Return the sum (n,) float64 of the entries (m,) of each row."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.maximum(np.diff(indptr), 0))
    return np.bincount(rows, values[: len(rows)].astype(np.float64), len(indptr) - 1)


def row_shares(indptr: str, values: str) -> Invariant:
    """Return that the values of each row of a matrix in CSR form sum to one, by the bounds of these rows."""
    return Invariant("summing to one in each row", functools.partial(rows_off_one, indptr, values))


def rows_off_one(indptr: str, values: str, block: Block) -> int:
    """Count rows of a matrix, some of whose bounds a block is, that do not sum to one."""
    ends = with_last_before(block)
    if len(ends) < 2:
        return 0
    entries = np.asarray(block.array(values)[int(ends[0]) : int(ends[-1])])
    sums = row_sums(entries, ends - ends[0])
    return int(np.count_nonzero(~(np.abs(sums - 1) <= ROUNDING["float64"])))
