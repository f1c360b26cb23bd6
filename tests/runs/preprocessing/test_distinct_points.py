"""Distinct points are read as rows of the source they come from, with what is beside their first rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.io.sources import open_points
from scalemani.io.sources.base import read_rows
from scalemani.io.sources.side_data import with_init, with_weights
from scalemani.kernels.rows.equal_rows import digests_of_rows, group_digests
from scalemani.runs.preprocessing.duplicates import distinct_points

RNG = np.random.default_rng(0)
ORIGINALS = RNG.random((40, 6)) * (RNG.random((40, 6)) < 0.5)
POINTS = ORIGINALS[RNG.integers(0, 40, 300)]
GROUPS, FIRST_ROWS = group_digests(digests_of_rows(POINTS))


def merged(source):
    return distinct_points(source, GROUPS, FIRST_ROWS)


@pytest.mark.parametrize("given", [POINTS, sp.csr_matrix(POINTS)], ids=["dense", "sparse"])
@pytest.mark.parametrize("step", [1, 7, 1024])
def test_any_block_of_distinct_points_is_that_of_their_first_rows(given, step):
    source, expected = merged(open_points(given)), POINTS[FIRST_ROWS]
    assert source.shape == expected.shape
    for start in range(0, len(expected), step):
        stop = min(start + step, len(expected))
        np.testing.assert_array_equal(source.read(start, stop), expected[start:stop])
        np.testing.assert_array_equal(read_rows(source, start, stop, sparse=True).toarray(), expected[start:stop])
    assert (source.nonzeros is None) == (open_points(given).nonzeros is None)


def test_weights_are_numbers_of_rows_or_sums_of_the_weights_that_are_given():
    np.testing.assert_array_equal(merged(open_points(POINTS)).side.weights.values, np.bincount(GROUPS))
    given = RNG.integers(1, 5, len(POINTS))
    found = merged(with_weights(open_points(POINTS), given)).side.weights.values
    np.testing.assert_array_equal(found, [given[group == GROUPS].sum() for group in range(len(FIRST_ROWS))])


def test_side_data_of_distinct_points_are_those_of_their_first_rows():
    init = RNG.normal(size=(len(POINTS), 2))
    found = merged(with_init(open_points(POINTS), init)).side
    np.testing.assert_array_equal(found.init.coordinates, init[FIRST_ROWS])
    assert (found.labels, found.landmarks) == (None, None)


def test_rows_of_points_that_are_left_out_are_those_of_no_point():
    side = merged(open_points(POINTS)).side
    once = side.of_rows(np.array([1, 4, 9]))
    twice = once.of_rows(np.array([1, 2]))
    for found, numbers in ((once, {1: 0, 4: 1, 9: 2}), (twice, {4: 0, 9: 1})):
        assert found.duplicates.points_of_rows.tolist() == [numbers.get(group, -1) for group in GROUPS.tolist()]
        assert len(found.weights.values) == found.duplicates.n_points == len(numbers)
