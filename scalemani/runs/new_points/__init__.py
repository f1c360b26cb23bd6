"""New points in a finished embedding: of any kind, by blocks, each placed separately."""

import numpy as np

from scalemani.engine.context import Arrays
from scalemani.io.sources import PointsSource, map_points
from scalemani.io.sources.side_data import NO_CLASS
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.landmarks.kmeans import assign
from scalemani.runs.new_points.neighbors import ROWS_AT_ONCE, check_features
from scalemani.runs.new_points.placements import Placement, read_placement, refusal_of, spread
from scalemani.runs.new_points.quality import Account
from scalemani.runs.opened import Run
from scalemani.runs.preprocessing.gaps import usable_rows
from scalemani.stages.arrays.embeddings import StoredClustering, StoredPlacement
from scalemani.stages.clustering import unit_rows

__all__ = ["NewPoints", "Placement", "centers_of", "nearest_clusters", "place_rows", "read_placement", "refusal_of"]


def place_rows(placement: Placement, points: PointsSource, start: int, stop: int) -> Arrays:
    """Return rows [start, stop) of points (N, D) placed.

    Rows with a gap, where these are left out, have coordinates of NaN.
    """
    rows, usable = usable_rows(points, placement.metric, start, stop, placement.sparse)
    placed = placement.place(rows)
    if len(usable) == stop - start:
        return placed
    return {one: spread(values, usable, stop - start) for one, values in placed.items()}


class NewPoints(PointsSource):
    """The coordinates of new points as a source of rows, computed as they are read.

    Parameters
    ----------
    placement : the finished embedding, as `read_placement` returns it.
    points : (N, D), not mapped yet; read by rows, and mapped as the metric of the run maps them.

    Attributes
    ----------
    account : what is known of the points that were read so far: certificates and warnings.

    Raises
    ------
    DataError
        Where the points have other columns than those that were embedded, a value that is not finite, or a row that the
        metric cannot take.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, placement: Placement, points: PointsSource) -> None:
        n_features, n_components = placement.shape
        check_features(points, n_features)
        self._points, self._placement = map_points(placement.metric, points), placement
        self.account = Account(points.remark)
        self.shape = (points.shape[0], n_components)
        self.preferred_rows = max(ROWS_AT_ONCE, points.preferred_rows or 0)
        self.sequential = points.sequential
        self.description = f"the coordinates of {points.description}"

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the coordinates (stop - start, d) float64 of rows [start, stop)."""
        placed = place_rows(self._placement, self._points, start, stop)
        self.account.add(start, placed)
        return placed[StoredPlacement.coordinates]

    def read_all(self) -> np.ndarray:
        """Return the coordinates (N, d) float64 of all points, read by blocks."""
        coordinates = np.empty(self.shape)
        for rows in slices(self.shape[0], self.preferred_rows or ROWS_AT_ONCE):
            coordinates[rows] = self.read(rows.start, rows.stop)
        return coordinates


def centers_of(run: Run) -> np.ndarray:
    """Return the centres (K, m) of spectral clustering, in the leading m columns of the embedding."""
    return run.stored(StoredClustering).centers.read()


def nearest_clusters(coordinates: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the cluster (n,) int32 of coordinates (n, d): of their directions, as k-means took them, the nearest.

    Centres (K, m) have the leading columns. Rows of NaN have none.
    """
    placed = ~np.isnan(coordinates[:, 0])
    clusters = np.full(len(coordinates), NO_CLASS, np.int32)
    clusters[placed] = assign(unit_rows(coordinates[placed, : centers.shape[1]]), centers)[0]
    return clusters
