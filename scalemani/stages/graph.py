"""The finished neighbour graph in input order: what users of the graph alone read."""

from collections.abc import Iterator, Sequence
from typing import Any

from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.kernels.rows.metrics import convert_distances
from scalemani.stages.arrays.graph import StoredGraph, StoredNeighbors
from scalemani.stages.arrays.points import StoredWorkPoints


def memory(sizes: Sizes) -> Memory:
    """Return what the row numbers take, a run of one block, and what a run over all blocks would."""
    block = rows_of_graph(sizes)
    return Memory(
        process={"row numbers by work and by input order": array("int64", sizes.dimensions.n_points, 2)},
        task={"a block of the graph, gathered and translated": block},
        cache={"all blocks of it": sizes.dimensions.n_blocks * block},
    )


def rows_of_graph(sizes: Sizes) -> int:
    """Return the bytes that a block of the graph takes at work: of a source block, gathered, and translated."""
    n_edges = sizes.dimensions.block_rows * sizes.params.n_neighbors
    return int(2.5 * array("int64", n_edges) + 2 * array("float64", n_edges))


def run(context: StageContext) -> dict[str, Any]:
    """Write the graph with rows and neighbours numbered as the points came, and distances in the metric of these."""
    task, neighbors = context.task, context.task.stored(StoredNeighbors)
    distances = neighbors.distances(neighbors.final_step).zarr()
    width = task.params.n_neighbors
    described = [StoredGraph.indices.sized(width), StoredGraph.distances.sized(width, dtype=distances.dtype)]
    task.output.create(task.dimensions.n_points, described)
    context.compute(translated)
    return {"recall": neighbors.group.certificate("recall", float)}


def graphs(context: StageContext) -> Steps:
    """Yield the graph in input order."""
    yield translated


def translated(graph: StageGraph) -> None:
    """Add the blocks of the graph, in ranges of which each reads the order."""
    context, task = graph.context, graph.context.task
    graph.map_block_ranges(graph_blocks, context.blocks_per_range(rows_of_graph(Sizes(task.dimensions, task.params))))


def graph_blocks(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the blocks of a range in input order."""
    input_rows = task.stored(StoredWorkPoints).input_rows.read_once()
    neighbors = task.stored(StoredNeighbors)
    first, last = task.dimensions.rows_of(blocks)
    work_rows = inverse_order(input_rows)[first:last]
    indices = neighbors.indices(neighbors.final_step).gather(work_rows)
    distances = neighbors.distances(neighbors.final_step).gather(work_rows)
    for block in blocks:
        start, stop = task.dimensions.rows(block)
        inside = slice(start - first, stop - first)
        converted = convert_distances(task.params.points.metric, distances[inside])
        yield block, {StoredGraph.indices: input_rows[indices[inside]], StoredGraph.distances: converted}
