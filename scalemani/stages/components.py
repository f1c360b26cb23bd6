"""The connected components of the affinity graph: bridges that join them, or the rows of the largest.

A task joins rows along the edges inside a range of blocks, and numbers the pieces there. Edges out of the ranges then
join pieces: a tree of tasks merges forests of these. The driver numbers the components of the pieces, by which tasks
label the rows. Bridges are searched by the labels of a block at a time. So the driver holds arrays with an entry for
each piece, component, query and cell, and one for each point only to keep the largest component, or for passed lists.
"""

import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from scalemani.config.metrics import compares_rows
from scalemani.config.stages import PRECOMPUTED
from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps, ranges_of
from scalemani.engine.graph import Key
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.sizes import Sizes, written
from scalemani.engine.task import Dimensions
from scalemani.errors import DisconnectedGraphError
from scalemani.io.sources.side_data import side_data_of
from scalemani.kernels.arrays.grouping import separate_items
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.graph.components import (
    CELLS_AT_ONCE,
    LEAST_ENTRY,
    PAIRS_AT_ONCE,
    QUERIES_AT_ONCE,
    Bridges,
    Cells,
    Ends,
    Spans,
    add_degrees,
    boruvka_round,
    chosen_rows,
    edges_leaving,
    join_inside,
    joining,
    labels_of_pieces,
    labels_of_roots,
    nearer,
    nearest_compared,
    nearest_in_cells,
    nearest_pairs,
    no_spans,
    pass_labels,
    radii_of_cells,
    reach,
    sizes_of,
    spanning_forest,
    spanning_pairs,
    sums_of_parts,
    widen_spans,
)
from scalemani.kernels.neighbors.row_scan import TILE_BYTES
from scalemani.kernels.rows.metrics import METRICS, compared_rows
from scalemani.stages.arrays.affinities import PIECES_STEP, ROOTS_STEP, StoredComponents
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredPartition, StoredWorkPoints, sketches_of, stored_weights
from scalemani.stages.shared.edges import edges_of_block, loops_of_block, raise_neighbors, stored_affinities

BRIDGE_ENTRY = 8 * LEAST_ENTRY  # that a bridge has in the normalised matrix at least: it joins with some to spare
REPORTED_SIZES = 10
# Of points that look for a bridge and that a function compares, at a time: each time, all points are passed over.
COMPARED_BYTES = 2**26
RANGE_BLOCKS = 64  # in which one task joins rows: degrees, pieces and parents of four million rows take 100 MB
EDGES_AT_ONCE = 2**18  # out of a range
LEAVING_COPIES = 20  # of eight bytes for each of these: both ends, their pieces and degrees, sorted, and as a matrix
PIECES_PER_POINT = 0.01  # in cell order, far more than of most: pixels of fields have 0.00015, in ranges of 65,536


def memory(sizes: Sizes) -> Memory:
    """Return what joining rows and pieces takes, and the search for bridges of a block."""
    dimensions, k, params = sizes.dimensions, sizes.params.affinity_neighbors, sizes.params
    n_points, rows = dimensions.n_points, dimensions.block_rows
    edges, in_range = rows * k, len(joined_ranges(dimensions)[0]) * rows
    of_components = {
        "neighbours and affinities of a block": array("int32", rows, sizes.edge_columns) + array("float32", edges),
        "degrees, pieces and parents of a range": array("float64", in_range, 3),
        "edges that leave a range, their ends, and the pieces that they join": LEAVING_COPIES
        * array("float64", min(edges, max(k, EDGES_AT_ONCE))),
    }
    if sizes.weighted:
        of_components["affinities of a block between all copies"] = array("float64", edges, 3)
    by_row = {}
    if params.components.disconnected == "largest":
        by_row["whether rows are of the largest component, and which"] = array("int64", n_points) + n_points
    by_point = {"weights of the points": array("float64", n_points)} if sizes.weighted else {}
    if params.points.metric == PRECOMPUTED:
        by_point["components of the points"] = array("int32", n_points)
    return Memory(
        process={**by_row, "pieces of all ranges, and what joins them": 10 * array("int64", pieces_expected(sizes))},
        points=by_point,
        steps={
            "bridges": memory_of_bridges(sizes),
            "components": Memory(
                task=of_components,
                cache={"degrees and pieces of points": array("float64", n_points) + array("int32", n_points)},
            ),
        },
    )


def pieces_expected(sizes: Sizes) -> float:
    """Return how many pieces ranges have in sum: of points in cell order few, of lists in any order up to all rows."""
    n_points, of_lists = sizes.dimensions.n_points, sizes.params.points.metric == PRECOMPUTED
    return n_points if of_lists else PIECES_PER_POINT * n_points


def disk(sizes: Sizes) -> Disk:
    """Return what is stored, and the degrees and pieces that go when the stage ends."""
    passing = [one for one in StoredComponents.ARRAYS if one.folders != ("",)]
    stored = [one for one in StoredComponents.ARRAYS if one not in passing]
    return Disk(written(stored, sizes), written(passing, sizes, range_piece=pieces_expected(sizes)))


def memory_of_bridges(sizes: Sizes) -> Memory:
    """Return what a search for bridges takes: by lists that are passed, by a function of two rows, or by sketches."""
    rows, width, features = sizes.dimensions.block_rows, sizes.sketch_width, sizes.dimensions.n_features
    metric, n_queries = sizes.params.points.metric, sizes.params.components.most_queries
    if metric == PRECOMPUTED:
        return Memory({"edges of a block and their lengths": 3 * array("float64", rows * sizes.edge_columns, 3)})
    if compares_rows(metric):
        at_once = min(n_queries, compared_at_once(features))
        return Memory(
            {"points that look for a bridge, also in float64": 2 * array("float64", at_once, features)},
            {
                "a block of points, encoded and decoded": 2 * rows * sizes.dimensions.row_bytes,
                "a tile of points in float64": max(TILE_BYTES, array("float64", features)),
                "rows of other components and how far they are": 4 * array("float64", at_once, 2),
            },
        )
    return Memory(
        {
            "sketches of the points that look for a bridge": 2 * array("float64", n_queries, width),
            "centres, radii and first rows of the cells": array("float64", sizes.n_cells, width + 3),
        },
        {
            "sketches of a block, and from the centres of their cells": array("float32", rows, width)
            + 3 * array("float64", rows, width),
            "radii of cells, and distances of queries to them": array(
                "float64", sizes.n_cells + 3 * pairs_at_once(sizes)
            ),
            # Products in float32 and doubled, squared lengths in float64, and what is left of both.
            "distances to a tile of points": 3 * array("float64", QUERIES_AT_ONCE, TILE_ROWS),
        },
    )


def compared_at_once(n_features: int) -> int:
    """Return how many points that look for a bridge a function compares in one pass over all points."""
    return max(1, COMPARED_BYTES // (8 * n_features))


def pairs_at_once(sizes: Sizes) -> int:
    """Return how many distances between queries and cells are held at once, at most."""
    n_queries = sizes.params.components.most_queries
    return max(min(PAIRS_AT_ONCE, n_queries * sizes.n_cells), sizes.n_cells, n_queries * CELLS_AT_ONCE)


def run(context: StageContext) -> dict[str, Any]:
    """Count the components, then by `disconnected`: bridge them, select the largest, leave them, or raise an error."""
    task = context.task
    sizes = label_components(context)
    n_components, disconnected = len(sizes), task.params.components.disconnected
    largest = np.sort(sizes)[::-1][:REPORTED_SIZES].tolist()
    if n_components > 1 and disconnected == "error":
        raise DisconnectedGraphError(
            f"the neighbour graph has {n_components} components (largest: {largest}): {what_helps(task)}, or "
            "components.disconnected=largest to embed the largest alone"
        )
    selects_largest = n_components > 1 and disconnected == "largest"
    if selects_largest:
        rows_of_largest = input_rows_of(task, int(np.argmax(sizes)))
        task.output.write_whole({StoredComponents.kept_rows: rows_of_largest}, StoredComponents.LARGEST_UNIT)
        context.warn(
            f"{task.stage}: the neighbour graph has {n_components} components (largest: {largest}); the largest, "
            f"{len(rows_of_largest)} of {task.dimensions.n_points} points, is embedded, the others are left out"
        )
    rows, distances = Bridges(np.empty((0, 2), np.int64), np.empty(0))
    if n_components > 1 and disconnected == "connect":
        listed = task.params.points.metric == PRECOMPUTED
        rows, distances = listed_bridges(context) if listed else searched_bridges(context, sizes)
    task.output.write_whole(
        {
            StoredComponents.bridge_rows: rows,
            StoredComponents.bridge_distances: distances,
            StoredComponents.bridge_weights: bridge_weights(task, rows),
        }
    )
    if not context.executor.keep:
        for step in (ROOTS_STEP, PIECES_STEP):
            task.output.remove_step(step)
    certificates = {"components": n_components, "largest_components": largest, "bridges": len(rows)}
    if selects_largest:
        certificates["left_out"] = task.dimensions.n_points - len(rows_of_largest)
    return certificates


def graphs(context: StageContext) -> Steps:
    """Yield the pieces of ranges with their degrees, then what joins pieces, and the labels."""
    yield pieces_and_sizes
    yield "pieces of all ranges are numbered"
    offsets = np.zeros(len(joined_ranges(context.task.dimensions)) + 1, np.int64)  # known once pieces are
    if len(offsets) > 2:  # of several ranges, between which edges join pieces
        yield functools.partial(add_forest, offsets)
        yield "union-find over the pieces, of which a range has few"
    yield functools.partial(add_labels, offsets)
    yield "bridges between components, where there are several, by tasks for their closest pairs"


def joined_ranges(dimensions: Dimensions) -> list[range]:
    """Return the ranges of blocks in which rows are joined first, a function of the shape of the points alone.

    Tasks that begin where others were interrupted then number the same pieces.
    """
    return ranges_of(dimensions.n_blocks, RANGE_BLOCKS)


def range_of(dimensions: Dimensions, block: int) -> range:
    """Return the range of `joined_ranges` that a block is in."""
    ranges = joined_ranges(dimensions)
    return ranges[block // len(ranges[0])]


def label_components(context: StageContext) -> np.ndarray:
    """Write the label of each row; return the rows (C,) int64 of each component.

    Edges join that their degrees do not let vanish; where edges have no affinity there are no degrees, and all join.
    """
    task, dimensions, stored = context.task, context.task.dimensions, StoredComponents
    if stored_affinities(task) is not None:
        task.output.create(dimensions.n_points, [stored.degree_roots.sized()], ROOTS_STEP)
    task.output.create(dimensions.n_points, [stored.pieces.sized()], PIECES_STEP)
    sizes = context.compute(pieces_and_sizes)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(of_range) for of_range in sizes])])
    several = len(sizes) > 1  # ranges, between which edges join pieces
    forest = context.compute(functools.partial(add_forest, offsets)) if several else np.empty((0, 2), np.int64)
    labels = labels_of_pieces(int(offsets[-1]), forest)
    task.output.write_whole({stored.piece_labels: labels}, stored.LABELS_UNIT, PIECES_STEP)
    task.output.create(dimensions.n_points, [stored.labels.sized()])
    context.compute(functools.partial(add_labels, offsets))
    return sums_of_parts(labels, np.concatenate(sizes))


def pieces_and_sizes(graph: StageGraph) -> Key | None:
    """Add the degrees of all rows where edges have affinities, the pieces of all ranges, and the rows of each piece."""
    context, dimensions = graph.context, graph.context.task.dimensions
    ranges, has_degrees = joined_ranges(dimensions), stored_affinities(context.task) is not None
    if has_degrees:
        together = context.blocks_per_range(int(array("float64", dimensions.block_rows)))
        graph.map_block_ranges(roots_of_range, max(together, len(ranges[0])), ROOTS_STEP)
    reads = functools.partial(range_of, dimensions) if has_degrees else None
    graph.map_block_ranges(pieces_of_range, len(ranges[0]), PIECES_STEP, reads)
    return graph.fold(sizes_of_pieces, operator.add, ranges)


def add_forest(offsets: np.ndarray, graph: StageGraph) -> Key | None:
    """Add what joins the pieces of all ranges, which have their first pieces at `offsets` (R + 1,)."""
    ranges = joined_ranges(graph.context.task.dimensions)
    return graph.fold(functools.partial(joined_pieces, offsets), joined_forests, ranges)


def add_labels(offsets: np.ndarray, graph: StageGraph) -> None:
    """Add the labels of the rows of all blocks."""
    graph.map_blocks(functools.partial(labels_of_block, offsets))


def roots_of_range(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the square roots of the degrees of P + P^T of the rows of blocks, by one pass over the graph."""
    dimensions, (first, last) = task.dimensions, task.dimensions.rows_of(blocks)
    degrees = np.zeros(last - first)
    for block in range(dimensions.n_blocks):
        start, stop = dimensions.rows(block)
        add_degrees(degrees, first, *edges_of_block(task, block, np.float64), start)
        if block in blocks and (of_copies := loops_of_block(task, block)) is not None:
            degrees[start - first : stop - first] += 2.0 * of_copies
    roots = np.sqrt(degrees, out=degrees)
    for block in blocks:
        start, stop = dimensions.rows(block)
        yield block, {StoredComponents.degree_roots: roots[start - first : stop - first]}


def stored_roots(task: StageTask, first: int, last: int) -> np.ndarray | None:
    """Return the square roots of the degrees of rows [first, last); None where edges have no affinity."""
    if stored_affinities(task) is None:
        return None
    return StoredComponents(task.output).degree_roots(ROOTS_STEP).read_rows(slice(first, last))


def pieces_of_range(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the pieces of blocks of one range: what edges inside the range join, numbered there by first rows."""
    dimensions, whole = task.dimensions, range_of(task.dimensions, blocks[0])
    first, last = dimensions.rows_of(whole)
    parents, roots = separate_items(last - first), stored_roots(task, first, last)
    for block in whole:
        join_inside(parents, first, *edges_of_block(task, block, np.float64), dimensions.rows(block)[0], roots)
    pieces = labels_of_roots(parents)
    for block in blocks:
        start, stop = dimensions.rows(block)
        yield block, {StoredComponents.pieces: pieces[start - first : stop - first]}


def sizes_of_pieces(task: StageTask, blocks: range) -> list[np.ndarray]:
    """Return the rows (p,) int64 of each piece of a range, in a list that those of other ranges are added to."""
    pieces = StoredComponents(task.output).pieces(PIECES_STEP)
    return [sizes_of(pieces.read_rows(slice(*task.dimensions.rows_of(blocks))))]


def joined_pieces(offsets: np.ndarray, task: StageTask, blocks: range) -> np.ndarray:
    """Return the pairs (F, 2) int64 of pieces of all ranges that edges out of a range join, as a forest.

    Parameters
    ----------
    offsets : (R + 1,) int64, the number of the first piece of each range
    """
    dimensions, (first, last) = task.dimensions, task.dimensions.rows_of(blocks)
    stored, rows_each = StoredComponents(task.output), len(joined_ranges(dimensions)[0]) * dimensions.block_rows
    pieces, roots = stored.pieces(PIECES_STEP), stored_roots(task, first, last)
    of_range = offsets[first // rows_each] + pieces.read_rows(slice(first, last))
    forest = np.empty((0, 2), np.int64)
    for start, indices, values in edges_in_turn(task, blocks):
        leaving = edges_leaving(indices, values, start, first, last)
        rows, places = np.unique(leaving.targets, return_inverse=True)
        elsewhere = offsets[rows // rows_each] + pieces.gather(rows, task.cache_bytes)
        pairs = np.column_stack([of_range[leaving.sources - first], elsewhere[places]])
        if roots is not None:
            of_targets = stored.degree_roots(ROOTS_STEP).gather(rows, task.cache_bytes)[places]
            pairs = pairs[joining(leaving, roots[leaving.sources - first], of_targets)]
        forest = joined_forests(forest, pairs)
    return forest


def edges_in_turn(task: StageTask, blocks: range) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the first of some rows of blocks, their neighbours (n, k), and the affinities of these edges."""
    for block in blocks:
        indices, values = edges_of_block(task, block, np.float64)
        for part in slices(len(indices), max(1, EDGES_AT_ONCE // indices.shape[1])):
            yield task.dimensions.rows(block)[0] + part.start, indices[part], values[part]


def joined_forests(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the forest of two sets of pairs of pieces."""
    return spanning_forest(np.concatenate([one, other]))


def labels_of_block(offsets: np.ndarray, task: StageTask, block: int) -> Arrays:
    """Return the components of the rows of a block, by those of its pieces."""
    stored, number = StoredComponents(task.output), block // len(joined_ranges(task.dimensions)[0])
    of_pieces = stored.piece_labels(PIECES_STEP).read_rows(slice(*offsets[number : number + 2].tolist()))
    return {StoredComponents.labels: of_pieces[stored.pieces(PIECES_STEP).read_block(block)]}


def blocks_of_labels(task: StageTask) -> Iterable[tuple[slice, np.ndarray]]:
    """Yield the rows of each block, and the components (n,) that they are in."""
    labels = StoredComponents(task.output).labels
    for block in range(task.dimensions.n_blocks):
        yield slice(*task.dimensions.rows(block)), labels.read_block(block)


def input_rows_of(task: StageTask, component: int) -> np.ndarray:
    """Return the input rows (n,) int64 of a component, ascending."""
    inside, input_rows = np.zeros(task.dimensions.n_points, bool), task.stored(StoredWorkPoints).input_rows
    for rows, labels in blocks_of_labels(task):
        inside[input_rows.read_rows(rows)[labels == component]] = True
    return np.flatnonzero(inside)


def searched_bridges(context: StageContext, sizes: np.ndarray) -> Bridges:
    """Return bridges that join all components of points, of such sizes (C,), by a search for their closest pairs.

    Components of which no row is finitely far from those of others, which a function may say, stay apart.
    """
    task, params = context.task, context.task.params.components
    numbers, rounds = np.arange(len(sizes)), [Bridges(np.empty((0, 2), np.int64), np.empty(0))]
    labels = StoredComponents(task.output).labels
    cells = None if compares_rows(task.params.points.metric) else cells_with_radii(context)
    while len(sizes) > 1:
        of_each = max(1, min(params.queries_per_component, params.most_queries // len(sizes)))
        queries, spans = queries_of_round(task, numbers, sizes, of_each, cells)
        if cells is None:
            rows, distances = nearest_of_compared_components(context, numbers, queries)
        else:
            rows, distances = nearest_of_other_components(context, (cells, spans), numbers, queries)
        neighbors = Ends(rows, numbers[labels.gather(np.maximum(rows, 0))])
        bridges, joined = boruvka_round(len(sizes), queries, neighbors, distances)
        if len(bridges.rows) == 0:
            break
        rounds.append(bridges)
        numbers, sizes = joined[numbers], sums_of_parts(joined, sizes)
    return Bridges(*map(np.concatenate, zip(*rounds, strict=True)))


def queries_of_round(
    task: StageTask, numbers: np.ndarray, sizes: np.ndarray, of_each: int, cells: Cells | None
) -> tuple[Ends, Spans]:
    """Return the rows that look for a bridge in a round, and the components that the rows of cells are in.

    Parameters
    ----------
    numbers : (C,) int, the component that each is part of by now
    sizes : rows of each of these
    of_each : rows of a component that look
    """
    chosen, spans = chosen_rows(sizes, of_each), no_spans(0 if cells is None else len(cells.radii))
    for rows, labels in blocks_of_labels(task):
        pass_labels(chosen, numbers[labels], rows.start)
        if cells is not None:
            widen_spans(spans, cells.offsets, numbers[labels], rows.start)
    return chosen.ends, spans


def listed_bridges(context: StageContext) -> Bridges:
    """Return bridges by the distances that are known of lists: theirs, and those of closest pairs of a whole matrix.

    Components between which none is known stay apart.
    """
    task, pairs = context.task, None if context.points is None else side_data_of(context.points.source).pairs
    neighbors, known = task.stored(StoredNeighbors), [] if pairs is None else [pairs.bridges]
    labels = StoredComponents(task.output).labels.read(context.workspace.empty)
    lists, lengths = neighbors.indices(neighbors.final_step), neighbors.distances(neighbors.final_step)
    for block in range(task.dimensions.n_blocks):
        ends = lists.read_block(block).astype(np.int64)
        starts = np.repeat(np.arange(*task.dimensions.rows(block)), ends.shape[1])
        edges = np.column_stack([starts, ends.ravel()])
        known.append(nearest_pairs(labels, edges, lengths.read_block(block).ravel().astype(np.float64)))
    return spanning_pairs(labels, Bridges(*map(np.concatenate, zip(*known, strict=True))))


def what_helps(task: StageTask) -> str:
    """Return what joins the components of a graph, or embeds it as it is."""
    metric = task.params.points.metric
    if metric == PRECOMPUTED:
        return "give more neighbours a point, or set components.disconnected=separate to embed each by itself"
    raised = "raise neighbors.n_neighbors" if stored_affinities(task) is None else raise_neighbors(task.params)
    return f"{raised}, or set components.disconnected=connect to join them through their closest pairs"


def cells_with_radii(context: StageContext) -> Cells:
    """Return the row ranges of the cells of the partition as balls, by one pass over the sketches."""
    task = context.task
    offsets, cells = task.stored(StoredWorkPoints).cell_ranges
    centers = task.stored(StoredPartition).centroids.read()[cells]

    sketches = sketches_of(task.stored(StoredWorkPoints), task.stored(StoredPartition).basis)

    def radii_in_block(block: int) -> np.ndarray:
        return radii_of_cells(sketches.read_block(block), task.dimensions.rows(block)[0], offsets, centers)

    blocks = range(task.dimensions.n_blocks)
    context.executor.progress.start(task.stage, len(blocks))
    return Cells(offsets, centers, context.executor.fold_here(radii_in_block, np.maximum, blocks))


def nearest_of_other_components(
    context: StageContext, places: tuple[Cells, Spans], numbers: np.ndarray, queries: Ends
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest row of another component for each of some rows.

    Parameters
    ----------
    places : the cells, and the components that their rows are in
    numbers : (C,) int, the component that each label stands for
    queries : Q work rows

    Returns
    -------
    rows : (Q,) int64, work rows, by distance of the sketches
    distances : (Q,) float64, these distances, in the units of the points
    """
    task, basis, (cells, spans) = context.task, context.task.stored(StoredPartition).basis, places
    sketches, labels = sketches_of(task.stored(StoredWorkPoints), basis), StoredComponents(task.output).labels
    points = sketches.gather(queries.rows)
    within = reach(points, queries.labels, spans, cells)

    def nearest_in_block(block: int) -> tuple[np.ndarray, np.ndarray]:
        start, there = task.dimensions.rows(block)[0], numbers[labels.read_block(block)]
        return nearest_in_cells(points, queries.labels, within, sketches.read_block(block), there, start, cells)

    blocks = range(task.dimensions.n_blocks)
    context.executor.progress.start(task.stage, len(blocks))
    rows, distances = context.executor.fold_here(nearest_in_block, nearer, blocks)
    return rows, distances * basis.scale


def nearest_of_compared_components(
    context: StageContext, numbers: np.ndarray, queries: Ends
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `nearest_of_other_components` does, by the function that compares rows; -1 where none is finite."""
    task, stored = context.task, context.task.stored(StoredWorkPoints).dense_points
    metric, blocks = task.params.points.metric, range(task.dimensions.n_blocks)
    labels, distance = StoredComponents(task.output).labels, METRICS[metric].distance
    passes = slices(len(queries.rows), compared_at_once(task.dimensions.n_features))
    context.executor.progress.start(task.stage, len(passes) * len(blocks))

    def nearest_of(some: slice) -> tuple[np.ndarray, np.ndarray]:
        points = compared_rows(stored.gather(queries.rows[some]), metric)

        def nearest_in_block(block: int) -> tuple[np.ndarray, np.ndarray]:
            start, there = task.dimensions.rows(block)[0], numbers[labels.read_block(block)]
            return nearest_compared(distance, points, queries.labels[some], stored.read_block(block), there, start)

        nearest: tuple[np.ndarray, np.ndarray] = context.executor.fold_here(nearest_in_block, nearer, blocks)
        return nearest

    rows, distances = zip(*map(nearest_of, passes), strict=True)
    return np.concatenate(rows), np.concatenate(distances)


def bridge_weights(task: StageTask, rows: np.ndarray) -> np.ndarray:
    """Return the weight of each bridge: the mean over its ends of the affinity of the farthest neighbour.

    A bridge then weighs no more than any edge that was chosen for being near. It never vanishes next to them, nor
    next to the degrees of its ends. Where edges have no affinity, bridges have none: zeros.
    """
    ends, inverse = np.unique(rows, return_inverse=True)
    affinities = stored_affinities(task)
    if len(ends) == 0 or affinities is None:
        return np.zeros(len(rows))
    roots = StoredComponents(task.output).degree_roots(ROOTS_STEP).gather(ends)
    values = affinities.values.gather(ends).astype(np.float64)
    means, copies = values.mean(axis=1), np.ones(len(ends))
    stored = stored_weights(task.inputs)
    if stored is not None:  # a point with many copies may have no other affinity than to these
        means = np.maximum(means, affinities.twins.gather(ends) / values.shape[1])
        copies = task.read_table(stored)[ends]
    weights = np.maximum(values.min(axis=1), task.params.components.least_bridge_weight * means)
    # W halves P + P^T, and a bridge is between all copies at both ends.
    least = 0.5 * BRIDGE_ENTRY * (roots / copies)[inverse.reshape(rows.shape)].prod(axis=1)
    return np.maximum(weights[inverse.reshape(rows.shape)].mean(axis=1), least)
