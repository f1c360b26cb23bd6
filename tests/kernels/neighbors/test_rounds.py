"""Which round comes next, and candidates without what is known."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scalemani.kernels.neighbors.rounds import (
    FIRST_DRAWS,
    Round,
    next_round,
    next_round_of_leaves,
    without_known,
)

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


def rounds_of_leaves(asked, missed, left_by_draw, left_by_near, most_draws=100):
    """How often each round draws leaders, 0 among neighbours, -1 for all points; and what each misses."""
    rounds, misses = [Round(0, 0, draws=FIRST_DRAWS, of_leaves=True)], [missed]
    while len(rounds) < 40:
        following = next_round_of_leaves(rounds, [1 - missed for missed in misses], asked, most_draws)
        if following is None:
            break
        assert following.of_leaves
        rounds.append(following)
        left = 0 if following.exact else left_by_draw**following.draws if following.draws else left_by_near
        misses.append(left * misses[-1])
    return [-1 if one.exact else one.draws for one in rounds], misses


def test_neighbours_of_neighbours_follow_two_draws_where_these_miss_little():
    assert rounds_of_leaves(0.9, 0.2, 0.5, 0.4)[0] == [2, 0]


def test_as_many_draws_follow_as_what_is_missing_asks_for():
    draws, misses = rounds_of_leaves(0.95, 0.4, 0.5, 0.7)
    assert draws == [2, 0, 2, 0]
    assert misses[-1] <= 0.05


def test_leaders_are_drawn_again_where_neighbours_of_neighbours_bring_little():
    draws, misses = rounds_of_leaves(0.99, 0.3, 0.6, 0.9)
    assert draws[:2] == [2, 0]
    assert [draws[i] > 0 for i in (2, 3, 4)] == [True, False, True]
    assert misses[-1] <= 0.01


def test_all_points_are_compared_where_that_costs_less_than_the_draws():
    assert rounds_of_leaves(0.99, 0.5, 0.7, 0.4, most_draws=3)[0] == [2, 0, -1]
    assert rounds_of_leaves(1.0, 0.5, 0.7, 0.4)[0] == [2, 0, -1]


def test_a_recall_that_leaves_reach_ends_the_search():
    assert rounds_of_leaves(0.95, 0.04, 0.5, 0.4)[0] == [2]


@given(st.integers(0, 2**32 - 1))
def test_known_neighbours_are_no_candidates(seed):
    draws = np.random.default_rng(seed)
    candidates = draws.integers(-1, 12, (6, 5)).astype(np.int32)
    known = draws.integers(0, 12, (6, 4)).astype(np.int32)
    expected = candidates.copy()
    for row, values in zip(expected, known, strict=True):
        row[np.isin(row, values)] = -1
    np.testing.assert_array_equal(without_known(candidates, known), expected)
