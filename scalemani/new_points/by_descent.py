"""New points in a nonlinear embedding: their neighbours among the training points, affinities to these, a descent."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dask.system import cpu_count

from scalemani.embeddings.placement import FixedSources, PlacementProblem, place_points
from scalemani.embeddings.repulsion import chosen_method, make_repulsion
from scalemani.kernels.affinities.bandwidths import gaussian_affinities, self_tuning_affinities
from scalemani.kernels.affinities.entropic import entropic_affinities
from scalemani.kernels.rows.compressed import Points
from scalemani.new_points.account import Placed
from scalemani.new_points.neighbors import NeighborIndex, neighbor_index
from scalemani.new_points.reach import Reach, reach_of
from scalemani.objectives import objective_of
from scalemani.params import Parameters
from scalemani.records.embeddings import StoredLayout
from scalemani.records.graph import StoredNeighbors
from scalemani.records.points import StoredWeights, StoredWorkPoints
from scalemani.runs.opened import Run
from scalemani.stages.affinities import sigma_of

SAMPLED_BLOCKS = 4  # of the graph, spread over it


@dataclass(frozen=True)
class DescentPlacement:
    """All that placing a point in a nonlinear embedding takes; `positions` (N, d) are in work order.

    `sigma` is that of Gaussian affinities, None for others; `threads` are those of one call; `weights` (N,) say how
    many equal points each training point stands for, None for one.
    """

    index: NeighborIndex = field(repr=False)
    positions: np.ndarray = field(repr=False)
    params: Parameters
    reach: Reach
    sigma: float | None
    spacing: float
    threads: int
    weights: np.ndarray | None = field(default=None, repr=False)

    @property
    def metric(self) -> str:
        """The metric of the training points."""
        return self.params.points.metric

    @property
    def sparse(self) -> bool:
        """Whether the training points are sparse."""
        return self.index.sparse

    @property
    def shape(self) -> tuple[int, int]:
        """The columns D that points must have, and the dimensions d of the embedding."""
        return len(self.index.basis.mean), self.positions.shape[1]

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
        with ThreadPoolExecutor(self.threads) as pool:
            sums = make_repulsion(method, objective.kernel, asked.tolerance, pool.map)
            fixed = FixedSources(sums, self.positions, self.weights)
            placed, arrived, falls = place_points(
                PlacementProblem(objective, self.params.strength, fixed, self.positions, found.indices, affinities)
            )
        known = found.distances[:, 0] == 0
        placed[known] = self.positions[found.indices[known, 0]]
        nearest = found.distances[:, 0].astype(np.float64)
        return Placed(placed, nearest, descended=~known, arrived=arrived | known, falls=np.where(known, 0.0, falls))


def query_affinities(
    squares: np.ndarray, params: Parameters, sigma: float | None, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return affinities (n, k) of new points to their neighbours at squared distances (n, k); rows sum to one.

    Parameters
    ----------
    squares : (n, k) float64, ascending in each row
    params : of the run
    sigma : of Gaussian affinities, None for others
    weights : (n, k) of the neighbours: affinities are those to all copies of each. None: one
    """
    asked = params.affinities
    if sigma is not None:
        values = gaussian_affinities(squares, sigma)
    elif asked.kind == "self-tuning":
        values = self_tuning_affinities(squares, asked.bandwidth_neighbor)
    else:
        # Each row from its own bracket: a row's bits then do not depend on what else is placed.
        search: Any = {"solver": asked.solver, "order": "bounds", "masses": weights}
        values = entropic_affinities(squares, params.perplexity, **search).values
        if weights is not None:
            values *= weights
    return values / values.sum(axis=1, keepdims=True)


def read_descent_placement(run: Run, in_memory: bool, threads: int | None = None) -> DescentPlacement:
    """Return the placement of a finished nonlinear run; `in_memory` reads its points, so that its store may go.

    `threads` are those of one call, None for one a core.
    """
    order = StoredWorkPoints(run.group("work_points")).input_rows.read()
    positions = np.ascontiguousarray(StoredLayout(run.group("layout")).embedding.read()[order])
    asked = run.params.affinities
    sigma = sigma_of(run.group("affinities"), asked) if asked.kind == "gaussian" else None
    index = neighbor_index(run, in_memory)
    at_once, spacing = threads or cpu_count(), farthest_neighbor(run)
    weights = StoredWeights(run.group(StoredWeights.STAGE)).weights.read() if StoredWeights.STAGE in run.keys else None
    return DescentPlacement(index, positions, run.params, reach_of(run), sigma, spacing, at_once, weights)


def farthest_neighbor(run: Run) -> float:
    """Return the largest distance of a training point's last neighbour, over a few blocks of the graph."""
    neighbors, n_blocks = StoredNeighbors(run.group("neighbors")), run.dimensions.n_blocks
    looked_at = np.unique(np.linspace(0, n_blocks - 1, SAMPLED_BLOCKS).astype(int))
    width = run.params.affinity_neighbors
    return max(float(neighbors.read_graph_block(int(block), width)[1][:, -1].max()) for block in looked_at)
