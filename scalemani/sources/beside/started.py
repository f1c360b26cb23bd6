"""Points with coordinates from which a descent starts, for all of them or for some."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scalemani.errors import DataError
from scalemani.sources.base import PointsSource
from scalemani.sources.beside import PointsBeside
from scalemani.store.objects import digest
from scalemani.validation import N_REPORTED_ROWS, check_dtype, check_shape, refuse_masked

LARGEST_START = 1e6  # a descent ends with an error where a coordinate comes beyond ten times this


@dataclass(frozen=True)
class GivenStart:
    """The digest of the coordinates of all points, and how many columns these have."""

    digest: str
    n_components: int


class StartedPoints(PointsBeside):
    """A source of points that knows where a descent starts.

    Parameters
    ----------
    points : (N, D)
    coordinates : (N, d) real numbers; a row of NaN for a point that starts among its neighbours
    name : what messages call the coordinates

    Attributes
    ----------
    coordinates : (N, d) float64
    start : their digest and number of columns

    Raises
    ------
    DataError
        For other than N rows, rows of which a part is NaN, values beyond 1e6, and coordinates for no point at all.
    """

    def __init__(self, points: PointsSource, coordinates: Any, name: str = "init") -> None:
        super().__init__(points)
        refuse_masked(coordinates, name)
        given = np.asarray(coordinates)
        check_dtype(given.dtype, name)
        check_shape(given.shape, name)
        n_points, n_components = points.shape[0], given.shape[1]
        if len(given) != n_points:
            raise DataError(
                f"{name} has {len(given)} rows for {n_points} points: give each point one, of NaN where it has no start"
            )
        found = np.array(given, np.float64, order="C")
        unknown = np.isnan(found)
        without = unknown.all(axis=1)
        wrong = np.flatnonzero((unknown.any(axis=1) & ~without) | (np.abs(found) > LARGEST_START).any(axis=1))
        if len(wrong):
            raise DataError(
                f"{name} must hold finite numbers up to {LARGEST_START:g}, or NaN in all columns of a row, and "
                f"does not in {len(wrong)} rows: first {', '.join(map(str, wrong[:N_REPORTED_ROWS]))}"
            )
        if without.all():
            raise DataError(f"{name} has coordinates for none of the {n_points} points: give those of one at least")
        found[without] = np.nan  # of one sign and payload
        self.coordinates = found
        self.start = GivenStart(digest(f"{n_components} ".encode() + found.tobytes()), n_components)

    def _of_rows(self, points: PointsSource, rows: np.ndarray) -> "StartedPoints":
        return StartedPoints(points, self.coordinates[rows])
