"""Invariants of sparse matrices in CSR form, stored in three arrays of one folder or in parts by blocks of rows."""

import functools
from dataclasses import replace

import numpy as np

from scalemani.store.invariants import Block, Invariant, StoredRun, stored
from scalemani.store.invariants.values import (
    ROUNDING,
    difference_of_multisets,
    mixed,
    multisets_differ,
    with_last_before,
)

FLOAT32_SUMS = 1e-5  # of sums that are stored as float32, relative to the sum of magnitudes
SUM_ROUNDING = 1e-12  # of float64 sums of the nonzeros of a row, relative to the sum of their magnitudes


def bounds(*names: str) -> Invariant:
    """Return that an array says where rows begin and end among other arrays of its folder, where these are stored."""
    return Invariant("from 0 to the number of nonzeros, never falling", functools.partial(broken_bounds, names))


def broken_bounds(names: tuple[str, ...], block: Block) -> int:
    """Count rows that end before they begin, and last ends that are not the length of an array."""
    ends = with_last_before(block)
    broken = int(np.count_nonzero(np.diff(ends) < 0)) + int(block.start == 0 and (not len(ends) or ends[0] != 0))
    all_ends = block.run.stored(block.stage, block.path)
    if all_ends is not None and block.start + len(block.values) == all_ends.shape[0]:
        lengths = {block.array(name).shape[0] for name in names if block.has(name)}
        broken += sum(int(not len(ends) or ends[-1] != length) for length in lengths)
    return broken


def row_numbers(block: Block, indptr: str) -> np.ndarray:
    """Return the row (m,) of the CSR matrix that each nonzero of a block is in, by the array `indptr`."""
    ends, start, stop = block.all_of(indptr), block.start, block.start + len(block.values)
    first, last = (np.searchsorted(ends, (start, stop - 1), side="right") - 1).tolist()
    counts = np.maximum(np.diff(np.clip(ends[max(first, 0) : last + 2], start, stop)), 0)
    rows = np.repeat(np.arange(first, first + len(counts)), counts)
    if len(rows) == len(block.values):
        return rows
    return np.searchsorted(ends, np.arange(start, stop), side="right") - 1  # of bounds that are none


def columns_ascend(indptr: str) -> Invariant:
    """Return that the columns in each row of a CSR matrix ascend strictly."""
    return Invariant("ascending in each row, each column once", functools.partial(columns_out_of_order, indptr))


def columns_out_of_order(indptr: str, block: Block) -> int:
    """Count nonzeros whose column is not above the one before in the same row."""
    columns = with_last_before(block)
    rows = row_numbers(replace(block, start=block.start + len(block.values) - len(columns), values=columns), indptr)
    same = rows[1:] == rows[:-1]
    return int(np.count_nonzero(same & (columns[1:] <= columns[:-1])))


def up_to_diagonal(indptr: str) -> Invariant:
    """Return that columns of a CSR matrix are those of its lower triangle, with the diagonal."""
    return Invariant("at least 0 and up to the row", functools.partial(beyond_diagonal, indptr))


def beyond_diagonal(indptr: str, block: Block) -> int:
    """Count nonzeros above the diagonal, or in no column."""
    return int(np.count_nonzero((block.values > row_numbers(block, indptr)) | (block.values < 0)))


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


def nearly_symmetric(indptr: str, indices: str) -> Invariant:
    """Return that a matrix of float32 sums is symmetric to their rounding, as two weighted sums show."""
    part = functools.partial(weighted_differences, indptr, indices)
    return Invariant("symmetric, to the rounding of sums", part, differences_remain)


def weighted_differences(indptr: str, indices: str, block: Block) -> np.ndarray:
    """Return the entries above the diagonal less those below, by a weight of each pair, and the magnitudes: (2,)."""
    rows, columns = row_numbers(block, indptr), block.rows_of(indices).astype(np.int64)
    weights = (1 + mixed(np.minimum(rows, columns), np.maximum(rows, columns)) / 2.0**64) * np.sign(columns - rows)
    terms = weights * block.values
    return np.array([terms.sum(), np.abs(terms).sum()])


def differences_remain(total: np.ndarray, run: StoredRun) -> int:
    """Return 1 where summed differences exceed the rounding of float32, relative to summed magnitudes."""
    return int(not abs(total[0]) <= FLOAT32_SUMS * total[1])


def columns_distinct(indptr: str) -> Invariant:
    """Return that no column is twice in a row, in any order."""
    return Invariant("each column once in each row", functools.partial(repeated_columns, indptr))


def repeated_columns(indptr: str, block: Block) -> int:
    """Count nonzeros whose column the row has already, of the rows that begin in a block."""
    ends = block.all_of(indptr)
    first, last = np.searchsorted(ends, (block.start, block.start + len(block.values))).tolist()
    row_ends = ends[first : last + 1]
    if len(row_ends) < 2:
        return 0
    columns = np.asarray(stored(block.run, block.stage, block.path)[int(row_ends[0]) : int(row_ends[-1])])
    rows = np.repeat(np.arange(len(row_ends) - 1), np.maximum(np.diff(row_ends), 0))[: len(columns)]
    keys = np.sort(rows * 2**32 + columns[: len(rows)])
    return int(np.count_nonzero(keys[1:] == keys[:-1]))


def within(name: str) -> Invariant:
    """Return that numbers are below the length of an array of the same folder."""
    return Invariant(f"below the number of `{name}`", functools.partial(beyond, name))


def beyond(name: str, block: Block) -> int:
    """Count numbers that are not below the length of the array `name` of the same folder."""
    return int(np.count_nonzero(block.values >= block.array(name).shape[0]))


def sums_of_rows(indptr: str, values: str, rounding: float = SUM_ROUNDING) -> Invariant:
    """Return that an array holds the sums of the rows of a matrix, where its values are stored."""
    return Invariant("the sum of each row", functools.partial(other_sums, indptr, values, rounding))


def nearly_sums_of_rows(indptr: str, values: str) -> Invariant:
    """Return what `sums_of_rows` does, for sums of values that are rounded to float32."""
    return sums_of_rows(indptr, values, FLOAT32_SUMS)


def other_sums(indptr: str, values: str, rounding: float, block: Block) -> int:
    """Count rows whose stored sum is off by more than `rounding` times the sum of their magnitudes."""
    if not block.has(values):
        return 0
    ends = np.asarray(block.array(indptr)[block.start : block.start + len(block.values) + 1])
    terms = np.asarray(block.array(values)[int(ends[0]) : int(ends[-1])])
    sums, sizes = (row_sums(numbers, ends - ends[0]) for numbers in (terms, np.abs(terms)))
    if sums.shape != block.values.shape:
        return len(block.values)
    return int(np.count_nonzero(~(np.abs(sums - block.values) <= rounding * sizes)))


def row_sums(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Return the sum (n,) float64 of the entries (m,) of each row of a CSR matrix; 0 of a row without any."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.maximum(np.diff(indptr), 0))
    n_entries = min(len(rows), len(values))  # bounds that are not those of the values are another invariant
    return np.bincount(rows[:n_entries], values[:n_entries].astype(np.float64), len(indptr) - 1)


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
