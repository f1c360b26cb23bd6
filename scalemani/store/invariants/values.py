"""Invariants of the values of one array: their range, their order, what is distinct, and what rows sum to."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scalemani.store.invariants import Block, Invariant, StoredRun, stored

NUMBERS_AT_ONCE = 2**18  # that are computed with together: they stay in the caches of a processor
ROUNDING = {"float32": 1e-5, "float64": 1e-9}  # of sums of some hundred terms, relative to the largest of them


@dataclass(frozen=True)
class Count:
    """A number of a run that values must stay below, and its name in texts of invariants."""

    text: str
    of: Callable[[StoredRun], int]


def number_of(text: str, stage: str, path: str, axis: int = 0) -> Count:
    """Return the count that is the length of a stored array along an axis, 0 where it is not stored."""
    return Count(text, functools.partial(length_of, stage, path, axis))


def length_of(stage: str, path: str, axis: int, run: StoredRun) -> int:
    """Return the length of a stored array along an axis; 0 where it is not stored."""
    array = run.stored(stage, path)
    return 0 if array is None else int(array.shape[axis])


def number_in(text: str, stage: str, path: str) -> Count:
    """Return the count that a stored array of one number holds."""
    return Count(text, functools.partial(stored_number, stage, path))


def stored_number(stage: str, path: str, run: StoredRun) -> int:
    """Return the number that a stored array without dimensions holds; the array must be stored."""
    return int(np.asarray(stored(run, stage, path)[...]))


def points_of(run: StoredRun) -> int:
    """Return the number of points, N, of a run."""
    return run.n_points


POINTS = Count("the number of points", points_of)
CLASSES = number_of("the number of classes", "classes", "counts")
LANDMARKS = number_of("the number of landmarks", "landmarks", "points")


def rows_that(bad: np.ndarray) -> int:
    """Return how many rows hold an entry that is bad."""
    return int(np.count_nonzero(bad.any(axis=tuple(range(1, bad.ndim)))))


# Ranges


def in_count(limit: Count, *, least: int = 0) -> Invariant:
    """Return that integers lie in [least, limit)."""
    text = f"at least {least} and below {limit.text}"
    return Invariant(text, functools.partial(out_of_count, limit, least))


def out_of_count(limit: Count, least: int, block: Block) -> int:
    """Count rows with a value outside of [least, limit)."""
    return rows_that((block.values < least) | (block.values >= limit.of(block.run)))


def between(low: float = -np.inf, high: float = np.inf, *, above: bool = False) -> Invariant:
    """Return that numbers are finite and in a range, both ends included; `above`: the lower end is not."""
    lower = "" if low == -np.inf else f"above {low:g}" if above else f"at least {low:g}"
    upper = "" if high == np.inf else f"at most {high:g}"
    text = " and ".join(filter(None, ["finite" if not lower or not upper else "", lower, upper]))
    return Invariant(text, functools.partial(out_of_range, low, high, above))


def out_of_range(low: float, high: float, above: bool, block: Block) -> int:
    """Count rows with a value out of a range, or not finite."""
    values = block.values
    inside = np.isfinite(values) & ((values > low) if above else (values >= low)) & (values <= high)
    return rows_that(~inside)


FINITE = between()
NOT_NEGATIVE = between(0)
POSITIVE = between(0, above=True)
A_SHARE = between(0, 1)


def one_of(*allowed: int) -> Invariant:
    """Return that each value is one of these integers, two or more."""
    names = [str(one) for one in allowed]
    return Invariant(f"{', '.join(names[:-1])} or {names[-1]}", functools.partial(not_among, allowed))


def not_among(allowed: tuple[int, ...], block: Block) -> int:
    """Count rows with a value that is none of the allowed ones."""
    return rows_that(~np.isin(block.values, allowed))


# Order


def ascending_in_rows(block: Block) -> int:
    """Count rows whose values do not ascend."""
    return rows_that(~(block.values[:, 1:] >= block.values[:, :-1]))


ASCENDING_IN_ROWS = Invariant("ascending in each row", ascending_in_rows)


def strictly_ascending(block: Block) -> int:
    """Count values that are not above the one before them."""
    values = with_last_before(block)
    return int(np.count_nonzero(~(values[1:] > values[:-1])))


STRICTLY_ASCENDING = Invariant("each above the one before", strictly_ascending)


def not_descending(block: Block) -> int:
    """Count values that are below the one before them."""
    values = with_last_before(block)
    return int(np.count_nonzero(~(values[1:] >= values[:-1])))


def not_ascending(block: Block) -> int:
    """Count values that are above the one before them."""
    values = with_last_before(block)
    return int(np.count_nonzero(~(values[1:] <= values[:-1])))


def not_to_all_points(block: Block) -> int:
    """Count offsets that fall, or do not begin at 0 and end at the number of points; of an array that is one block."""
    ends = np.asarray(stored(block.run, block.stage, block.path)[...])
    return int(np.count_nonzero(np.diff(ends) < 0)) + int(
        len(ends) < 2 or ends[0] != 0 or ends[-1] != block.run.n_points
    )


TO_ALL_POINTS = Invariant("from 0 to the number of points, never falling", not_to_all_points)
ASCENDING = Invariant("ascending", not_descending)
DESCENDING = Invariant("descending", not_ascending)


def with_last_before(block: Block) -> np.ndarray:
    """Return the values of a block, with the one before them if there is one."""
    if block.start == 0:
        return block.values
    before = stored(block.run, block.stage, block.path)[block.start - 1 : block.start]
    return np.concatenate([np.asarray(before), block.values])


# What is distinct


def distinct_in_rows(ignored: int | None = None) -> Invariant:
    """Return that no value is twice in a row, but for one that stands for none."""
    besides = "" if ignored is None else f", but for {ignored}"
    return Invariant(f"distinct in each row{besides}", functools.partial(repeated_in_row, ignored))


def repeated_in_row(ignored: int | None, block: Block) -> int:
    """Count rows that hold a value twice, the ignored one left aside."""
    ordered = np.sort(block.values, axis=1)
    equal = ordered[:, 1:] == ordered[:, :-1]
    return rows_that(equal if ignored is None else equal & (ordered[:, 1:] != ignored))


DISTINCT_IN_ROWS = distinct_in_rows()


def some_behind_none(block: Block) -> int:
    """Count rows in which a number follows one that stands for none."""
    return rows_that((block.values[:, 1:] >= 0) & (block.values[:, :-1] < 0))


NONE_BEHIND = Invariant("-1 behind all others of a row", some_behind_none)


def names_itself(block: Block) -> int:
    """Count rows that hold the number of the point that they are of."""
    row_numbers = block.first_point + np.arange(len(block.values))
    return rows_that(block.values == row_numbers[:, np.newaxis])


NOT_THE_ROW_ITSELF = Invariant("not the row itself", names_itself)


def mixed(*words: np.ndarray) -> np.ndarray:
    """Return 64 bits (n,) uint64 of each tuple of words, by the finaliser of splitmix64: equal sums, equal multisets.

    Two multisets that differ have sums of these that differ, modulo 2^64, but for one chance in 2^64.
    """
    arrays = np.broadcast_arrays(*words)
    state = np.zeros(arrays[0].shape, np.uint64)
    at_once = max(1, NUMBERS_AT_ONCE // max(1, state[:1].size))
    for first in range(0, len(state), at_once):
        part = state[first : first + at_once]
        for array in arrays:
            part += array[first : first + at_once].astype(np.uint64)
            part += np.uint64(0x9E3779B97F4A7C15)
            part ^= part >> np.uint64(30)
            part *= np.uint64(0xBF58476D1CE4E5B9)
            part ^= part >> np.uint64(27)
            part *= np.uint64(0x94D049BB133111EB)
            part ^= part >> np.uint64(31)
    return state


def difference_of_multisets(one: np.ndarray, other: np.ndarray) -> int:
    """Return what a block adds to a sum that is a multiple of 2^64 where two multisets of `mixed` words are equal."""
    return int(one.sum(dtype=np.uint64)) - int(other.sum(dtype=np.uint64))


def multisets_differ(total: int, run: StoredRun) -> int:
    """Return 1 where summed results of `difference_of_multisets` are no multiple of 2^64."""
    return int(total % 2**64 != 0)


def against_row_numbers(block: Block) -> int:
    """Return what a block adds to the difference of its values from its row numbers, as multisets."""
    return difference_of_multisets(mixed(block.values), mixed(block.first_point + np.arange(len(block.values))))


PERMUTATION = Invariant("each row once", against_row_numbers, multisets_differ)


# Sums and norms


def off_one(block: Block) -> int:
    """Count rows whose sum is not one."""
    sums = block.values.sum(axis=1, dtype=np.float64)
    largest = np.maximum(1.0, np.abs(block.values).max(axis=1, initial=0.0))
    return int(np.count_nonzero(~(np.abs(sums - 1) <= ROUNDING[block.values.dtype.name] * largest)))


SUM_TO_ONE = Invariant("summing to one in each row", off_one)
