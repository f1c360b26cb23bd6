"""The connected components of the affinity graph: bridges that join them, or the rows of the largest."""

import functools
from typing import Any

import numpy as np

from scalemani.config.metrics import compares_rows
from scalemani.config.stages import PRECOMPUTED
from scalemani.engine.context import StageContext, StageTask, Steps
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.sizes import Sizes, grouping
from scalemani.errors import DisconnectedGraphError
from scalemani.io.sources.side_data import side_data_of
from scalemani.kernels.arrays.grouping import separate_items
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.arrays.workspace import Empty, Workspace
from scalemani.kernels.graph.components import (
    CELLS_AT_ONCE,
    LEAST_ENTRY,
    PAIRS_AT_ONCE,
    QUERIES_AT_ONCE,
    Bridges,
    Cells,
    Components,
    add_degrees,
    boruvka_round,
    bridge_queries,
    components,
    join_neighbors,
    nearer,
    nearest_compared,
    nearest_in_cells,
    nearest_pairs,
    radii_of_cells,
    reach,
    spanning_pairs,
)
from scalemani.kernels.neighbors.row_scan import TILE_BYTES
from scalemani.kernels.rows.metrics import METRICS, compared_rows
from scalemani.stages.arrays.affinities import StoredComponents
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredPartition, StoredWorkPoints, sketches_of, stored_weights
from scalemani.stages.shared.edges import edges_of_block, loops_of_block, raise_neighbors, stored_affinities

BRIDGE_ENTRY = 8 * LEAST_ENTRY  # that a bridge has in the normalised matrix at least: it joins with some to spare
REPORTED_SIZES = 10
# Of points that look for a bridge and that a function compares, at a time: each time, all points are passed over.
COMPARED_BYTES = 2**26


def memory(sizes: Sizes) -> Memory:
    """Return what the union-find takes, and the search for bridges of a block."""
    n_points, rows = sizes.dimensions.n_points, sizes.dimensions.block_rows
    edges = rows * sizes.params.affinity_neighbors
    read = array("int32", rows, sizes.edge_columns) + array("float32", edges)
    of_components = {"neighbours and affinities of a block": read}
    if sizes.weighted:
        of_components["affinities of a block between all copies"] = array("float64", edges, 3)
    largest = sizes.params.components.disconnected == "largest"
    by_row = {"rows of the largest component, by both orders and sorted": 3 * array("int64", n_points)}
    by_point = {"degrees": array("float64", n_points), "parents, labels, and of a round": 3 * array("int32", n_points)}
    if sizes.weighted:
        by_point["weights of the points"] = array("float64", n_points)
    grouped = grouping(n_points, "order of the points by component")
    return Memory(
        process=by_row if largest else {},
        points=by_point,
        steps={"bridges": grouped + memory_of_bridges(sizes), "components": Memory(of_components)},
    )


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
    empty = context.workspace.empty
    parts, roots = components_of_graph(task, empty)
    n_components, disconnected = len(parts.sizes), task.params.components.disconnected
    largest = np.sort(parts.sizes)[::-1][:REPORTED_SIZES].tolist()
    if n_components > 1 and disconnected == "error":
        raise DisconnectedGraphError(
            f"the neighbour graph has {n_components} components (largest: {largest}): {what_helps(task)}, or "
            "components.disconnected=largest to embed the largest alone"
        )
    selects_largest = n_components > 1 and disconnected == "largest"
    if selects_largest:
        input_rows = task.stored(StoredWorkPoints).input_rows.read()
        rows_of_largest = np.sort(input_rows[parts.labels == np.argmax(parts.sizes)]).astype(np.int64)
        task.output.write_whole({StoredComponents.kept_rows: rows_of_largest}, StoredComponents.LARGEST_UNIT)
        context.warn(
            f"{task.stage}: the neighbour graph has {n_components} components (largest: {largest}); the largest, "
            f"{len(rows_of_largest)} of {task.dimensions.n_points} points, is embedded, the others are left out"
        )
    rows, distances = Bridges(np.empty((0, 2), np.int64), np.empty(0))
    if n_components > 1 and disconnected == "connect":
        listed = task.params.points.metric == PRECOMPUTED
        rows, distances = listed_bridges(context, parts) if listed else searched_bridges(context, parts, empty)
    task.output.write_whole(
        {
            StoredComponents.labels: parts.labels,
            StoredComponents.bridge_rows: rows,
            StoredComponents.bridge_distances: distances,
            StoredComponents.bridge_weights: bridge_weights(task, rows, roots),
        }
    )
    certificates = {"components": n_components, "largest_components": largest, "bridges": len(rows)}
    if selects_largest:
        certificates["left_out"] = task.dimensions.n_points - len(rows_of_largest)
    return certificates


def graphs(context: StageContext) -> Steps:
    """Yield what the driver does alone."""
    yield "union-find over the edges, and bridges between components by tasks on the driver's threads"


def searched_bridges(context: StageContext, parts: Components, empty: Empty) -> Bridges:
    """Return bridges that join all components of points, by a search for their closest pairs.

    Components of which no row is finitely far from those of others, which a function may say, stay apart.
    """
    params, joined, rounds = context.task.params.components, parts, [Bridges(np.empty((0, 2), np.int64), np.empty(0))]
    if compares_rows(context.task.params.points.metric):
        search = functools.partial(nearest_of_compared_components, context)
    else:
        search = functools.partial(nearest_of_other_components, context, cells_with_radii(context))
    while len(joined.sizes) > 1:
        of_each = max(1, min(params.queries_per_component, params.most_queries // len(joined.sizes)))
        queries = bridge_queries(joined.labels, of_each, empty)
        bridges, joined = boruvka_round(joined.labels, queries, *search(joined.labels, queries), empty)
        if len(bridges.rows) == 0:
            break
        rounds.append(bridges)
    return Bridges(*map(np.concatenate, zip(*rounds, strict=True)))


def listed_bridges(context: StageContext, parts: Components) -> Bridges:
    """Return bridges by the distances that are known of lists: theirs, and those of closest pairs of a whole matrix.

    Components between which none is known stay apart.
    """
    task, pairs = context.task, None if context.points is None else side_data_of(context.points.source).pairs
    neighbors, known = task.stored(StoredNeighbors), [] if pairs is None else [pairs.bridges]
    lists, lengths = neighbors.indices(neighbors.final_step), neighbors.distances(neighbors.final_step)
    for block in range(task.dimensions.n_blocks):
        ends = lists.read_block(block).astype(np.int64)
        starts = np.repeat(np.arange(*task.dimensions.rows(block)), ends.shape[1])
        edges = np.column_stack([starts, ends.ravel()])
        known.append(nearest_pairs(parts.labels, edges, lengths.read_block(block).ravel().astype(np.float64)))
    return spanning_pairs(parts.labels, Bridges(*map(np.concatenate, zip(*known, strict=True))))


def what_helps(task: StageTask) -> str:
    """Return what joins the components of a graph, or embeds it as it is."""
    metric = task.params.points.metric
    if metric == PRECOMPUTED:
        return "give more neighbours a point, or set components.disconnected=separate to embed each by itself"
    raised = "raise neighbors.n_neighbors" if stored_affinities(task) is None else raise_neighbors(task.params)
    return f"{raised}, or set components.disconnected=connect to join them through their closest pairs"


def components_of_graph(task: StageTask, empty: Empty) -> tuple[Components, np.ndarray | None]:
    """Return the components of the graph, and the square roots (N,) float64 of the degrees of P + P^T.

    Edges join that these do not let vanish; where edges have no affinity there are no degrees, and all edges join.
    """
    n_points, blocks, roots = task.dimensions.n_points, range(task.dimensions.n_blocks), None
    if stored_affinities(task) is not None:
        roots = Workspace(empty=empty).zeros((n_points,), np.float64)
        for block in blocks:
            (start, stop), of_copies = task.dimensions.rows(block), loops_of_block(task, block)
            add_degrees(roots, *edges_of_block(task, block, np.float64), start)
            roots[start:stop] += 0.0 if of_copies is None else 2.0 * of_copies
        np.sqrt(roots, out=roots)
    parents = separate_items(n_points, empty)
    for block in blocks:
        join_neighbors(parents, *edges_of_block(task, block, np.float64), task.dimensions.rows(block)[0], roots)
    return components(parents, empty), roots


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
    context: StageContext, cells: Cells, labels: np.ndarray, queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest row of another component for each of some rows.

    Parameters
    ----------
    labels : (N,) int, the component of each work row
    queries : (q,) int64, work rows

    Returns
    -------
    rows : (q,) int64, work rows, by distance of the sketches
    distances : (q,) float64, these distances, in the units of the points
    """
    task, basis = context.task, context.task.stored(StoredPartition).basis
    sketches = sketches_of(task.stored(StoredWorkPoints), basis)
    points, labels_there = sketches.gather(queries), labels[queries]
    within = reach(points, labels_there, labels, cells)

    def nearest_in_block(block: int) -> tuple[np.ndarray, np.ndarray]:
        start, stop = task.dimensions.rows(block)
        return nearest_in_cells(
            points, labels_there, within, sketches.read_block(block), labels[start:stop], start, cells
        )

    blocks = range(task.dimensions.n_blocks)
    context.executor.progress.start(task.stage, len(blocks))
    rows, distances = context.executor.fold_here(nearest_in_block, nearer, blocks)
    return rows, distances * basis.scale


def nearest_of_compared_components(
    context: StageContext, labels: np.ndarray, queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `nearest_of_other_components` does, by the function that compares rows; -1 where none is finite."""
    task, stored = context.task, context.task.stored(StoredWorkPoints).dense_points
    metric, blocks = task.params.points.metric, range(task.dimensions.n_blocks)
    passes = [queries[part] for part in slices(len(queries), compared_at_once(task.dimensions.n_features))]
    context.executor.progress.start(task.stage, len(passes) * len(blocks))

    def nearest_of(some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        points = compared_rows(stored.gather(some), metric)

        def nearest_in_block(block: int) -> tuple[np.ndarray, np.ndarray]:
            (start, stop), distance = task.dimensions.rows(block), METRICS[metric].distance
            return nearest_compared(distance, points, labels[some], stored.read_block(block), labels[start:stop], start)

        nearest: tuple[np.ndarray, np.ndarray] = context.executor.fold_here(nearest_in_block, nearer, blocks)
        return nearest

    rows, distances = zip(*map(nearest_of, passes), strict=True)
    return np.concatenate(rows), np.concatenate(distances)


def bridge_weights(task: StageTask, rows: np.ndarray, roots: np.ndarray | None) -> np.ndarray:
    """Return the weight of each bridge: the mean over its ends of the affinity of the farthest neighbour.

    A bridge then weighs no more than any edge that was chosen for being near. It never vanishes next to them, nor
    next to the degrees of its ends, of which `roots` (N,) are the square roots. Where edges have no affinity, bridges
    have none: zeros.
    """
    ends, inverse = np.unique(rows, return_inverse=True)
    affinities = stored_affinities(task)
    if len(ends) == 0 or affinities is None or roots is None:
        return np.zeros(len(rows))
    values = affinities.values.gather(ends).astype(np.float64)
    means, copies = values.mean(axis=1), np.ones(len(ends))
    stored = stored_weights(task.inputs)
    if stored is not None:  # a point with many copies may have no other affinity than to these
        means = np.maximum(means, affinities.twins.gather(ends) / values.shape[1])
        copies = task.read_table(stored)[ends]
    weights = np.maximum(values.min(axis=1), task.params.components.least_bridge_weight * means)
    # W halves P + P^T, and a bridge is between all copies at both ends.
    least = 0.5 * BRIDGE_ENTRY * (roots[ends] / copies)[inverse.reshape(rows.shape)].prod(axis=1)
    return np.maximum(weights[inverse.reshape(rows.shape)].mean(axis=1), least)
