import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.arrays.tiles import (
    LEAST_LIGHT_PANEL,
    LEAST_PANEL,
    LEAST_ROWS,
    MOST_PANEL,
    MOST_ROWS,
    PANELS,
    light_panels,
    pair_rounds,
    row_panels,
    run,
    slices,
    tile_rows,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**5), st.integers(1, 10**5))
def test_slices_hold_every_row_once_and_only_the_last_is_shorter(n_rows, size):
    parts = slices(n_rows, size)
    edges = [0, *(part.stop for part in parts)]
    assert [part.start for part in parts] == edges[:-1]
    assert edges[-1] == n_rows
    assert all(part.stop - part.start == size for part in parts[:-1])
    assert all(0 < part.stop - part.start <= size for part in parts)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 10**8), st.sampled_from([(row_panels, LEAST_PANEL), (light_panels, LEAST_LIGHT_PANEL)]))
def test_panels_are_few_where_rows_are_few_and_never_large(n_rows, panels):
    cut, least = panels
    parts = cut(n_rows)
    sizes = {part.stop - part.start for part in parts[:-1]}
    assert parts[-1].stop == n_rows
    assert all(least <= size <= MOST_PANEL for size in sizes)
    if n_rows <= PANELS * MOST_PANEL:
        assert len(parts) <= PANELS


def test_running_waits_for_every_part_and_hands_on_what_fails():
    seen = []
    run(map(seen.append, [1, 2, 3]))
    assert seen == [1, 2, 3]
    with pytest.raises(ZeroDivisionError):
        run(1 // n for n in (1, 0))


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
