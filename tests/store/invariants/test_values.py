"""Invariants of one array, by blocks of any size: what is broken is counted, and what is not is let pass."""

from types import SimpleNamespace

import numpy as np
import pytest

from scalemani.store.invariants import Block, count_broken
from scalemani.store.invariants import values as of


def run_with(**arrays):
    """Return a run that stores arrays of one stage."""
    return SimpleNamespace(n_points=6, block_rows=4, params={}, stored=lambda stage, path: arrays.get(path))


def broken(invariant, values, rows):
    """Return how many rows break an invariant, the array cut into blocks of so many rows."""
    run = run_with(array=values)
    starts = range(0, max(1, len(values)), rows)
    blocks = [Block(run, "stage", "array", start, values[start : start + rows]) for start in starts]
    return count_broken((invariant,), reversed(blocks))[invariant.text]


@pytest.mark.parametrize("rows", [1, 2, 4, 6])
@pytest.mark.parametrize(
    ("invariant", "values", "count"),
    [
        (of.in_count(of.POINTS), [[0, 5], [6, 1], [-1, 7]], 2),
        (of.in_count(of.POINTS, least=-1), [[0, 5], [6, 1], [-1, 2]], 1),
        (of.NOT_NEGATIVE, [0.0, -1.0, np.nan, np.inf, 3.0], 3),
        (of.POSITIVE, [0.0, 1.0], 1),
        (of.one_of(0, 1), [0, 1, 2], 1),
        (of.ASCENDING_IN_ROWS, [[1.0, 1.0, 2.0], [1.0, 0.0, 2.0], [0.0, np.nan, 1.0]], 2),
        (of.STRICTLY_ASCENDING, [0, 1, 1, 3, 2, 4], 2),
        (of.ASCENDING, [0, 1, 1, 3, 2, 4], 1),
        (of.DESCENDING, [4, 4, 3, 5, 0, 0], 1),
        (of.DISTINCT_IN_ROWS, [[0, 1, 2], [3, 4, 3], [5, 5, 5]], 2),
        (of.distinct_in_rows(-1), [[0, -1, -1], [3, 3, -1]], 1),
        (of.NONE_BEHIND, [[0, 1, -1], [0, -1, 1]], 1),
        (of.NOT_THE_ROW_ITSELF, [[1, 2], [0, 1], [2, 0]], 2),
        (of.PERMUTATION, [2, 0, 1, 5, 4, 3], 0),
        (of.PERMUTATION, [2, 0, 1, 5, 4, 4], 1),
        (of.PERMUTATION, [1, 1, 1, 3, 4, 5], 1),
        (of.SUM_TO_ONE, [[0.5, 0.5], [0.5, 0.6], [3.0, -2.0]], 1),
        (of.TO_ALL_POINTS, [0, 2, 2, 6], 0),
        (of.TO_ALL_POINTS, [0, 2, 2, 5], 1),
    ],
)
def test_rows_that_break_an_invariant_are_counted_whatever_the_blocks(invariant, values, count, rows):
    expected = count if invariant is not of.TO_ALL_POINTS else None
    found = broken(invariant, np.array(values), rows)
    assert found == expected if expected is not None else bool(found) == bool(count)


def test_an_array_of_no_blocks_breaks_nothing():
    assert count_broken((of.FINITE, of.PERMUTATION), []) == {of.FINITE.text: 0, of.PERMUTATION.text: 0}
