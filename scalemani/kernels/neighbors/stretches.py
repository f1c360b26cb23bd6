"""Stretches: consecutive work rows of one cell.

A cell is one stretch while work rows are sorted by cell. Points that are appended come behind the others, sorted among
themselves, so that every other row keeps its place: their cells have one more stretch then.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.grouping import group_by


class Stretches(NamedTuple):
    """Stretch s is work rows [offsets[s], offsets[s + 1]) of the cell cells[s]: (S + 1,) int64 and (S,) int32."""

    offsets: np.ndarray
    cells: np.ndarray

    def among(self, start: int, stop: int) -> "Stretches":
        """Return the stretches of the rows from `start` to `stop`, which are counted from `start` on."""
        first = int(np.searchsorted(self.offsets, start, side="right")) - 1
        last = int(np.searchsorted(self.offsets, stop, side="left"))
        offsets = np.clip(self.offsets[first : last + 1], start, stop) - start
        return Stretches(offsets, self.cells[first:last])

    def cells_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the cells of work rows, int32 of any shape; -1 of -1."""
        return np.where(rows < 0, np.int32(-1), self.cells[np.searchsorted(self.offsets, rows, side="right") - 1])

    def continued(self, cells: np.ndarray) -> tuple[np.ndarray, "Stretches"]:
        """Return the order (n,) int64 in which points come behind the others, and the stretches of all.

        Parameters
        ----------
        cells : (n,) int, the cells of the points that come
        """
        order, offsets = group_by(cells, int(cells.max(initial=-1)) + 1)
        filled = np.flatnonzero(np.diff(offsets))
        ends = self.offsets[-1] + offsets[filled + 1]
        return order, Stretches(np.append(self.offsets, ends), np.append(self.cells, filled.astype(np.int32)))

    def by_cell(self, n_cells: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the work rows (N,) int64 cell after cell, ascending in each, and where cells begin: (C + 1,) int64."""
        order, _ = group_by(self.cells, n_cells)
        lengths = np.diff(self.offsets)[order]
        ends = np.cumsum(lengths)
        rows = np.repeat(self.offsets[:-1][order] - (ends - lengths), lengths) + np.arange(self.offsets[-1])
        sizes = np.bincount(self.cells, np.diff(self.offsets), n_cells).astype(np.int64)
        return rows, np.concatenate([[0], np.cumsum(sizes)])


def stretches_of_sorted(cell_offsets: np.ndarray) -> Stretches:
    """Return the stretches of rows that are sorted by cell: cell c is rows [offsets[c], offsets[c + 1])."""
    return Stretches(cell_offsets, np.arange(len(cell_offsets) - 1, dtype=np.int32))
