"""Points that look through a cell, among which its rows look."""

import numpy as np
import pytest

from scalemani.kernels.neighbors.visitors import nearest_visitors

N_CELLS, N_VISITS, N_QUERIES, WIDTH = 7, 120, 60, 9


@pytest.fixture(scope="module")
def visits():
    draws = np.random.default_rng(0)
    cells = np.sort(draws.integers(1, N_CELLS, N_VISITS))  # the first cell has none
    offsets = np.searchsorted(cells, np.arange(N_CELLS + 1))
    visitors, queries = (draws.normal(size=(n, WIDTH)).astype(np.float32) for n in (N_VISITS, N_QUERIES))
    return visitors, offsets, cells, draws.integers(0, N_CELLS, N_QUERIES), queries


@pytest.mark.parametrize("count", [2, 5, 200])
@pytest.mark.parametrize("limit", [0.0, 9.0, np.inf])
def test_the_nearest_visitors_of_its_cell_within_its_limit_are_those_of_a_query(visits, count, limit):
    visitors, offsets, cells, of_query, queries = visits
    limits = np.full(N_QUERIES, limit, np.float32)
    limits[::3] = 4.0
    found = nearest_visitors(visitors, offsets, of_query, queries, limits, count)
    squares = ((queries[:, np.newaxis].astype(float) - visitors) ** 2).sum(axis=2)
    squares[(cells != of_query[:, np.newaxis]) | (squares > limits[:, np.newaxis])] = np.inf
    for row, places in zip(squares, found, strict=True):
        nearest = np.argsort(row)[:count]
        assert set(places[places >= 0]) == set(nearest[np.isfinite(row[nearest])])
        assert np.count_nonzero(places >= 0) == min(count, np.isfinite(row).sum())
    assert found.dtype == np.int32


def test_a_visitor_at_the_limit_is_not_lost_to_rounding():
    draws = np.random.default_rng(1)
    visitors, queries = draws.normal(size=(2, 1000, 48)).astype(np.float32)
    squares = ((visitors.astype(float) - queries) ** 2).sum(axis=1).astype(np.float32)
    offsets = np.arange(1001)
    assert (nearest_visitors(visitors, offsets, np.arange(1000), queries, squares, 3)[:, 0] == np.arange(1000)).all()
