"""Eigenvectors of the first coarse graph: a start for refinement that knows tight clusters."""

from typing import Any

from scalemani.chunked.work import Dimensions, DiskNeed, StageWork
from scalemani.kernels.spectral.multilevel import NODES_PER_POINT, Multilevel, hierarchy_bytes
from scalemani.kernels.spectral.refinement import n_start_columns
from scalemani.params import Parameters
from scalemani.records.coarse import StoredCoarseEmbedding, StoredCoarseGraphs
from scalemani.workers.budget import MemoryNeed

COPIES_OF_VECTORS = 9  # of float32: two blocks of twice as many vectors, what is added, and what a V-cycle works in

KEPT_BYTES_PER_POINT = 24  # always in memory: what transfers between graphs and degrees take while they are made


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the coarse graphs and of the vectors on the first of them."""
    width = n_start_columns(params.n_components, dimensions.n_points)
    vectors = COPIES_OF_VECTORS * 4 * int(NODES_PER_POINT * dimensions.n_points) * width
    least = hierarchy_bytes(0, params.n_neighbors) + KEPT_BYTES_PER_POINT * dimensions.n_points
    growing = hierarchy_bytes(dimensions.n_points, params.n_neighbors) + vectors - least
    return MemoryNeed(least, 0, growing=growing)


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of the vectors on the first coarse graph."""
    width = n_start_columns(params.n_components, dimensions.n_points)
    return DiskNeed(4 * int(NODES_PER_POINT * dimensions.n_points) * width)


def run(work: StageWork) -> dict[str, Any]:
    """Solve the coarse graphs from the coarsest up."""
    task, workspace = work.task, work.workspace()
    levels = StoredCoarseGraphs(task.inputs["coarse_graphs"]).read_levels(workspace.empty)
    width = n_start_columns(task.params.n_components, task.dimensions.n_points)
    work.executor.progress.start(task.stage, len(levels))
    found = Multilevel(levels, workspace).eigenvectors(width, task.params.seed)
    task.output.write_whole({StoredCoarseEmbedding.VECTORS: found})
    return {"vectors": found.shape[1]}
