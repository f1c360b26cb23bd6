"""The finished neighbour graph in input order: what users of the graph alone are given."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from scalemani.chunked.records import final_step
from scalemani.chunked.work import Arrays, Dimensions, DiskNeed, StageTask, StageWork
from scalemani.memory.kept import gather_rows, resident
from scalemani.params import Parameters
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
    task = work.task
    neighbors = task.inputs["neighbors"]
    distances = neighbors.array(f"{final_step(neighbors)}/distances")
    width = (task.params.n_neighbors,)
    task.output.create(
        task.dimensions.n_points,
        [
            RowArray("indices", "int64", width, ("point", "neighbor"), "neighbours of each point, itself excluded"),
            RowArray("distances", str(distances.dtype), width, ("point", "neighbor"), "Euclidean distances, ascending"),
        ],
    )
    work.map_runs(graph_blocks, work.run_blocks(COPIES_AT_WORK * bytes_per_block(task.dimensions, task.params)))
    return {"recall": neighbors.certificate("recall", float)}


def graph_blocks(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the blocks of a run in input order."""
    input_rows = resident(task.inputs["work_points"], "input_rows")
    step = final_step(task.inputs["neighbors"])
    first, last = task.dimensions.rows(blocks[0])[0], task.dimensions.rows(blocks[-1])[1]
    work_rows = np.empty(len(input_rows), dtype=np.int64)
    work_rows[input_rows] = np.arange(len(input_rows))
    wanted = work_rows[first:last]
    indices = gather_rows(task.inputs["neighbors"], f"{step}/indices", wanted, 0)
    distances = gather_rows(task.inputs["neighbors"], f"{step}/distances", wanted, 0)
    for block in blocks:
        start, stop = task.dimensions.rows(block)
        inside = slice(start - first, stop - first)
        yield block, {"indices": input_rows[indices[inside]], "distances": distances[inside]}
