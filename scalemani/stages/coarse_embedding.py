"""Eigenvectors of a coarse graph of small aggregates: a start for refinement that knows tight clusters."""

from typing import Any

import numpy as np

from scalemani.chunked.graph import symmetric_rows_of
from scalemani.chunked.work import Dimensions, MemoryNeed, StageTask, StageWork
from scalemani.kernels.coarsening import DENSE_NODES, aggregated, coarse_eigenvectors, coarse_part, no_aggregates
from scalemani.kernels.reduced import TreeSum, symmetric_part
from scalemani.kernels.refinement import n_columns
from scalemani.params import Parameters

NODES_PER_POINT = 0.5  # aggregates have two to eight members
BYTES_PER_EDGE = 12
COPIES_OF_GRAPH = 5  # parts of the sum on their way, its transpose, and the levels below
COPIES_OF_VECTORS = 5
DENSE_COPIES = 7  # of the coarsest matrix, with what LAPACK works in


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the coarse graph and of the vectors on it, and of a block of W."""
    n_points, edges = dimensions.n_points, 1.5 * params.n_neighbors * BYTES_PER_EDGE
    width = n_columns(params.n_components, n_points, params.embedding.residual)
    nodes = NODES_PER_POINT * n_points
    fixed = (
        DENSE_COPIES * 8 * DENSE_NODES**2
        + COPIES_OF_GRAPH * nodes * edges
        + COPIES_OF_VECTORS * nodes * width * 4
        + 32 * n_points
    )
    return MemoryNeed(int(fixed), int(3 * dimensions.block_rows * edges))


def run(work: StageWork) -> dict[str, Any]:
    """Join points into aggregates, sum the graph between them, and solve that graph level by level."""
    task, blocks = work.task, range(work.task.dimensions.n_blocks)
    group = task.inputs["symmetric_affinities"]
    inverse_roots = 1 / np.sqrt(np.concatenate([group.read_part("degrees", block) for block in blocks]))
    aggregates = no_aggregates(task.dimensions.n_points)
    work.executor.progress.start(task.stage, 2 * len(blocks))
    for block in blocks:
        rows = symmetric_rows_of(group, block)
        aggregates = aggregated(aggregates, rows, inverse_roots, task.dimensions.rows(block)[0])
        work.executor.progress.advance()
    total = TreeSum()
    for part in work.executor.map_locally(lambda block: part_of_block(task, aggregates.labels, block), blocks):
        total.add(part)
    graph = symmetric_part(total.total())
    wanted, target = task.params.n_components, task.params.embedding.residual
    width = n_columns(wanted, task.dimensions.n_points, target)
    vectors = coarse_eigenvectors(graph, width, wanted, target, task.params.seed, work.executor.over)
    task.output.write_whole({"labels": aggregates.labels, "vectors": vectors})
    return {"aggregates": aggregates.count}


def part_of_block(task: StageTask, labels: np.ndarray, block: int) -> Any:
    """Return one block's part of the graph between aggregates."""
    rows = symmetric_rows_of(task.inputs["symmetric_affinities"], block)
    return coarse_part(rows, labels, task.dimensions.rows(block)[0])
