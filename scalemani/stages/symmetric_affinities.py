"""W = (P + P^T) / 2 with the bridges between components: the one transpose of the graph, by ranges of target blocks.

Where affinities follow classes, entries between points of different ones are lowered once all else is summed. Where W
replaces the points, its rows are those of the input.

Each block of rows of W is one sparse matrix in CSR form with its degrees. Where W is not to be stored, the degrees are,
with the blocks whose edges end in the block; the rows are made when they are read (`MadeAffinities`). A task holds the
edges into a block range and streams the whole graph past them; how many blocks a range has is a matter of memory and
leaves no trace.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.graph import Key
from scalemani.engine.memory_model import Disk, Memory, array, entries
from scalemani.engine.sizes import Sizes, written
from scalemani.kernels.affinities.reweighting import lowered_between_classes
from scalemani.kernels.graph.symmetric import (
    DirectedEdges,
    SymmetricRows,
    both_ways,
    incoming_edges,
    join_edges,
    loop_edges,
    symmetric_rows,
)
from scalemani.stages.arrays.affinities import StoredComponents, StoredSymmetricAffinities, pixel_affinities
from scalemani.stages.arrays.points import StoredClasses, StoredPoints, stored_weights
from scalemani.stages.shared.edges import edges_of_block, incoming, loops_of_block, rows_merged


def memory(sizes: Sizes) -> Memory:
    """Return what edges into a block range take, and a block as it is read and as its rows of W are made."""
    if sizes.params.neighbors.of_pixels:
        return pixel_affinities(sizes.params).memory(sizes)
    dimensions, k, rows = sizes.dimensions, sizes.params.affinity_neighbors, sizes.dimensions.block_rows
    held = Memory()
    if sizes.params.follows_classes:
        width = -(-sizes.block_nonzeros // rows) if sizes.params.affinities.precomputed else 2 * k
        of_block = {"classes of the columns of W in a block, and values lowered": entries(rows * width, "float32")}
        held += Memory(task=of_block, points={"classes of the points": array("int32", dimensions.n_points)})
    if sizes.params.affinities.precomputed:
        of_w = {
            "a block of W: as read, to be stored, and encoded": 3 * entries(sizes.block_nonzeros, "float32"),
            "where its rows begin, and degrees": 2 * array("float64", rows, 2),
        }
        return held + Memory(task=of_w)
    if sizes.weighted:  # of the neighbours, times those of the points, and times the affinities
        of_block = {"weights of the neighbours of a block, and products": 3 * array("float64", rows, k)}
        held += Memory(task=of_block, points={"weights of the points": array("float64", dimensions.n_points)})
    cache = {"edges into all blocks": incoming(sizes, dimensions.n_blocks)}
    return held + Memory(task=rows_merged(sizes), cache=cache)


def disk(sizes: Sizes) -> Disk:
    """Return what is stored of W where no edge goes both ways."""
    of_pixels = sizes.params.neighbors.of_pixels
    most = sizes.most_nonzeros if sizes.params.symmetric_affinities.stored else 0
    nonzeros = pixel_affinities(sizes.params).stored_nonzeros(sizes) if of_pixels else most
    return Disk(written(StoredSymmetricAffinities.ARRAYS, sizes, nonzero=nonzeros))


def run(context: StageContext) -> dict[str, Any]:
    """Compute the rows of W that are missing; certify the number of edges and the extremes of the degrees."""
    task = context.task
    if task.params.neighbors.of_pixels:
        return {**pixel_affinities(task.params).write(context), **certificates(context.compute(extremes))}
    return certificates(context.compute(blocks_and_extremes))


def graphs(context: StageContext) -> Steps:
    """Yield the rows of W with what certifies them."""
    if context.task.params.neighbors.of_pixels:
        yield "affinities of pixels, in layers that are known once it runs"
        yield extremes
    else:
        yield blocks_and_extremes


def blocks_and_extremes(graph: StageGraph) -> Key | None:
    """Add the rows of W, in block ranges that read all edges each, and what certifies them."""
    task = graph.context.task
    if task.params.affinities.precomputed:
        graph.map_blocks(precomputed_block)
    else:
        together = graph.context.blocks_per_range(incoming(Sizes(task.dimensions, task.params), 1))
        graph.map_block_ranges(symmetric_blocks, together)
    return extremes(graph)


def extremes(graph: StageGraph) -> Key | None:
    """Add the number of nonzeros and the extremes of the degrees."""
    return graph.fold_blocks(
        block_extremes, lambda one, other: (one[0] + other[0], min(one[1], other[1]), max(one[2], other[2]))
    )


def certificates(of_all: tuple[int, float, float]) -> dict[str, Any]:
    """Name the number of nonzeros and the extremes of the degrees."""
    nonzeros, least, largest = of_all
    return {"nonzeros": nonzeros, "least_degree": least, "largest_degree": largest}


def block_extremes(task: StageTask, block: int) -> tuple[int, float, float]:
    """Return the nonzeros of a block and the extremes of its degrees."""
    output = StoredSymmetricAffinities(task.output)
    degrees = output.degrees(block)
    return int(output.indptr(block)[-1]), float(degrees.min()), float(degrees.max())


def symmetric_blocks(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the rows of W of each block of a range."""
    edges: dict[int, list[DirectedEdges]] = {block: [] for block in blocks}
    for source in range(task.dimensions.n_blocks):
        first, block_rows = task.dimensions.rows(source)[0], task.dimensions.block_rows
        parts = incoming_edges(*edges_of_block(task, source), first, block_rows, blocks)
        for block, part in zip(blocks, parts, strict=True):
            edges[block].append(part)
    bridges = bridge_edges(task)
    for block in blocks:
        parts = edges.pop(block)
        sources = np.flatnonzero([len(part.targets) for part in parts])
        rows = rows_of_block(task, block, join_edges(parts), bridges)
        stored = task.params.symmetric_affinities.stored
        yield block, rows if stored else StoredSymmetricAffinities.degrees_alone(rows, sources)


def rows_of_block(task: StageTask, block: int, incoming: DirectedEdges, bridges: DirectedEdges) -> Arrays:
    """Return the rows of W of a block."""
    (start, _), of_copies = task.dimensions.rows(block), loops_of_block(task, block)
    more = bridges if of_copies is None else join_edges([bridges, loop_edges(of_copies, start)])
    return stored_rows(task, symmetric_rows(*edges_of_block(task, block), start, incoming, more), block)


def precomputed_block(task: StageTask, block: int) -> Arrays:
    """Return the rows of W of a block as they were passed."""
    rows = sp.csr_matrix(task.stored(StoredPoints).points.read_block(block))
    return stored_rows(
        task, SymmetricRows(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data), block
    )


def stored_rows(task: StageTask, rows: SymmetricRows, block: int) -> Arrays:
    """Return the rows of W of a block as they are stored, with their degrees."""
    return StoredSymmetricAffinities.parts(rows.indptr, rows.indices, following_classes(task, rows, block))


def following_classes(task: StageTask, rows: SymmetricRows, block: int) -> np.ndarray:
    """Return the values (E,) of the rows of W of a block, lower between classes where affinities follow these."""
    if not task.params.follows_classes:
        return rows.values
    codes = task.stored(StoredClasses).codes
    of_columns = task.read_table(codes)[rows.indices]
    target_weight = task.params.symmetric_affinities.target_weight
    return lowered_between_classes(rows.indptr, rows.values, codes.read_block(block), of_columns, target_weight)


def bridge_edges(task: StageTask) -> DirectedEdges:
    """Return the bridges between components in both directions."""
    components = task.stored(StoredComponents)
    rows, values = components.bridge_rows.read(), components.bridge_weights.read()
    weights = stored_weights(task.inputs)
    if weights is not None:
        values = values * task.read_table(weights)[rows.ravel()].reshape(rows.shape).prod(axis=1)
    return both_ways(rows, values)
