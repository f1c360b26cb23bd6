"""New points in a finished embedding: of any kind, by blocks, each placed on its own."""

import numpy as np

from scalemani.errors import ConfigError, DataError
from scalemani.new_points.account import Account, Placement
from scalemani.new_points.by_affinities import read_affinity_placement
from scalemani.new_points.by_axes import read_axes_placement
from scalemani.new_points.by_descent import read_descent_placement
from scalemani.new_points.by_landmarks import read_landmark_placement
from scalemani.new_points.by_paths import placed_by_paths, read_path_placement
from scalemani.records.embeddings import StoredDiscriminants
from scalemani.records.landmarks import StoredAffinityWeights
from scalemani.routes import PRECOMPUTED
from scalemani.runs.opened import Run
from scalemani.sources import PointsSource, map_points
from scalemani.sources.base import read_rows
from scalemani.validation import check_finite_block

ROWS_AT_ONCE = 65536
NEEDS_POINTS = (
    "placing new points needs the points that were embedded, and this embedding was made of neighbours alone, or of "
    "affinities (metric or affinity precomputed): embed the points themselves"
)


def read_placement(run: Run, in_memory: bool = False) -> Placement:
    """Return what places new points in a run.

    `in_memory` reads all that is needed of its store, which may go then.
    """
    if run.metric == PRECOMPUTED:
        raise ConfigError(NEEDS_POINTS)
    if run.last_stage == "layout":
        return read_descent_placement(run, in_memory)
    if run.last_stage == StoredDiscriminants.STAGE:
        return read_axes_placement(run)
    if placed_by_paths(run):
        return read_path_placement(run, in_memory)
    if StoredAffinityWeights.STAGE in run.keys:
        return read_affinity_placement(run, in_memory)
    return read_landmark_placement(run)


def check_features(points: PointsSource, n_features: int) -> None:
    """Refuse points with other columns than those that were embedded."""
    if points.shape[1] != n_features:
        raise DataError(
            f"{points.description} has {points.shape[1]} features, the embedding was made of {n_features} "
            "features: give points with the same columns"
        )


class NewPoints:
    """The coordinates of new points as a source of rows, computed as they are read.

    Parameters
    ----------
    placement : the finished embedding, as `read_placement` returns it.
    points : (N, D), the points as given; read by rows, and mapped as the metric of the run maps them.

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
    remote = False

    def __init__(self, placement: Placement, points: PointsSource) -> None:
        n_features, n_components = placement.shape
        check_features(points, n_features)
        self._points, self._placement = map_points(placement.metric, points), placement
        self.account = Account(placement.spacing, remark=getattr(points, "remark", ""))
        self.shape = (points.shape[0], n_components)
        self.preferred_rows: int | None = max(ROWS_AT_ONCE, points.preferred_rows or 0)
        self.sequential = points.sequential
        self.description = f"the coordinates of {points.description}"

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the coordinates (stop - start, d) float64 of rows [start, stop)."""
        rows = read_rows(self._points, start, stop, self._placement.sparse)
        check_finite_block(rows, start)
        placed = self._placement.place(rows)
        self.account.add(start, self._placement.reach.beyond(rows), placed)
        return placed.coordinates

    def read_all(self) -> np.ndarray:
        """Return the coordinates (N, d) float64 of all points, read by blocks."""
        n_points, step = self.shape[0], self.preferred_rows or ROWS_AT_ONCE
        coordinates = np.empty(self.shape)
        for start in range(0, n_points, step):
            stop = min(start + step, n_points)
            coordinates[start:stop] = self.read(start, stop)
        return coordinates
