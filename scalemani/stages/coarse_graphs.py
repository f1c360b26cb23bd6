"""The hierarchy of coarse graphs of W: small aggregates of points, aggregates of these, and so on."""

import functools
from typing import Any

import numpy as np

from scalemani.chunked.work import Dimensions, DiskNeed, StageTask, StageWork
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.spectral.coarsening import (
    Rows,
    SummedRows,
    aggregated,
    coarse_graph,
    coarse_part,
    coarser,
    joined,
    no_aggregates,
)
from scalemani.kernels.spectral.multilevel import hierarchy_bytes
from scalemani.params import Parameters
from scalemani.records.affinities import StoredSymmetricAffinities
from scalemani.records.coarse import StoredCoarseGraphs, level_folder
from scalemani.workers.budget import MemoryNeed

EDGES_PER_NEIGHBOR = 1.6  # nonzeros of W for every edge of the graph
BYTES_PER_SUM = 12  # float64 and int32
COPIES_OF_SUMS = 2.5  # parts, the same joined, and what becomes of them
BYTES_PER_POINT = 80
KEPT_BYTES_PER_POINT = 64  # of these, always in memory: labels and sizes while a block is added, room for row sums


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the sums of rows on their way to the first coarse graph, the largest, and of a block of W."""
    edges = EDGES_PER_NEIGHBOR * params.n_neighbors * BYTES_PER_SUM
    kept = dimensions.n_points * KEPT_BYTES_PER_POINT
    growing = int(dimensions.n_points * (COPIES_OF_SUMS * edges + BYTES_PER_POINT)) - kept
    return MemoryNeed(kept, int(3 * dimensions.block_rows * edges), growing=growing)


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of the coarse graphs, and of the aggregate of each point."""
    graphs = hierarchy_bytes(dimensions.n_points, params.n_neighbors) - hierarchy_bytes(0, params.n_neighbors)
    return DiskNeed(4 * dimensions.n_points + graphs)


def run(work: StageWork) -> dict[str, Any]:
    """Join points into aggregates, sum the graph between them, coarsen that in memory, and write all levels."""
    nodes, workspace = [], work.workspace()
    labels, rows = first_coarse_graph(work, workspace)
    work.task.output.write_whole({StoredCoarseGraphs.LABELS: labels})
    for number, level in enumerate(coarser(rows, workspace), 1):
        nodes.append(len(level.degrees))
        work.task.output.write_whole(StoredCoarseGraphs.level_arrays(level), f"level-{number}", level_folder(number))
    work.task.output.write_whole({StoredCoarseGraphs.LEVELS: np.array(len(nodes))}, StoredCoarseGraphs.LEVELS.name)
    return {"levels": len(nodes), "nodes": nodes}


def first_coarse_graph(work: StageWork, workspace: Workspace) -> tuple[np.ndarray, Rows]:
    """Return the aggregate of each point, and the graph between aggregates: two passes over W."""
    task, blocks = work.task, range(work.task.dimensions.n_blocks)
    graph = StoredSymmetricAffinities(task.inputs["symmetric_affinities"])
    inverse_roots = graph.read_degrees(task.dimensions.n_points, workspace.empty)
    np.divide(1, np.sqrt(inverse_roots, out=inverse_roots), out=inverse_roots)
    aggregates = no_aggregates(task.dimensions.n_points)
    work.executor.progress.start(task.stage, 2 * len(blocks))
    for block in blocks:
        rows = graph.read_rows(block)
        aggregates = aggregated(aggregates, rows, inverse_roots, task.dimensions.rows(block)[0])
        work.executor.progress.advance()
    part = functools.partial(part_of_block, task, workspace, aggregates.labels, aggregates.count)
    parts = work.executor.map_locally(part, blocks)
    return aggregates.labels, coarse_graph(joined(parts, workspace), aggregates.count, workspace)


def part_of_block(task: StageTask, workspace: Workspace, labels: np.ndarray, count: int, block: int) -> SummedRows:
    """Return one block's part of the graph between aggregates."""
    rows = StoredSymmetricAffinities(task.inputs["symmetric_affinities"]).read_rows(block)
    return coarse_part(rows, labels, count, task.dimensions.rows(block)[0], workspace)
