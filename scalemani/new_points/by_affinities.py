"""New points in an embedding of the variational Nystrom method: the mean of landmarks by affinities to neighbours."""

from dataclasses import dataclass, field

import numpy as np

from scalemani.kernels.rows.compressed import Points
from scalemani.new_points.account import Placed
from scalemani.new_points.by_neighbors import NeighborPlacement, query_affinities, read_training_points
from scalemani.records.affinities import StoredNormalizedAffinities, StoredSymmetricAffinities
from scalemani.records.landmarks import StoredLandmarks
from scalemani.records.points import StoredWorkPoints
from scalemani.runs.opened import Run


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
