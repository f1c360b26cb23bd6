"""New points in a nonlinear embedding: their neighbours among the training points, affinities to these, a descent."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from scalemani.embeddings.placement import FixedSources, PlacementProblem, place_points
from scalemani.embeddings.repulsion import chosen_method, make_repulsion
from scalemani.kernels.affinities.bandwidths import gaussian_affinities, self_tuning_affinities
from scalemani.kernels.affinities.entropic import entropic_affinities
from scalemani.new_points.account import Placed
from scalemani.new_points.neighbors import NeighborIndex, neighbor_index
from scalemani.new_points.reach import Reach, reach_of
from scalemani.objectives import objective_of
from scalemani.params import Parameters
from scalemani.records.embeddings import StoredLayout
from scalemani.records.points import StoredWorkPoints
from scalemani.runs.opened import Run
from scalemani.stages.affinities import sigma_of


@dataclass(frozen=True)
class DescentPlacement:
    """All that placing a point in a nonlinear embedding takes; `positions` (N, d) are in work order.

    `sigma` is that of Gaussian affinities, None for others.
    """

    index: NeighborIndex = field(repr=False)
    positions: np.ndarray = field(repr=False)
    params: Parameters
    reach: Reach
    sigma: float | None

    @property
    def metric(self) -> str:
        """The metric of the training points."""
        return self.params.points.metric

    @property
    def shape(self) -> tuple[int, int]:
        """The columns D that points must have, and the dimensions d of the embedding."""
        return len(self.index.basis.mean), self.positions.shape[1]

    def place(self, points: np.ndarray) -> Placed:
        """Return points (n, D) placed; one that equals a training point lies where that does, without a descent."""
        if len(points) == 0:
            return Placed(np.empty((0, self.positions.shape[1])))
        asked, objective = self.params.layout, objective_of(str(self.params.layout.objective))
        found = self.index.neighbors(points, self.params.n_neighbors)
        affinities = query_affinities(found.distances.astype(np.float64) ** 2, self.params, self.sigma)
        n_points, n_dims = self.positions.shape
        method = chosen_method(asked.repulsion, objective.kernel, n_points, n_dims, asked.exact_up_to)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            sums = make_repulsion(method, objective.kernel, asked.tolerance, pool.map)
            fixed = FixedSources(sums, self.positions)
            placed, arrived, falls = place_points(
                PlacementProblem(objective, self.params.strength, fixed, self.positions, found.indices, affinities)
            )
        known = found.distances[:, 0] == 0
        placed[known] = self.positions[found.indices[known, 0]]
        return Placed(placed, len(points) - int(known.sum()), int(arrived[~known].sum()), float(falls[~known].sum()))


def query_affinities(squares: np.ndarray, params: Parameters, sigma: float | None) -> np.ndarray:
    """Return affinities (n, k) of new points to their neighbours at squared distances (n, k); rows sum to one."""
    asked = params.affinities
    if sigma is not None:
        values = gaussian_affinities(squares, sigma)
    elif asked.kind == "self-tuning":
        values = self_tuning_affinities(squares, asked.bandwidth_neighbor)
    else:
        # Each row from its own bracket: a row's bits then do not depend on what else is placed.
        values = entropic_affinities(squares, params.perplexity, solver=asked.solver, order="bounds").values
    return values / values.sum(axis=1, keepdims=True)


def read_descent_placement(run: Run, in_memory: bool) -> DescentPlacement:
    """Return the placement of a finished nonlinear run; `in_memory` reads its points, so that its store may go."""
    order = StoredWorkPoints(run.group("work_points")).input_rows.read()
    positions = np.ascontiguousarray(StoredLayout(run.group("layout")).embedding.read()[order])
    asked = run.params.affinities
    sigma = sigma_of(run.group("affinities"), asked) if asked.kind == "gaussian" else None
    return DescentPlacement(neighbor_index(run, in_memory), positions, run.params, reach_of(run), sigma)
