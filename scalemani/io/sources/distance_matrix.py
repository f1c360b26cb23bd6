"""Distances between all points, in the place of points: read once by rows, of which the nearest neighbours are kept."""

import numpy as np

from scalemani.config.limits import check_limit
from scalemani.config.validation import check_finite_block
from scalemani.errors import DataError
from scalemani.io.sources.base import PointsSource, Source
from scalemani.io.sources.neighbor_lists import NeighborLists, refuse_rows

BYTES_AT_ONCE = 2**24  # of the distances that are looked through at once


class DistanceMatrix(Source):
    """The distances (N, N) between N points, zero between a point and itself.

    Parameters
    ----------
    distances : (N, N), read by rows

    Raises
    ------
    DataError
        For what is not square, and for rows that are too long.
    """

    def __init__(self, distances: PointsSource) -> None:
        if distances.shape[0] != distances.shape[1]:
            raise DataError(
                f"distances between all points must be a square matrix (N, N), got {distances.shape} in "
                f"{distances.description}: give points with another metric than precomputed"
            )
        super().__init__(distances.shape, distances.dtype, distances.description)
        check_limit("dense row", self.shape[1] * self.dtype.itemsize, f"a row of {self.description}")
        self.distances = distances

    @property
    def n_neighbors(self) -> int:
        """The neighbours a point: all others."""
        return self.shape[0] - 1

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop) of the distances."""
        return self.distances.read(start, stop)

    def nearest(self, n_neighbors: int) -> NeighborLists:
        """Return the lists of the nearest neighbours of every point, ties by index.

        Raises
        ------
        DataError
            For distances that are negative, not finite, or not zero between a point and itself, and for points that are
            in each other's lists at different distances.
        """
        n_points = self.shape[0]
        indices, distances = np.empty((n_points, n_neighbors), np.int64), np.empty((n_points, n_neighbors))
        step = max(1, BYTES_AT_ONCE // (n_points * self.dtype.itemsize))
        for start in range(0, n_points, step):
            block = self._checked(start, min(start + step, n_points))
            for row, away in enumerate(block, start):
                listed = smallest(away, row, n_neighbors)
                indices[row], distances[row] = listed, away[listed]
        return NeighborLists(indices, distances, self.description)

    def _checked(self, start: int, stop: int) -> np.ndarray:
        block = self.read(start, stop)
        check_finite_block(block, start, f"distances in {self.description}")
        refuse_rows(block.min(axis=1) < 0, "have negative distances", self.description, start)
        own = np.diagonal(block, start)
        refuse_rows(
            np.not_equal(own, 0), "have a distance from the point to itself that is not zero", self.description, start
        )
        return block


def smallest(away: np.ndarray, row: int, n_smallest: int) -> np.ndarray:
    """Return the places of the smallest distances of one row, ascending, equal ones by their place, without its own.

    Parameters
    ----------
    away : (N,) distances of a point
    n_smallest : how many, below N
    """
    bound = np.partition(away, n_smallest)[n_smallest]  # one more: its own is among the smallest, being zero
    near = np.flatnonzero(away <= bound)
    near = near[near != row]
    return near[np.argsort(away[near], kind="stable")][:n_smallest]
