"""What placements of new points by their neighbours share: what they read of a run, and affinities to neighbours."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scalemani.config.params import Parameters
from scalemani.engine.needs import CACHE, EACH_PROCESS, EACH_TASK, Held
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.kernels.affinities.bandwidths import gaussian_affinities, self_tuning_affinities
from scalemani.kernels.affinities.entropic import entropic_affinities
from scalemani.kernels.landmarks.quality import usual
from scalemani.runs.new_points.neighbors import CACHE_BYTES, CANDIDATES_PER_NEIGHBOR, NeighborIndex, neighbor_index
from scalemani.runs.new_points.reach import Reach, reach_of
from scalemani.runs.opened import Run
from scalemani.stages.affinities import sigma_of
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredWorkPoints

SAMPLED_BLOCKS = 16  # of the graph, spread over it


@dataclass(frozen=True)
class NeighborPlacement:
    """Training points that new ones find their neighbours among, in work order.

    `positions` (N, d) of the training points; `sigma` is that of Gaussian affinities, None for others; `spacing` is
    how far nearly all training points lie from their last neighbour.
    """

    index: NeighborIndex = field(repr=False)
    positions: np.ndarray = field(repr=False)
    params: Parameters
    reach: Reach
    sigma: float | None
    spacing: float

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


def read_training_points(
    run: Run, in_memory: bool
) -> tuple[NeighborIndex, np.ndarray, Parameters, Reach, float | None, float]:
    """Return the fields of a `NeighborPlacement` of a finished run, in their order.

    `in_memory` reads its points, so that its store may go.
    """
    order, asked = StoredWorkPoints(run.group("work_points")).input_rows.read(), run.params.affinities
    positions = np.ascontiguousarray(run.stored_embedding.read()[order])
    sigma = sigma_of(run.group("affinities"), asked) if asked.kind == "gaussian" else None
    return neighbor_index(run, in_memory), positions, run.params, reach_of(run), sigma, usual_neighbor_distance(run)


def query_affinities(
    squares: np.ndarray, params: Parameters, sigma: float | None, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return affinities (n, k) of new points to their neighbours at squared distances (n, k); rows sum to one.

    Parameters
    ----------
    squares : (n, k) float64, ascending in each row
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


def usual_neighbor_distance(run: Run) -> float:
    """Return how far nearly all training points lie, at most, from their last neighbour, over some blocks of the graph.

    Outliers lie next to each other in work order: of many blocks, the one whose neighbours are farthest is left out, as
    it may hold nothing else.
    """
    neighbors, n_blocks = StoredNeighbors(run.group("neighbors")), run.dimensions.n_blocks
    looked_at = np.unique(np.linspace(0, n_blocks - 1, SAMPLED_BLOCKS).astype(int))
    width = run.params.affinity_neighbors
    lasts = [neighbors.read_graph_block(int(block), width)[1][:, -1] for block in looked_at]
    if n_blocks > SAMPLED_BLOCKS:
        lasts.pop(int(np.argmax([np.median(part) for part in lasts])))
    return usual(np.concatenate(lasts))


def neighbors_held(run: Run, points: Dimensions, rows: int) -> list[Held]:
    """List what the search for the neighbours of a block takes, and what is known of these."""
    trained, k, width = run.dimensions, run.params.affinity_neighbors, run.params.n_components
    sketch = Sizes(run.dimensions, run.params).sketch_width
    looked_at = min(trained.n_points, int(rows * CANDIDATES_PER_NEIGHBOR * k))
    return [
        Held("sketches of the training points", EACH_PROCESS, trained.n_points, sketch, "float32"),
        Held("positions of the training points, as read and sorted", EACH_PROCESS, trained.n_points, width, copies=3),
        Held("sketches of training and new points", EACH_TASK, trained.n_points + rows, sketch, "float32"),
        Held("candidates and neighbours of a block", EACH_TASK, rows, 4 * k, "float64"),
        Held("training points that are candidates", EACH_TASK, looked_at, *trained.kept_row),
        Held("positions of neighbours", EACH_TASK, rows, k * width, "float64", 2),
        Held("decoded blocks of training points", CACHE, CACHE_BYTES, 1, "uint8"),
    ]
