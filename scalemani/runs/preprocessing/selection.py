"""Some rows of points, as a separate source."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.io.sources import PointsSource
from scalemani.io.sources.base import read_rows


class SelectedRows(PointsSource):
    """Some rows (M,) of another source, ascending: a source like any other.

    `together` rows of the source may be read at once for those among them, also where fewer are requested.
    """

    def __init__(self, points: PointsSource, rows: np.ndarray, together: int = 1) -> None:
        self._points, self._rows, self._together = points, rows, together
        self.shape = (len(rows), points.shape[1])
        self.dtype, self.description = points.dtype, points.description
        self.sequential, self.remark, self.held_bytes = points.sequential, points.remark, points.held_bytes
        self.column_names = points.column_names
        if points.nonzeros is not None:  # about as many of those of all rows as there are rows
            self.nonzeros = round(points.nonzeros * len(rows) / points.shape[0])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the selection: (stop - start, D)."""
        return np.concatenate([np.empty((0, self.shape[1]), self.dtype), *self._parts(start, stop, sparse=False)])

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) of the selection as sparse rows."""
        return sp.csr_matrix(sp.vstack(self._parts(start, stop, sparse=True), format="csr"))

    def _parts(self, start: int, stop: int, sparse: bool) -> list[Any]:
        """Return parts of a selection, each read from no more rows of the source than are requested or allowed."""
        parts, first, width = [], start, max(stop - start, self._together)
        while first < stop:
            last = first + int(np.searchsorted(self._rows[first:stop], self._rows[first] + width))
            rows = self._rows[first:last]
            parts.append(read_rows(self._points, rows[0], rows[-1] + 1, sparse)[rows - rows[0]])
            first = last
        return parts


def joined(one: list[Any], other: list[Any]) -> list[Any]:
    """Return the results of consecutive blocks; the list of the first is lengthened."""
    one.extend(other)
    return one
