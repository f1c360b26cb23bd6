"""New points in a nonlinear embedding: their neighbours among the training points, affinities to these, a descent."""

from dataclasses import dataclass, field

import numpy as np
from dask.system import cpu_count

from scalemani.config.objectives import objective_of
from scalemani.descents.placement import FixedSources, PlacementProblem, place_points
from scalemani.descents.repulsion import chosen_method, make_repulsion
from scalemani.kernels.arrays.workspace import Workspace, threads
from scalemani.kernels.rows.compressed import Points
from scalemani.runs.new_points.account import Placed
from scalemani.runs.new_points.by_neighbors import NeighborPlacement, query_affinities, read_training_points
from scalemani.runs.opened import Run
from scalemani.stages.arrays.points import StoredWeights


@dataclass(frozen=True)
class DescentPlacement(NeighborPlacement):
    """All that placing a point in a nonlinear embedding takes.

    `threads` are those of one call; `tolerance` is what the sums of the descent were set to err by at its end;
    `weights` (N,) say how many equal points each training point stands for, None for one.
    """

    threads: int
    tolerance: float
    weights: np.ndarray | None = field(default=None, repr=False)

    def place(self, points: Points) -> Placed:
        """Return points (n, D) placed; one that equals a training point lies where that does, without a descent."""
        if points.shape[0] == 0:
            return Placed(np.empty((0, self.positions.shape[1])), np.empty(0))
        asked, objective = self.params.layout, objective_of(str(self.params.layout.objective))
        found = self.index.neighbors(points, self.params.affinity_neighbors)
        of_neighbors = None if self.weights is None else self.weights[found.indices]
        affinities = query_affinities(found.distances.astype(np.float64) ** 2, self.params, self.sigma, of_neighbors)
        n_points, n_dims = self.positions.shape
        method = chosen_method(asked.repulsion, objective.kernel, n_points, n_dims, asked.exact_up_to)
        with threads(self.threads) as side_by_side:
            sums = make_repulsion(method, objective.kernel, self.tolerance, Workspace(side_by_side.over))
            fixed = FixedSources(sums, self.positions, self.weights)
            placed, arrived, falls = place_points(
                PlacementProblem(objective, self.params.strength, fixed, self.positions, found.indices, affinities)
            )
        known = found.distances[:, 0] == 0
        placed[known] = self.positions[found.indices[known, 0]]
        nearest = found.distances[:, 0].astype(np.float64)
        return Placed(placed, nearest, descended=~known, arrived=arrived | known, falls=np.where(known, 0.0, falls))


def read_descent_placement(run: Run, in_memory: bool, threads: int | None = None) -> DescentPlacement:
    """Return the placement of a finished nonlinear run; `in_memory` reads its points, so that its store may go.

    `threads` are those of one call, None for one a core.
    """
    weights = StoredWeights(run.group(StoredWeights.STAGE)).weights.read() if StoredWeights.STAGE in run.keys else None
    tolerance = run.certificates["layout"].get("repulsion_tolerance", run.params.layout.tolerance)
    return DescentPlacement(*read_training_points(run, in_memory), threads or cpu_count(), tolerance, weights)
