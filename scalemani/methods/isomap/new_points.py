"""New points in an Isomap: triangulated by the shortest paths to the landmarks over their neighbours."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from scalemani.engine.context import Arrays
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.task import Dimensions
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.kernels.spectral.linear import Components
from scalemani.methods.isomap.geodesics import StoredGeodesics, StoredIsomap
from scalemani.methods.isomap.kernels import Triangulation, triangulation
from scalemani.runs.new_points.placements import NeighborPlacer, read_training_points
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import StoredPlacement
from scalemani.stages.arrays.landmarks import StoredLandmarkWeights


@dataclass(frozen=True)
class PathPlacer(NeighborPlacer):
    """All that placing a point takes.

    `triangulation` is that of the training points; `paths` returns the distances (l, N) of these, in work order, to
    the landmarks of a part, of which there are `n_parts`.
    """

    triangulation: Triangulation = field(repr=False)
    paths: Callable[[int], np.ndarray] = field(repr=False)
    n_parts: int

    @classmethod
    def read(cls, run: Run, in_memory: bool) -> Self:
        """Return the placer of a finished run; `in_memory` reads all of it, so that its store may go."""
        stored, scaled = run.stored(StoredGeodesics), run.stored(StoredIsomap)
        solution = Components(scaled.eigenvalues.read(), scaled.vectors.read())
        n_landmarks = len(solution.vectors)
        n_parts = stored.n_parts(n_landmarks)
        paths: Callable[[int], np.ndarray] = stored.to_points
        if in_memory:
            paths = [stored.to_points(part) for part in range(n_parts)].__getitem__
        triangulated = triangulation(stored.read_symmetric(n_landmarks), solution)
        return cls(*read_training_points(run, in_memory), triangulated, paths, n_parts)

    @classmethod
    def memory(cls, run: Run, points: Dimensions, rows: int) -> Memory:
        """Return what placing blocks of so many new points takes, without the points themselves."""
        trained, lengths, together = run.dimensions.n_points, run.dimensions.distance_dtype, StoredGeodesics.TOGETHER
        paths = {
            "distances of training points to some landmarks": 2 * array(lengths, trained, together),
            "lengths of paths over neighbours": array("float64", rows, 3 * run.params.n_neighbors),
        }
        return super().memory(run, points, rows) + Memory(task=paths)

    @property
    def n_neighbors(self) -> int:
        """The training points that a point is placed by: those of the graph."""
        return self.params.n_neighbors

    def place_among(self, neighbors: Neighbors) -> Arrays:
        """Return points placed by the shortest paths over their neighbours."""
        placed, first_steps = (
            np.zeros((len(neighbors.indices), self.positions.shape[1])),
            neighbors.distances.astype(np.float64),
        )
        for part in range(self.n_parts):
            to_points = self.paths(part)
            shortest = ((lengths[neighbors.indices] + first_steps).min(axis=1) for lengths in to_points)
            self.triangulation.add(shortest, part * StoredGeodesics.TOGETHER, placed)
        return {StoredPlacement.coordinates: np.ldexp(placed, self.triangulation.exponent)}


def placer_of(run: Run) -> type[PathPlacer] | None:
    """Return what places new points of an Isomap that stores paths to all points, not of one by weights."""
    by_paths = StoredIsomap.STAGE in run.keys and StoredLandmarkWeights.STAGE not in run.keys
    return PathPlacer if by_paths else None
