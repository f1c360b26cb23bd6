"""Eigenvectors of the first coarse graph: a start for refinement that knows tight clusters."""

from typing import Any

from scalemani.chunked.needs import EACH_PROCESS, GROWING, STORED, Held, Written
from scalemani.chunked.sizes import Sizes, coarse_graphs_held
from scalemani.chunked.work import StageWork
from scalemani.kernels.spectral.multilevel import Multilevel
from scalemani.kernels.spectral.refinement import n_start_columns
from scalemani.records.coarse import StoredCoarseEmbedding, StoredCoarseGraphs

COPIES_OF_VECTORS = 9  # of float32: two blocks of twice as many vectors, what is added, and what a V-cycle works in

COLUMNS_OF_TRANSFER = 6  # of 8 bytes, always in memory: scales, members, an order, and row numbers


def memory(sizes: Sizes) -> list[Held]:
    """List the coarse graphs, and the vectors on the first of them."""
    width = n_start_columns(sizes.params.n_components, sizes.dimensions.n_points)
    nodes = sizes.first_coarse_nodes
    return [
        *coarse_graphs_held(sizes),
        Held("degrees and transfers while they are made", EACH_PROCESS, nodes, COLUMNS_OF_TRANSFER),
        Held("vectors on the first coarse graph", GROWING, nodes, width, "float32", COPIES_OF_VECTORS),
    ]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: the vectors on the first coarse graph."""
    width = n_start_columns(sizes.params.n_components, sizes.dimensions.n_points)
    return [Written("vectors on the first coarse graph", STORED, sizes.first_coarse_nodes, width, "float32")]


def run(work: StageWork) -> dict[str, Any]:
    """Solve the coarse graphs from the coarsest up."""
    task, workspace = work.task, work.workspace()
    levels = StoredCoarseGraphs(task.inputs["coarse_graphs"]).read_levels(workspace.empty)
    width = n_start_columns(task.params.n_components, task.dimensions.n_points)
    work.executor.progress.start(task.stage, len(levels), "graph")
    found = Multilevel(levels, workspace).eigenvectors(width, task.params.seed)
    task.output.write_whole({StoredCoarseEmbedding.VECTORS: found})
    return {"vectors": found.shape[1]}
