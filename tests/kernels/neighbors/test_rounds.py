"""Which round comes next, and candidates without what is known."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scalemani.kernels.neighbors.rounds import Round, next_round, next_round_of_leaves, without_known

SHARES = st.floats(0.0, 1.0)


def test_the_search_ends_where_the_recall_is_reached():
    assert next_round([Round(0, 8)], [0.95], 0.95, 100, 16) is None


def test_neighbours_of_neighbours_follow_cells():
    assert next_round([Round(0, 8)], [0.5], 0.95, 100, 16) == Round(8, 8)


def test_neighbours_of_neighbours_are_looked_at_again_where_that_is_enough():
    assert next_round([Round(0, 8), Round(8, 8)], [0.5, 0.94], 0.95, 100, 16) == Round(8, 8)


def test_further_cells_are_visited_where_it_is_not():
    assert next_round([Round(0, 8), Round(8, 8)], [0.80, 0.85], 0.95, 100, 16) == Round(8, 24, 2)
    assert next_round([Round(0, 8), Round(8, 8)], [0.80, 0.85], 0.95, 10, 16) == Round(8, 10, 2)


@given(SHARES, st.lists(SHARES, min_size=1, max_size=3), st.integers(1, 500))
def test_every_search_ends_and_visits_every_cell_before_it_gives_up(asked, found, n_cells):
    rounds, recalls = [Round(0, min(3, n_cells))], [found[0]]
    while (following := next_round(rounds, recalls, asked, n_cells, 16)) is not None:
        assert following.first in (rounds[-1].last, 0)
        rounds.append(following)
        recalls.append(found[min(len(rounds), len(found)) - 1])
        assert len(rounds) < 40
    assert recalls[-1] >= asked or (rounds[-1].last == n_cells and rounds[-1].candidates == 16)


LEAVES, NEAR = Round(0, 0, over_leaves=True), Round(0, 0)


def rounds_of_leaves(asked, missing_by_leaves, left_by_near):
    """The rounds of a search whose rounds over leaves and among neighbours leave given shares of what was missing."""
    rounds, recalls = [LEAVES], [1 - missing_by_leaves]
    while len(rounds) < 40 and (following := next_round_of_leaves(rounds, recalls, asked)) is not None:
        rounds.append(following)
        left = missing_by_leaves if following.over_leaves else left_by_near
        recalls.append(1 - left * (1 - recalls[-1]))
    return rounds, recalls


def test_two_rounds_over_leaves_come_first_then_neighbours_of_neighbours():
    rounds, _ = rounds_of_leaves(0.95, 0.4, 0.35)
    assert rounds == [LEAVES, LEAVES, NEAR, NEAR]


def test_more_rounds_over_leaves_come_first_where_two_miss_much():
    rounds, _ = rounds_of_leaves(0.95, 0.6, 0.5)
    assert rounds == [LEAVES, LEAVES, LEAVES, LEAVES, NEAR, NEAR]


def test_leaves_are_searched_again_where_neighbours_of_neighbours_bring_little():
    rounds, recalls = rounds_of_leaves(0.99, 0.5, 0.9)
    assert rounds[:6] == [LEAVES, LEAVES, LEAVES, LEAVES, NEAR, LEAVES]
    assert recalls[-1] >= 0.99


def test_a_recall_that_leaves_reach_ends_the_search():
    assert rounds_of_leaves(0.95, 0.04, 0.5)[0] == [LEAVES]


@given(st.integers(0, 2**32 - 1))
def test_known_neighbours_are_no_candidates(seed):
    draws = np.random.default_rng(seed)
    candidates = draws.integers(-1, 12, (6, 5)).astype(np.int32)
    known = draws.integers(0, 12, (6, 4)).astype(np.int32)
    expected = candidates.copy()
    for row, values in zip(expected, known, strict=True):
        row[np.isin(row, values)] = -1
    np.testing.assert_array_equal(without_known(candidates, known), expected)
