"""Distinct points with the rows that are equal to each of them: a row of the input is one of them."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from scalemani.sources.base import PointsSource, nonzeros_of, read_rows
from scalemani.sources.beside import PointsBeside, found_beside, without_beside
from scalemani.sources.beside.labelled import LabelledPoints
from scalemani.sources.beside.weighted import WeightedPoints
from scalemani.store.objects import digest

LEFT_OUT = -1  # in the place of a point: the row is of one that was left out


@dataclass(frozen=True)
class Duplicates:
    """The digest of which point each row is, how many rows there are, and how many points these are."""

    digest: str
    n_rows: int
    n_points: int

    def __str__(self) -> str:
        return f"{self.n_rows} rows are {self.n_points} distinct points, each weighs as much as its rows"


class DistinctPoints(PointsBeside):
    """A source of distinct points (N, D) that knows which of them each row of the input is.

    Parameters
    ----------
    points : (N, D)
    points_of_rows : (n,) int64, the point of each row of the input; -1 for rows of points that were left out

    Attributes
    ----------
    points_of_rows : as given
    duplicates : their digest and numbers
    """

    def __init__(self, points: PointsSource, points_of_rows: np.ndarray) -> None:
        super().__init__(points)
        self.points_of_rows = points_of_rows
        self.duplicates = Duplicates(digest(points_of_rows.data), len(points_of_rows), points.shape[0])

    def _of_rows(self, points: PointsSource, rows: np.ndarray) -> "DistinctPoints":
        numbers = np.full(self.shape[0] + 1, LEFT_OUT)  # the last one is that of rows left out already
        numbers[rows] = np.arange(len(rows))
        return DistinctPoints(points, numbers[self.points_of_rows])


class SelectedRows:
    """Some rows (M,) of another source, ascending: a source like any other."""

    remote = False  # the rows are in this process

    def __init__(self, points: PointsSource, rows: np.ndarray) -> None:
        self._points, self._rows = points, rows
        self.shape = (len(rows), points.shape[1])
        self.dtype, self.description = points.dtype, points.description
        self.preferred_rows, self.sequential = None, points.sequential
        self.remark, self.held_bytes = getattr(points, "remark", ""), getattr(points, "held_bytes", 0)

    @property
    def nonzeros(self) -> int | None:
        """About as many of those of all rows as there are rows; None where the points are dense."""
        found = nonzeros_of(self._points)
        return None if found is None else round(found * self.shape[0] / self._points.shape[0])

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the selection: (stop - start, D)."""
        found = np.empty((stop - start, self.shape[1]), self.dtype)
        for first, last in self._panels(start, stop):
            rows = self._rows[first:last]
            read, chosen = self._points.read(rows[0], rows[-1] + 1), rows - rows[0]
            read.take(chosen, axis=0, out=found[first - start : last - start], mode="clip")  # "raise" makes a copy
        return found

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) of the selection as sparse rows."""
        panels = []
        for first, last in self._panels(start, stop):
            rows = self._rows[first:last]
            panels.append(read_rows(self._points, rows[0], rows[-1] + 1, sparse=True)[rows - rows[0]])
        return sp.csr_matrix(sp.vstack(panels, format="csr"))

    def _panels(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return parts of a selection whose rows span no more rows of the source than are asked for."""
        panels, first = [], start
        while first < stop:
            bound = np.searchsorted(self._rows[first:stop], self._rows[first] + (stop - start))
            panels.append((first, first + int(bound)))
            first += int(bound)
        return panels


def distinct_points(source: PointsSource, points_of_rows: np.ndarray, first_rows: np.ndarray) -> DistinctPoints:
    """Return the distinct points of a source, with what is beside these, and their weights.

    Parameters
    ----------
    source : (n, D)
    points_of_rows : (n,) the point of each row
    first_rows : (N,) the first row of each point, ascending
    """
    points: PointsSource = SelectedRows(without_beside(source), first_rows)
    weighted = found_beside(source, WeightedPoints)
    if isinstance(source, PointsBeside):
        points = source.of_rows(points, first_rows)
    labelled = found_beside(source, LabelledPoints)
    if labelled is not None:
        points = labelled.of_distinct(points, points_of_rows)
    given = None if weighted is None else weighted.weights.values
    weights = np.bincount(points_of_rows, given, len(first_rows))
    return DistinctPoints(WeightedPoints(points, weights), points_of_rows)
