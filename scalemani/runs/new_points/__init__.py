"""New points in a finished embedding: of any kind, by blocks, each placed on its own."""

from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from scalemani.config.methods import part_of
from scalemani.config.routes import PACKAGES
from scalemani.config.stages import PRECOMPUTED
from scalemani.config.validation import check_finite_block
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import PointsSource, map_points
from scalemani.io.sources.base import read_rows
from scalemani.kernels.rows.compressed import Points
from scalemani.runs.new_points.account import Account, Placed, Placement
from scalemani.runs.new_points.by_descent import read_descent_placement
from scalemani.runs.new_points.by_landmarks import read_landmark_placement
from scalemani.runs.new_points.by_neighbors import NeighborPlacement, query_affinities, read_training_points
from scalemani.runs.opened import Run
from scalemani.stages.arrays.affinities import StoredNormalizedAffinities, StoredSymmetricAffinities
from scalemani.stages.arrays.landmarks import StoredAffinityWeights, StoredLandmarks
from scalemani.stages.arrays.points import StoredWorkPoints


@dataclass(frozen=True)
class AffinityPlacement(NeighborPlacement):
    """All that placing a point takes.

    `landmarks` (N,) says which of the training points are landmarks; `densities` (N,) is what affinities are divided
    by, ones where they are not normalised by density.
    """

    landmarks: np.ndarray = field(repr=False)
    densities: np.ndarray = field(repr=False)

    def place(self, points: Points) -> Placed:
        """Return points (n, D) placed: each at the mean of the landmarks among its neighbours, by affinity.

        A point without any takes the mean of all its neighbours, and one that equals a training point its place.
        """
        placed = np.zeros((points.shape[0], self.positions.shape[1]))
        if len(placed) == 0:
            return Placed(placed, np.empty(0))
        found = self.index.neighbors(points, self.params.affinity_neighbors)
        affinities = query_affinities(found.distances.astype(np.float64) ** 2, self.params, self.sigma)
        affinities /= self.densities[found.indices]
        direct = affinities * self.landmarks[found.indices]
        weights = np.where(direct.any(axis=1, keepdims=True), direct, affinities)
        weights /= weights.sum(axis=1, keepdims=True)
        # Neighbour by neighbour, so that the order of the sum does not depend on the number of rows.
        for neighbor, weight in zip(found.indices.T, weights.T, strict=True):
            placed += weight[:, np.newaxis] * self.positions[neighbor]
        known = found.distances[:, 0] == 0
        placed[known] = self.positions[found.indices[known, 0]]
        return Placed(placed, found.distances[:, 0].astype(np.float64))


def read_affinity_placement(run: Run, in_memory: bool) -> AffinityPlacement:
    """Return the placement of a finished run; `in_memory` reads its points, so that its store may go."""
    order = StoredWorkPoints(run.group("work_points")).input_rows.read()
    chosen = np.zeros(len(order), np.bool_)
    chosen[StoredLandmarks(run.group("landmarks")).rows.read()] = True
    densities = np.ones(len(order))
    if StoredNormalizedAffinities.STAGE in run.keys:
        degrees = StoredSymmetricAffinities(run.group("symmetric_affinities")).read_degrees(len(order))
        densities = degrees**run.params.normalized_affinities.alpha
    return AffinityPlacement(*read_training_points(run, in_memory), chosen[order], densities)


ROWS_AT_ONCE = 65536
NEEDS_POINTS = (
    "placing new points needs the points that were embedded, and this embedding was made of neighbours alone, or of "
    "affinities (metric or affinity precomputed): embed the points themselves"
)


def placing_module(run: Run) -> ModuleType | None:
    """Return the module that places new points in a way that is its method's own; None for other runs.

    It has `places(run)`, whether it serves a run; `read_placement(run, in_memory)`; `AMONG_NEIGHBORS`, whether points
    are placed among their neighbours; and, unless landmarks are what it holds, `placement_held(run, points, rows)`.
    """
    own = filter(None, (part_of(PACKAGES.get(stage, ""), "new_points") for stage in run.keys))
    return next((module for module in own if module.places(run)), None)


def read_placement(run: Run, in_memory: bool = False) -> Placement:
    """Return what places new points in a run.

    `in_memory` reads all that is needed of its store, which may go then.
    """
    if run.metric == PRECOMPUTED:
        raise ConfigError(NEEDS_POINTS)
    if run.last_stage == "layout":
        return read_descent_placement(run, in_memory)
    if own := placing_module(run):
        placement: Placement = own.read_placement(run, in_memory)
        return placement
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
