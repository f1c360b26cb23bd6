"""Eigenvectors of the first coarse graph: a start for refinement that knows tight clusters."""

from typing import Any

import numpy as np

from scalemani.engine.context import StageContext, StageTask, Steps
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.sizes import Sizes, coarse_graphs, written
from scalemani.kernels.spectral.multilevel import Multilevel
from scalemani.kernels.spectral.refinement import n_columns, n_start_columns
from scalemani.stages.arrays.embeddings import StoredCoarseEmbedding, StoredCoarseGraphs


def memory(sizes: Sizes) -> Memory:
    """Return what the coarse graphs take, and the vectors on the first of them."""
    width, nodes = n_start_columns(sizes.params.n_components, sizes.dimensions.n_points), sizes.first_coarse_nodes
    # Two blocks of twice as many vectors, what is added, and what a V-cycle works in.
    vectors = {"vectors on the first coarse graph": 9 * array("float32", nodes, width)}
    # Always in memory: scales, members, an order, and row numbers.
    transfers = {"degrees and transfers while they are made": array("float64", nodes, 6)}
    return coarse_graphs(sizes) + Memory(transfers, points=vectors)


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the vectors on the first coarse graph."""
    width = n_start_columns(sizes.params.n_components, sizes.dimensions.n_points)
    return Disk(written(StoredCoarseEmbedding.ARRAYS, sizes, node=sizes.first_coarse_nodes, start_vector=width))


def run(context: StageContext) -> dict[str, Any]:
    """Solve the coarse graphs from the coarsest up; vectors on reused graphs are reused too."""
    task, workspace = context.task, context.workspace
    stored = task.stored(StoredCoarseGraphs)
    if stored.points_when_made(task.dimensions.n_points) < task.dimensions.n_points:
        vectors = reused_vectors(task, stored)
        task.output.write_whole({StoredCoarseEmbedding.vectors: vectors})
        return {"vectors": vectors.shape[1]}
    width = n_start_columns(task.params.n_components, task.dimensions.n_points)
    context.executor.progress.start(task.stage, stored.read_count(stored.levels, "levels"), "graph")
    vectors = Multilevel(stored.read_levels(workspace.empty), workspace).eigenvectors(width, task.params.seed)
    task.output.write_whole({StoredCoarseEmbedding.vectors: vectors})
    return {"vectors": vectors.shape[1]}


def reused_vectors(task: StageTask, graphs: StoredCoarseGraphs) -> np.ndarray:
    """Return the vectors (n, m) float32 of the earlier run, for the degrees that its nodes have come to.

    They are as many as are iterated: a refinement starts from these and from the vectors of the earlier one.
    """
    groups = task.earlier_results.groups
    before = StoredCoarseGraphs(groups[StoredCoarseGraphs.STAGE]).read_degrees()
    stored = StoredCoarseEmbedding(groups[StoredCoarseEmbedding.STAGE]).vectors.read()
    vectors = np.ascontiguousarray(stored[:, : n_columns(task.params.n_components, task.dimensions.n_points)])
    # D^-1/2 u, the coordinates of nodes, stay.
    vectors *= np.sqrt(graphs.read_degrees() / before)[:, np.newaxis]
    return vectors


def graphs(context: StageContext) -> Steps:
    """Yield what the driver does alone."""
    yield "eigenvectors of a coarse graph"
