"""The connected components of the affinity graph: bridges that join them, or the rows of the largest."""

import functools
from typing import Any

import numpy as np

from scalemani.chunked.work import Dimensions, DiskNeed, StageTask, StageWork
from scalemani.errors import DisconnectedGraphError
from scalemani.kernels.arrays.union_find import separate_items
from scalemani.kernels.graph.components import (
    Components,
    boruvka_round,
    bridge_queries,
    components,
    joined_parents,
    nearer,
    nearest_outside,
)
from scalemani.params import Parameters
from scalemani.records.affinities import StoredAffinities, StoredComponents
from scalemani.records.graph import StoredNeighbors
from scalemani.records.points import StoredPartition, StoredWorkPoints
from scalemani.workers.budget import MemoryNeed

MOST_QUERIES = 8192  # with many components, fewer of their points look for a bridge
QUERIES_PER_COMPONENT = 64
LEAST_BRIDGE_WEIGHT = 1e-3  # of a point's mean affinity: a bridge must hold in float32
BYTES_PER_POINT = 24  # parents, their copy while a block is added, labels and their order
BYTES_PER_KEPT_POINT = 25  # its row in work order and in input order, sorted, and whether it is one
REPORTED_SIZES = 10


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the union-find and of a block of queries against a tile of points."""
    sketch = 4 * min(dimensions.n_features, params.partition.sketch_dimensions)
    block = dimensions.block_rows * (2 * sketch + 8 * params.n_neighbors)
    kept = BYTES_PER_KEPT_POINT if params.components.disconnected == "largest" else 0
    return MemoryNeed(
        (BYTES_PER_POINT + kept) * dimensions.n_points + 4 * MOST_QUERIES * sketch, block + MOST_QUERIES * 1024 * 16
    )


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of the labels, and of the rows of the largest component; bridges are few beside them."""
    kept = 8 if params.components.disconnected == "largest" else 0
    return DiskNeed((4 + kept) * dimensions.n_points)


def run(work: StageWork) -> dict[str, Any]:
    """Count the components, then as asked: bridge them, keep the rows of the largest, raise DisconnectedGraphError."""
    task = work.task
    found = streamed_components(task)
    n_components = len(found.sizes)
    largest = np.sort(found.sizes)[::-1][:REPORTED_SIZES].tolist()
    if n_components > 1 and task.params.components.disconnected == "error":
        raise DisconnectedGraphError(
            f"the neighbour graph has {n_components} components (largest: {largest}): raise neighbors.n_neighbors or "
            "affinities.perplexity, or set components.disconnected=connect to join them through their closest pairs, "
            "or components.disconnected=largest to embed the largest alone"
        )
    keeps_largest = n_components > 1 and task.params.components.disconnected == "largest"
    if keeps_largest:
        kept = rows_of_largest(task, found)
        task.output.write_whole({StoredComponents.KEPT_ROWS: kept}, StoredComponents.KEPT_UNIT)
        work.executor.progress.note(
            f"{task.stage}: the neighbour graph has {n_components} components (largest: {largest}); the largest, "
            f"{len(kept)} of {task.dimensions.n_points} points, is embedded, the others are left out"
        )
    rows, distances = np.empty((0, 2), np.int64), np.empty(0)
    joined = found
    while not keeps_largest and len(joined.sizes) > 1:
        queries = bridge_queries(joined.labels, max(1, min(QUERIES_PER_COMPONENT, MOST_QUERIES // len(joined.sizes))))
        nearest, away = nearest_of_other_components(work, joined.labels, queries)
        bridges, joined = boruvka_round(joined.labels, queries, nearest, away)
        rows, distances = np.concatenate([rows, bridges.rows]), np.concatenate([distances, bridges.distances])
    task.output.write_whole(
        {
            StoredComponents.LABELS: found.labels,
            StoredComponents.BRIDGE_ROWS: rows,
            StoredComponents.BRIDGE_DISTANCES: distances,
            StoredComponents.BRIDGE_WEIGHTS: bridge_weights(task, rows),
        }
    )
    certificates = {"components": n_components, "largest_components": largest, "bridges": len(rows)}
    return {**certificates, "left_out": task.dimensions.n_points - len(kept)} if keeps_largest else certificates


def rows_of_largest(task: StageTask, found: Components) -> np.ndarray:
    """Return the input rows (M,) int64 of the largest component, the first of several, ascending."""
    input_rows = StoredWorkPoints(task.inputs["work_points"]).input_rows.read()
    return np.sort(input_rows[found.labels == np.argmax(found.sizes)]).astype(np.int64)


def streamed_components(task: StageTask) -> Components:
    """Return the components of the edges that have a positive affinity."""
    neighbors, affinities = StoredNeighbors(task.inputs["neighbors"]), StoredAffinities(task.inputs["affinities"])
    parents = separate_items(task.dimensions.n_points)
    for block in range(task.dimensions.n_blocks):
        indices, _ = neighbors.read_graph_block(block)
        values = affinities.values.read_block(block)
        parents = joined_parents(parents, indices, values, task.dimensions.rows(block)[0])
    return components(parents)


def nearest_of_other_components(
    work: StageWork, labels: np.ndarray, queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each query row the nearest row of another component, by sketch distance, and that distance."""
    points = StoredWorkPoints(work.task.inputs["work_points"]).sketch.gather(queries)
    blocks = range(work.task.dimensions.n_blocks)
    work.executor.progress.start(work.task.stage, len(blocks))
    search = functools.partial(nearest_in_block, work.task, labels, queries, points)
    rows, distances = functools.reduce(nearer, work.executor.map_locally(search, blocks))
    return rows, distances * StoredPartition(work.task.inputs["partition"]).basis.scale


def nearest_in_block(
    task: StageTask, labels: np.ndarray, queries: np.ndarray, points: np.ndarray, block: int
) -> tuple[np.ndarray, np.ndarray]:
    """Search one block."""
    start, stop = task.dimensions.rows(block)
    rows = StoredWorkPoints(task.inputs["work_points"]).sketch.read_block(block)
    return nearest_outside(points, labels[queries], rows, labels[start:stop], start)


def bridge_weights(task: StageTask, rows: np.ndarray) -> np.ndarray:
    """Return the weight of each bridge: the mean over its ends of the affinity of the farthest neighbour.

    A bridge then weighs no more than any edge that was chosen for being near, and never vanishes beside them.
    """
    ends, inverse = np.unique(rows, return_inverse=True)
    if len(ends) == 0:
        return np.empty(0)
    values = StoredAffinities(task.inputs["affinities"]).values.gather(ends).astype(np.float64)
    weights = np.maximum(values.min(axis=1), LEAST_BRIDGE_WEIGHT * values.mean(axis=1))
    return weights[inverse.reshape(rows.shape)].mean(axis=1)
