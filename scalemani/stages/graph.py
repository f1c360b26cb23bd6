"""The finished neighbour graph in input order: what users of the graph alone are given."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from scalemani.chunked.work import Arrays, Dimensions, DiskNeed, StageTask, StageWork
from scalemani.params import Parameters
from scalemani.records.graph import StoredGraph, StoredNeighbors
from scalemani.records.points import StoredWorkPoints
from scalemani.store.schema import RowArray
from scalemani.workers.budget import MemoryNeed

COPIES_AT_WORK = 3  # rows gathered, numbers translated, and a source block


def bytes_per_block(dimensions: Dimensions, params: Parameters) -> int:
    """Return the bytes of one block of the graph."""
    return dimensions.block_rows * params.n_neighbors * (4 + 8)


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the row numbers, of a run of one block, and of a run over all."""
    block = COPIES_AT_WORK * bytes_per_block(dimensions, params)
    return MemoryNeed(2 * 8 * dimensions.n_points, block, dimensions.n_blocks * block)


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of the graph with 64-bit row numbers."""
    return DiskNeed(dimensions.n_points * params.n_neighbors * (8 + 8))


def run(work: StageWork) -> dict[str, Any]:
    """Write the graph with rows and neighbours numbered as the points came."""
    task, neighbors = work.task, StoredNeighbors(work.task.inputs["neighbors"])
    distances = neighbors.distances(neighbors.final_step).zarr()
    task.output.create(task.dimensions.n_points, arrays(task.params, distances.dtype))
    work.map_runs(graph_blocks, work.run_blocks(COPIES_AT_WORK * bytes_per_block(task.dimensions, task.params)))
    return {"recall": neighbors.group.certificate("recall", float)}


def arrays(params: Parameters, distance_dtype: np.dtype) -> list[RowArray]:
    """Describe what is stored."""
    width = params.n_neighbors
    return [StoredGraph.INDICES.sized(width), StoredGraph.DISTANCES.sized(width, dtype=distance_dtype)]


def graph_blocks(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the blocks of a run in input order."""
    input_rows = StoredWorkPoints(task.inputs["work_points"]).input_rows.read_once()
    neighbors = StoredNeighbors(task.inputs["neighbors"])
    first, last = task.dimensions.rows(blocks[0])[0], task.dimensions.rows(blocks[-1])[1]
    work_rows = np.empty(len(input_rows), dtype=np.int64)
    work_rows[input_rows] = np.arange(len(input_rows))
    wanted = work_rows[first:last]
    indices = neighbors.indices(neighbors.final_step).gather(wanted)
    distances = neighbors.distances(neighbors.final_step).gather(wanted)
    for block in blocks:
        start, stop = task.dimensions.rows(block)
        inside = slice(start - first, stop - first)
        yield block, {StoredGraph.INDICES: input_rows[indices[inside]], StoredGraph.DISTANCES: distances[inside]}
