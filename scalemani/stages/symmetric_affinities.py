"""W = (P + P^T) / 2 with the bridges between components: the one transpose of the graph, by runs of target blocks.

Where affinities follow classes, entries between points of different ones are lowered once all else is summed. Where W
was given in the place of points, its rows are those that were given.

Each block of rows of W is one sparse matrix in CSR form with its degrees. A task holds the edges into a run of blocks
and streams the whole graph past them; how many blocks a run has is a matter of memory and leaves no trace.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.config.methods import beside, load
from scalemani.config.params import Resolved
from scalemani.config.stages import WINDOW
from scalemani.engine.needs import CACHE, EACH_TASK, LOOKED_UP, Held, Span, Written, entries_held
from scalemani.engine.sizes import Sizes, written
from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.kernels.affinities.reweighting import lowered_between_classes
from scalemani.kernels.graph.symmetric import (
    DirectedEdges,
    SymmetricRows,
    incoming_edges,
    join_edges,
    loop_edges,
    symmetric_rows,
)
from scalemani.stages.arrays.affinities import StoredComponents, StoredSymmetricAffinities
from scalemani.stages.arrays.points import StoredClasses, StoredPoints, stored_weights
from scalemani.stages.shared.edges import edges_of_block, loops_of_block

COPIES_OF_INCOMING = 2  # by the block that they come from, and joined
BYTES_OF_SET = 600  # three small arrays of Python's, and what holds them
COPIES_OF_WEIGHTS = 3  # of the neighbours, times those of the points, and times the affinities
COPIES_OF_ROWS = 2  # before and after they are cut to size
COPIES_OF_GIVEN = 3  # as they are read, to be stored, and encoded


def memory(sizes: Sizes) -> list[Held]:
    """List the edges into a run of blocks, and what a block takes as it is read and as its rows of W are made."""
    if sizes.params.neighbors.by_window:
        return beside("AFFINITY_KINDS", kind_of_pixels(sizes.params), "memory")(sizes)
    dimensions, k = sizes.dimensions, sizes.params.affinity_neighbors
    rows = dimensions.block_rows
    classified = classified_held(sizes) if sizes.params.follows_classes else []
    if sizes.params.affinities.precomputed:
        return [*classified, *given_held(sizes)]
    weighted = [
        Held("weights of the points", LOOKED_UP, dimensions.n_points),
        Held("weights of the neighbours of a block, and products", EACH_TASK, rows, COPIES_OF_WEIGHTS * k),
    ]
    return [
        *(weighted if sizes.weighted else []),
        *classified,
        *(replace(record, copies=COPIES_OF_INCOMING) for record in incoming(rows, k, EACH_TASK)),
        sets_of_incoming(sizes.dimensions.n_blocks, 1, EACH_TASK),
        Held("neighbours of a block", EACH_TASK, rows, sizes.edge_columns, "int32"),
        Held("distances of a block", EACH_TASK, rows, sizes.edge_columns, sizes.dimensions.distance_dtype),
        Held("affinities of a block", EACH_TASK, rows, k, "float32"),
        Held("order of the incoming edges", EACH_TASK, rows, k, "int64"),
        Held("columns of W in a block", EACH_TASK, rows, 2 * k, "int32", COPIES_OF_ROWS),
        Held("values of W in a block", EACH_TASK, rows, 2 * k, "float32", COPIES_OF_ROWS),
        *incoming(dimensions.n_blocks * rows, k, CACHE),
        sets_of_incoming(dimensions.n_blocks, dimensions.n_blocks, CACHE),
    ]


def kind_of_pixels(params: Resolved) -> str:
    """Return the kind of affinities between pixels, by which a method writes W."""
    return str(params.affinities.kind) if params.affinities.by_trees else WINDOW


def classified_held(sizes: Sizes) -> list[Held]:
    """List what a block takes whose affinities follow classes."""
    rows, k = sizes.dimensions.block_rows, sizes.params.affinity_neighbors
    width = -(-sizes.block_nonzeros // rows) if sizes.params.affinities.precomputed else 2 * k
    return [
        Held("classes of the points", LOOKED_UP, sizes.dimensions.n_points, 1, "int32"),
        Held("classes of the columns of W in a block", EACH_TASK, rows, width, "int32"),
        Held("values of W in a block, lowered", EACH_TASK, rows, width, "float32"),
    ]


def given_held(sizes: Sizes) -> list[Held]:
    """List what a block takes of a W that was given."""
    return [
        *entries_held("a block of W as given", EACH_TASK, sizes.block_nonzeros, COPIES_OF_GIVEN, values="float32"),
        Held("where rows of a block of W begin, and degrees", EACH_TASK, sizes.dimensions.block_rows, 2, copies=2),
    ]


def incoming(n_rows: int, n_neighbors: int, span: Span) -> list[Held]:
    """List the edges of the graph that end in so many rows, as many as start there."""
    return [
        Held("ends of incoming edges", span, n_rows, 2 * n_neighbors, "int32"),
        Held("affinities of incoming edges", span, n_rows, n_neighbors, "float32"),
    ]


def sets_of_incoming(n_blocks: int, n_targets: int, span: Span) -> Held:
    """Return what the edges into so many of the blocks take beside themselves: each comes in sets."""
    return Held("sets that incoming edges come in", span, n_targets * n_blocks, BYTES_OF_SET, "uint8")


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored of W where no edge goes both ways, and no two trees share one; of windows its degrees."""
    by_window, by_trees = sizes.params.neighbors.by_window, sizes.params.affinities.by_trees
    trees = 2 * sizes.params.affinities.trees * sizes.dimensions.n_points
    nonzeros = trees if by_window and by_trees else 0 if by_window else sizes.most_nonzeros
    return written(StoredSymmetricAffinities.ARRAYS, sizes, nonzero=nonzeros)


def run(work: StageWork) -> dict[str, Any]:
    """Compute the rows of W that are missing; certify the number of edges and the extremes of the degrees."""
    task = work.task
    if task.params.neighbors.by_window:
        return {**load("AFFINITY_KINDS", kind_of_pixels(task.params))(work), **certificates(work)}
    if task.params.affinities.precomputed:
        work.map_blocks(given_block)
        return certificates(work)
    of_block = incoming(task.dimensions.block_rows, task.params.affinity_neighbors, CACHE)
    of_block.append(sets_of_incoming(task.dimensions.n_blocks, 1, CACHE))
    work.map_runs(symmetric_blocks, work.run_blocks(sum(record.bytes for record in of_block)))
    return certificates(work)


def certificates(work: StageWork) -> dict[str, Any]:
    """Certify the number of nonzeros and the extremes of the degrees."""
    nonzeros, least, largest = work.fold_blocks(
        block_extremes, lambda one, other: (one[0] + other[0], min(one[1], other[1]), max(one[2], other[2]))
    )
    return {"nonzeros": nonzeros, "least_degree": least, "largest_degree": largest}


def block_extremes(task: StageTask, block: int) -> tuple[int, float, float]:
    """Return the nonzeros of a block and the extremes of its degrees."""
    output = StoredSymmetricAffinities(task.output)
    degrees = output.degrees(block)
    return int(output.indptr(block)[-1]), float(degrees.min()), float(degrees.max())


def symmetric_blocks(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the rows of W of each block of a run."""
    edges: dict[int, list[DirectedEdges]] = {block: [] for block in blocks}
    for source in range(task.dimensions.n_blocks):
        first, block_rows = task.dimensions.rows(source)[0], task.dimensions.block_rows
        found = incoming_edges(*edges_of_block(task, source), first, block_rows, blocks)
        for block, part in zip(blocks, found, strict=True):
            edges[block].append(part)
    bridges = bridge_edges(task)
    for block in blocks:
        yield block, rows_of_block(task, block, join_edges(edges.pop(block)), bridges)


def rows_of_block(task: StageTask, block: int, incoming: DirectedEdges, bridges: DirectedEdges) -> Arrays:
    """Return the rows of W of a block."""
    (start, _), of_copies = task.dimensions.rows(block), loops_of_block(task, block)
    more = bridges if of_copies is None else join_edges([bridges, loop_edges(of_copies, start)])
    return stored_rows(task, symmetric_rows(*edges_of_block(task, block), start, incoming, more), block)


def given_block(task: StageTask, block: int) -> Arrays:
    """Return the rows of W of a block as they were given."""
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
    targets, sources = (ends.T.ravel().astype(np.int32) for ends in (rows, rows[:, ::-1]))
    return DirectedEdges(targets, sources, np.tile(values, 2).astype(np.float32))
