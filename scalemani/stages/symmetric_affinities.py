"""W = (P + P^T) / 2 with the bridges between components: the one transpose of the graph, by runs of target blocks.

Each block of rows of W is one sparse matrix in CSR form with its degrees. A task holds the edges into a run of blocks
and streams the whole graph past them; how many blocks a run has is a matter of memory and leaves no trace.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from scalemani.chunked.work import Arrays, Dimensions, DiskNeed, StageTask, StageWork
from scalemani.kernels.graph.symmetric import DirectedEdges, incoming_edges, join_edges, row_sums, symmetric_rows
from scalemani.params import Parameters
from scalemani.records.affinities import StoredAffinities, StoredComponents, StoredSymmetricAffinities
from scalemani.records.graph import StoredNeighbors
from scalemani.workers.budget import MemoryNeed

BYTES_PER_INCOMING_EDGE = 24  # target, source and value, held twice while the parts are joined
BYTES_PER_ROW_EDGE = 60  # a block of the graph as read, and its rows of W before and after they are cut to size


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of a run of one block, and of one run over all blocks."""
    edges = dimensions.block_rows * params.n_neighbors
    per_block = BYTES_PER_INCOMING_EDGE * edges
    return MemoryNeed(0, 2 * per_block + BYTES_PER_ROW_EDGE * edges, dimensions.n_blocks * per_block)


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of W where no edge goes both ways: indices, values, degrees and where rows begin."""
    return DiskNeed(dimensions.n_points * (2 * params.n_neighbors * (4 + 4) + 8 + 8))


def run(work: StageWork) -> dict[str, Any]:
    """Compute the rows of W that are missing; certify the number of edges and the extremes of the degrees."""
    task = work.task
    per_block = BYTES_PER_INCOMING_EDGE * task.dimensions.block_rows * task.params.n_neighbors
    work.map_run_parts(symmetric_blocks, work.run_blocks(per_block))
    nonzeros, least, largest = work.fold_blocks(
        block_extremes, lambda one, other: (one[0] + other[0], min(one[1], other[1]), max(one[2], other[2]))
    )
    return {"nonzeros": nonzeros, "least_degree": least, "largest_degree": largest}


def block_extremes(task: StageTask, block: int) -> tuple[int, float, float]:
    """Return the nonzeros of a block and the extremes of its degrees."""
    output = StoredSymmetricAffinities(task.output)
    degrees = output.read_block_degrees(block)
    return int(output.read_row_bounds(block)[-1]), float(degrees.min()), float(degrees.max())


def symmetric_blocks(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the rows of W of each block of a run."""
    neighbors, affinities = StoredNeighbors(task.inputs["neighbors"]), StoredAffinities(task.inputs["affinities"])
    parts: dict[int, list[DirectedEdges]] = {block: [] for block in blocks}
    for source in range(task.dimensions.n_blocks):
        indices, _ = neighbors.read_graph_block(source)
        values = affinities.values.read_block(source)
        for block in blocks:
            parts[block].append(
                incoming_edges(indices, values, task.dimensions.rows(source)[0], *task.dimensions.rows(block))
            )
    bridges = bridge_edges(task)
    for block in blocks:
        indices, _ = neighbors.read_graph_block(block)
        values = affinities.values.read_block(block)
        start, _ = task.dimensions.rows(block)
        rows = symmetric_rows(indices, values, start, join_edges(parts.pop(block)), bridges)
        degrees = row_sums(rows.values, rows.indptr)
        yield (
            block,
            {
                StoredSymmetricAffinities.INDPTR: rows.indptr,
                StoredSymmetricAffinities.INDICES: rows.indices,
                StoredSymmetricAffinities.VALUES: rows.values,
                StoredSymmetricAffinities.DEGREES: degrees,
            },
        )


def bridge_edges(task: StageTask) -> DirectedEdges:
    """Return the bridges between components in both directions."""
    components = StoredComponents(task.inputs["components"])
    rows, weights = components.bridge_rows.read(), components.bridge_weights.read()
    targets = np.concatenate([rows[:, 0], rows[:, 1]]).astype(np.int32)
    sources = np.concatenate([rows[:, 1], rows[:, 0]]).astype(np.int32)
    return DirectedEdges(targets, sources, np.concatenate([weights, weights]).astype(np.float32))
