"""Tiles of exact search: their rows, and rounds in which each pair meets once."""

import pytest

from scalemani.kernels.neighbors.tiles import LEAST_ROWS, MOST_ROWS, pair_rounds, tile_rows


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9])
def test_rounds_hold_every_pair_once_and_no_tile_twice(count):
    rounds = pair_rounds(count)
    for pairs in rounds[1:]:
        assert len({tile for pair in pairs for tile in pair}) == 2 * len(pairs)
    pairs = [tuple(sorted(pair)) for pairs in rounds for pair in pairs]
    assert sorted(pairs) == [(i, j) for i in range(count) for j in range(i, count)]


@pytest.mark.parametrize("n_rows", [1, 255, 5000, 29_523, 10**6])
def test_tiles_are_many_where_they_are_not_small(n_rows):
    rows = tile_rows(n_rows)
    assert rows % LEAST_ROWS == 0
    assert LEAST_ROWS <= rows <= MOST_ROWS
    assert rows in (LEAST_ROWS, MOST_ROWS) or 8 <= n_rows / rows <= 16
