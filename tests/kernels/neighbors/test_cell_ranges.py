"""Ranges of work rows of one cell, as points come behind others in several goes: each row has its cell."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.neighbors.cells import cell_ranges_of_sorted

N_CELLS = 5
GOES = st.lists(st.lists(st.integers(0, N_CELLS - 1), max_size=12), min_size=1, max_size=4)


def grown(goes):
    """The cell of each work row after some goes, and the ranges that say the same."""
    order, offsets = group_by(np.array(goes[0], np.int32), N_CELLS)
    cells, ranges = np.array(goes[0], np.int32)[order], cell_ranges_of_sorted(offsets)
    for go in goes[1:]:
        come = np.array(go, np.int32)
        behind, ranges = ranges.continued(come)
        np.testing.assert_array_equal(behind, np.argsort(come, kind="stable"))
        cells = np.append(cells, come[behind])
    return cells, ranges


@given(GOES)
def test_every_row_has_its_cell_and_cells_list_their_rows(goes):
    cells, ranges = grown(goes)
    np.testing.assert_array_equal(np.repeat(ranges.cells, np.diff(ranges.offsets)), cells)
    rows, offsets = ranges.by_cell(N_CELLS)
    np.testing.assert_array_equal(rows, np.argsort(cells, kind="stable"))
    np.testing.assert_array_equal(np.diff(offsets), np.bincount(cells, minlength=N_CELLS))


@given(GOES, st.data())
def test_the_ranges_of_some_rows_are_counted_from_these_on(goes, data):
    cells, ranges = grown(goes)
    start = data.draw(st.integers(0, len(cells)))
    stop = data.draw(st.integers(start, len(cells)))
    if start == stop:
        return
    offsets, of_cells = ranges.among(start, stop)
    np.testing.assert_array_equal(np.repeat(of_cells, np.diff(offsets)), cells[start:stop])
    assert (offsets[0], offsets[-1]) == (0, stop - start)
