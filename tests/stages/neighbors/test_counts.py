"""How much a search looks at, by the numbers that a user can set."""

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.stages.neighbors.counts import cells_to_visit, n_candidates, n_listed


def asked(**values):
    return Parameters().with_values({"neighbors": values}).resolved("knn-graph")


NEAR = np.array([[3, 1, 4, 5], [1, 3, 0, 2]])


@pytest.mark.parametrize("sought", [0.0, 0.5, 0.6, 0.75, 0.9, 1.0])
def test_cells_are_visited_until_they_hold_the_share_of_neighbours_that_is_sought(sought):
    cells = np.array([[3, 3, 5, -1], [1, 1, 3, 0]])
    held = {1: 4, 2: 5, 3: 6, 4: 7}
    shares = {count: found / 7 for count, found in held.items()}
    expected = min((count for count, share in shares.items() if share >= sought), default=4)
    assert cells_to_visit(NEAR, cells, sought) == expected


def test_neighbours_beyond_all_cells_that_are_given_need_all_of_these():
    assert cells_to_visit(NEAR, np.array([[9, 9], [1, 9]]), 0.5) == 4


@pytest.mark.parametrize(("k", "expected"), [(30, [60, 60]), (31, [53, 31])])
def test_short_lists_settle_as_many_candidates_in_all_rounds_and_long_ones_more_in_the_first(k, expected):
    params = asked(n_neighbors=k, few_candidates=2.0)
    search = Sizes(Dimensions(10**6, 65, "float32", 20480), params)
    assert [n_candidates(search, number) for number in (0, 1)] == expected


@pytest.mark.parametrize(("k", "expected"), [(30, [45, 60]), (31, [46, 31])])
def test_sketches_with_all_dimensions_leave_half_more_candidates_than_neighbours_in_rounds_over_cells(k, expected):
    params = asked(n_neighbors=k, few_candidates=2.0)
    search = Sizes(Dimensions(10**6, 64, "float32", 20480), params)
    assert [n_candidates(search, number) for number in (0, 1)] == expected


def test_the_head_of_a_list_is_looked_at_and_not_more_than_there_is():
    assert [n_listed(asked(n_neighbors=k)) for k in (5, 45, 90)] == [5, 45, 45]


@pytest.mark.parametrize("k", [1, 4, 15, 31, 90])
def test_a_first_round_settles_enough_candidates_to_fill_all_lists(k):
    """A scan of cells keeps four fifths of what it is asked for at least."""
    params = asked(n_neighbors=k, few_candidates=1.0)
    wanted = n_candidates(Sizes(Dimensions(10**6, 784, "float32", 20480), params), 0)
    assert 4 * wanted // 5 >= k


def test_a_search_of_few_cells_and_few_candidates_fills_all_lists():
    points = np.random.default_rng(5).random((400, 12)).astype(np.float32)
    search = {"neighbors.n_probes": 3, "neighbors.max_rounds": 0, "neighbors.few_candidates": 1.0}
    search |= {"partition.cell_points": 16, "partition.sketch_dimensions": 2}
    found = sm.knn_graph(points, 12, "partition", recall=0.1, settings=search)
    assert np.isfinite(found.distances[...]).all()
