"""The rows of results: those that were given, in their order.

Arrays are stored by point. Results are without the rows of components that were left out, and have as many rows for a
point as there were equal ones.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalemani.engine.reading import ArrayReader
from scalemani.io.sources.lazy import LazyRows


@dataclass(frozen=True)
class ResultRows:
    """The rows of results (M, ...), which were given in this order, and the stored point that each of them is.

    `n_given` rows were given, of which results have `given` (M,), ascending, None for all of them; `points` (M,) are
    stored rows in input order, None where each row is a point of its own.
    """

    n_given: int
    given: np.ndarray | None = None
    points: np.ndarray | None = None

    def __len__(self) -> int:
        return self.n_given if self.given is None else len(self.given)

    @functools.cached_property
    def of_points(self) -> np.ndarray | None:
        """The first row (N,) of the results of each stored point, ascending; None where each row is a point."""
        return None if self.points is None else np.unique(self.points, return_index=True)[1]

    def numbered(self, points: np.ndarray) -> np.ndarray:
        """Return stored rows as the first rows of the results that they are."""
        return points if self.of_points is None else self.of_points[points]

    def first_rows(self, start: int, stop: int) -> np.ndarray:
        """Return those of rows [start, stop) of the results that are the first of their points."""
        if self.of_points is None:
            return np.arange(start, stop)
        return self.of_points[slice(*np.searchsorted(self.of_points, [start, stop]))]

    def points_at(self, rows: Any) -> Any:
        """Return the stored rows of rows of the results."""
        return rows if self.points is None else self.points[rows]

    def take(self, values: np.ndarray) -> np.ndarray:
        """Return those of values (n_given, ...) that belong to the rows of the results (M, ...)."""
        return values if self.given is None else values[self.given]

    def spread(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Return values (M, ...) of the rows of the results by given rows (n_given, ...), `fill` in rows left out."""
        if self.given is None:
            return values
        filled = np.full((self.n_given, *values.shape[1:]), fill, values.dtype)
        filled[self.given] = values
        return filled

    def by_rows(self, stored: ArrayReader, description: str) -> Any:
        """Return a stored row array by the rows of the results: a zarr array, or rows read as they are asked for."""
        array = stored.zarr()
        if self.points is None:
            return array
        points = self.points

        def rows(start: int, stop: int) -> np.ndarray:
            return stored.gather(points[start:stop])

        return LazyRows((len(self), *array.shape[1:]), np.dtype(array.dtype), rows, description, array.chunks[0])
