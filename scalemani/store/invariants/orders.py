"""Invariants of arrays that hold the same in two orders, and of numbers that name the rows of others."""

import functools

import numpy as np

from scalemani.store.invariants import Block, Invariant, StoredArray, StoredRun, stored
from scalemani.store.invariants.points import Points
from scalemani.store.invariants.values import NUMBERS_AT_ONCE, Count, difference_of_multisets, mixed, multisets_differ

# Of the metrics whose distances are a power of Euclidean ones over a unit: both.
CONVERSIONS = {
    "cosine": (2, 2.0),
    "correlation": (2, 2.0),
    "hellinger": (1, np.sqrt(2.0)),
    "hamming": (2, 1.0),
    "jaccard": (2, 1.0),
}


def bits_of(values: np.ndarray) -> np.ndarray:
    """Return the bits of numbers, zeros of either sign alike."""
    return (values + values.dtype.type(0)).view(f"uint{8 * values.dtype.itemsize}")


def input_rows_of(run: StoredRun, rows: slice) -> np.ndarray:
    """Return the input row of each of consecutive work rows: the same where there is no other order."""
    order = run.stored("work_points", "input_rows")
    return np.arange(rows.start, rows.stop) if order is None else np.asarray(order[rows])


# Points


def work_less_input_points(block: Block) -> int:
    """Return points in work order less those in input order, as multisets of (input row, column, value)."""
    rows = slice(block.start, block.start + len(block.values))
    before = np.asarray(stored(block.run, "points", "points")[rows])
    numbers = np.arange(rows.start, rows.stop)
    return difference_of_multisets(
        mixed_rows(input_rows_of(block.run, rows), block.values), mixed_rows(numbers, before)
    )


def mixed_rows(numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return 64 bits (n,) of each row of values (n, D) and its number: of the sum of its bits times odd numbers."""
    n_columns = values.shape[1]
    factors, words = mixed(np.arange(n_columns)) | np.uint64(1), np.empty(len(values), np.uint64)
    at_once = max(1, NUMBERS_AT_ONCE // max(1, n_columns))
    for first in range(0, len(values), at_once):
        bits = bits_of(np.ascontiguousarray(values[first : first + at_once])).astype(np.uint64)
        words[first : first + at_once] = np.einsum("nd,d->n", bits, factors)
    return mixed(numbers, words)


SAME_POINTS = Invariant(
    "the points of `points/points`, each at its `input_rows`", work_less_input_points, multisets_differ
)


def work_less_input_nonzeros(block: Block) -> int:
    """Return nonzeros in work order less those in input order, as multisets of (input row, column, value)."""
    run, folder = block.run, block.folder.removeprefix("rows-")
    ends = block.all_of("indptr")
    rows = input_rows_of(run, slice(block.first_point, block.first_point + len(ends) - 1))
    work_words = mixed(np.repeat(rows, np.diff(ends)), block.all_of("indices"), bits_of(block.values))
    names = ("indptr", "indices", "values")
    ends, columns, values = (np.asarray(stored(run, "points", f"{folder}/{name}")[...]) for name in names)
    numbers = np.repeat(block.first_point + np.arange(len(ends) - 1), np.diff(ends))
    return difference_of_multisets(work_words, mixed(numbers, columns, bits_of(values)))


SAME_NONZEROS = Invariant(
    "the nonzeros of the points in input order, each in its row of `input_rows`",
    work_less_input_nonzeros,
    multisets_differ,
)


def work_less_input_cells(block: Block) -> int:
    """Return the cells that work rows lie in less those of the points, as multisets of (input row, cell)."""
    run, rows = block.run, slice(block.start, block.start + len(block.values))
    cells = run.stored("partition", "cells")
    if cells is None:
        return 0
    ends = run.stored(block.stage, "cell_offsets")
    numbers = run.stored(block.stage, "stretch_cells")
    bounds = np.asarray(stored(run, block.stage, "stretch_offsets" if ends is None else "cell_offsets")[...])
    places = np.searchsorted(bounds, np.arange(rows.start, rows.stop), side="right") - 1
    expected = places if numbers is None else np.asarray(numbers[...])[np.minimum(places, numbers.shape[0] - 1)]
    return difference_of_multisets(
        mixed(block.values, expected), mixed(np.arange(rows.start, rows.stop), np.asarray(cells[rows]))
    )


IN_THEIR_CELLS = Invariant(
    "in the cells that the offsets say, by `partition/cells`", work_less_input_cells, multisets_differ
)


# The graph


def input_less_work_indices(block: Block) -> int:
    """Return the graph in input order less that in work order, as multisets of (row, place, neighbour)."""
    run, rows = block.run, slice(block.start, block.start + len(block.values))
    indices = np.asarray(last_round(run, "indices")[rows])
    order = input_rows_of(run, slice(0, run.n_points))
    places = np.arange(block.values.shape[1])
    input_words = mixed(np.arange(rows.start, rows.stop)[:, np.newaxis], places, block.values)
    return difference_of_multisets(input_words, mixed(order[rows][:, np.newaxis], places, order[indices]))


def last_round(run: StoredRun, name: str) -> StoredArray:
    """Return the array `name` of the last round of the search for neighbours, whose lists are the graph."""
    last = int(np.asarray(stored(run, "neighbors", "last_round")[...]))
    return stored(run, "neighbors", f"round_{last}/{name}")


SAME_NEIGHBORS = Invariant("the last round of `neighbors`, in input rows", input_less_work_indices, multisets_differ)


def input_less_work_distances(block: Block) -> int:
    """Return distances in input order less those in work order in the metric, as multisets of (row, place, value)."""
    run, rows = block.run, slice(block.start, block.start + len(block.values))
    distances = np.asarray(last_round(run, "distances")[rows])
    metric = run.params["points"]["metric"]
    if metric in CONVERSIONS:
        power, unit = CONVERSIONS[metric]
        distances = (distances.astype(np.float64) ** power / unit).astype(distances.dtype)
    places = np.arange(block.values.shape[1])
    input_words = mixed(np.arange(rows.start, rows.stop)[:, np.newaxis], places, bits_of(block.values))
    order = input_rows_of(run, rows)
    return difference_of_multisets(input_words, mixed(order[:, np.newaxis], places, bits_of(distances)))


SAME_DISTANCES = Invariant(
    "the distances of the last round of `neighbors`, in the metric", input_less_work_distances, multisets_differ
)


# Numbers that name rows


def numbered_by_first(limit: Count | None = None, ignored: int | None = None) -> Invariant:
    """Return that numbers ascend in the order of their first rows, from 0 on, as many as a count says."""
    many = "" if limit is None else f", up to {limit.text}"
    return Invariant(f"numbered by first rows from 0 on{many}", functools.partial(out_of_turn, limit, ignored))


def out_of_turn(limit: Count | None, ignored: int | None, block: Block) -> int:
    """Count numbers that are left out, or out of turn; of an array in one piece, by its first block."""
    if block.start:
        return 0
    values = np.asarray(stored(block.run, block.stage, block.path)[...])
    numbers, firsts = np.unique(values if ignored is None else values[values != ignored], return_index=True)
    expected = len(numbers) if limit is None else limit.of(block.run)
    if len(numbers) != expected:
        return max(1, abs(len(numbers) - expected))
    return int(np.count_nonzero(numbers != np.arange(expected))) + int(np.count_nonzero(np.diff(firsts) < 0))


def each_once_at_least(limit: Count, ignored: int | None = None) -> Invariant:
    """Return that every number below a count is there."""
    return Invariant(f"each below {limit.text} at least once", functools.partial(left_out, limit, ignored))


def left_out(limit: Count, ignored: int | None, block: Block) -> int:
    """Count numbers that no row has; of an array in one piece, by its first block."""
    if block.start:
        return 0
    values = np.asarray(stored(block.run, block.stage, block.path)[...])
    return limit.of(block.run) - len(np.unique(values if ignored is None else values[values != ignored]))


def other_rows(block: Block) -> int:
    """Count landmarks that are not the points of their rows; none where they lie off the data."""
    if not block.has("rows"):
        return 0
    expected = Points(block.run, "points").gather(block.rows_of("rows"))
    return int(np.count_nonzero((block.values != expected).any(axis=1)))


POINTS_OF_ROWS = Invariant("the points of `rows`, on the data", other_rows)


def counts_of(path: str, stage: str) -> Invariant:
    """Return that an array counts how often each number is in another."""
    return Invariant(f"how often each number is in `{stage}/{path}`", functools.partial(other_counts, stage, path))


def other_counts(stage: str, path: str, block: Block) -> int:
    """Count numbers that are there another number of times; of a short array, whose values are one block."""
    counts, array = np.zeros(len(block.values) + 1, np.int64), stored(block.run, stage, path)
    for start in range(0, array.shape[0], block.run.block_rows):
        values = np.asarray(array[start : start + block.run.block_rows])
        counts += np.bincount(np.clip(values[values >= 0], 0, len(block.values)), minlength=len(counts))
    return int(np.count_nonzero(counts[:-1] != block.values)) + int(counts[-1] > 0)
