"""The finished neighbour graph in input order: what users of the graph alone are given."""

from collections.abc import Iterator, Sequence
from typing import Any

from scalemani.engine.needs import CACHE, EACH_PROCESS, EACH_TASK, Held, Span
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.kernels.rows.metrics import convert_distances
from scalemani.stages.arrays.graph import StoredGraph, StoredNeighbors
from scalemani.stages.arrays.points import StoredWorkPoints

COPIES_OF_NUMBERS, COPIES_OF_DISTANCES = 2.5, 2  # of a source block, gathered, and translated


def memory(sizes: Sizes) -> list[Held]:
    """List the row numbers, a run of one block, and what a run over all blocks would take."""
    dimensions, k = sizes.dimensions, sizes.params.n_neighbors
    return [
        Held("row numbers by work and by input order", EACH_PROCESS, dimensions.n_points, 2, "int64"),
        *rows_of_graph(dimensions.block_rows, k, EACH_TASK),
        *rows_of_graph(dimensions.n_blocks * dimensions.block_rows, k, CACHE),
    ]


def rows_of_graph(n_rows: int, n_neighbors: int, span: Span) -> list[Held]:
    """List what so many rows of the graph take at work."""
    return [
        Held("neighbours by work and by input order", span, n_rows, n_neighbors, "int64", COPIES_OF_NUMBERS),
        Held("distances", span, n_rows, n_neighbors, "float64", COPIES_OF_DISTANCES),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Write the graph with rows and neighbours numbered as the points came, and distances in the metric of these."""
    task, neighbors = work.task, work.task.stored(StoredNeighbors)
    distances = neighbors.distances(neighbors.final_step).zarr()
    width = task.params.n_neighbors
    described = [StoredGraph.indices.sized(width), StoredGraph.distances.sized(width, dtype=distances.dtype)]
    task.output.create(task.dimensions.n_points, described)
    of_block = rows_of_graph(task.dimensions.block_rows, task.params.n_neighbors, CACHE)
    work.map_runs(graph_blocks, work.run_blocks(sum(record.bytes for record in of_block)))
    return {"recall": neighbors.group.certificate("recall", float)}


def graph_blocks(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the blocks of a run in input order."""
    input_rows = task.stored(StoredWorkPoints).input_rows.read_once()
    neighbors = task.stored(StoredNeighbors)
    first, last = task.dimensions.rows_of(blocks)
    wanted = inverse_order(input_rows)[first:last]
    indices = neighbors.indices(neighbors.final_step).gather(wanted)
    distances = neighbors.distances(neighbors.final_step).gather(wanted)
    for block in blocks:
        start, stop = task.dimensions.rows(block)
        inside = slice(start - first, stop - first)
        found = convert_distances(task.params.points.metric, distances[inside])
        yield block, {StoredGraph.indices: input_rows[indices[inside]], StoredGraph.distances: found}
