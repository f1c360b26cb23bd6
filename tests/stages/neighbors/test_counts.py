"""How much a search looks at, by the numbers that a user can set."""

import pytest

from scalemani.chunked.task import Dimensions
from scalemani.params import Parameters
from scalemani.stages.neighbors.counts import n_candidates, n_listed, n_probes


def asked(**values):
    return Parameters().with_values({"neighbors": values})


def sized(n_points):
    return Dimensions(n_points, 10, "float32", 1024)


def test_cells_to_visit_grow_with_the_points_and_the_length_of_lists():
    few = asked(n_neighbors=30, few_points=1000, few_probes=2, many_probes=5, more_probes=7)
    many = asked(n_neighbors=31, few_points=1000, few_probes=2, many_probes=5, more_probes=7)
    assert [n_probes(sized(n_points), few) for n_points in (1000, 1001)] == [2, 5]
    assert [n_probes(sized(n_points), many) for n_points in (1000, 1001)] == [9, 12]


def test_a_number_of_cells_that_is_given_decides_for_any_number_of_points():
    assert {n_probes(sized(n_points), asked(n_neighbors=10, n_probes=4)) for n_points in (10, 10**9)} == {4}


@pytest.mark.parametrize(("k", "expected"), [(30, [60, 60]), (31, [53, 31])])
def test_short_lists_settle_as_many_candidates_in_all_rounds_and_long_ones_more_in_the_first(k, expected):
    params = asked(n_neighbors=k, few_candidates=2.0, first_candidates=1.7, later_candidates=1.0)
    assert [n_candidates(params, number) for number in (0, 1)] == expected


def test_the_head_of_a_list_is_looked_at_and_not_more_than_there_is():
    assert [n_listed(asked(n_neighbors=k, most_listed=20)) for k in (5, 20, 90)] == [5, 20, 20]
