"""The lists of a block: as they are stored after a round, and refined by candidates."""

import numpy as np

from scalemani.engine.context import Arrays, StageTask
from scalemani.kernels.neighbors.nn_descent import NeighborLists
from scalemani.kernels.neighbors.rerank import Neighbors, no_neighbors
from scalemani.kernels.rows.metrics import METRICS
from scalemani.stages.arrays.graph import StoredNeighbors, round_step
from scalemani.stages.arrays.points import StoredPoints
from scalemani.stages.neighbors.tables import compared_points
from scalemani.stages.shared.tiled_search import refine_by_tiles
from scalemani.store.groups import BlockRows, StageGroup, TakenBlock, block_unit
from scalemani.store.schema import RowArray


def arrays(task: StageTask) -> list[RowArray]:
    """Describe one round."""
    width = task.params.n_neighbors
    return [
        StoredNeighbors.indices.sized(width),
        StoredNeighbors.distances.sized(width, dtype=task.dimensions.distance_dtype),
        StoredNeighbors.fresh.sized(width),
    ]


def empty_lists(task: StageTask, count: int) -> Neighbors:
    """Return so many lists before anything is known."""
    empty = no_neighbors(count, task.params.n_neighbors)
    return Neighbors(empty.indices, empty.distances.astype(task.dimensions.distance_dtype))


def precomputed_block(task: StageTask, block: int) -> Arrays:
    """Return the lists of a block that replace the points."""
    rows = task.stored(StoredPoints).points.read_block(block)
    indices, distances = np.split(rows, 2, axis=1)
    lists = Neighbors(indices.astype(np.int32), np.ascontiguousarray(distances))
    return round_arrays(lists, np.zeros(indices.shape, np.uint8))


def round_arrays(neighbors: Neighbors, fresh: np.ndarray) -> Arrays:
    """Return the lists of a block as they are stored."""
    return {
        StoredNeighbors.indices: neighbors.indices,
        StoredNeighbors.distances: neighbors.distances,
        StoredNeighbors.fresh: fresh.astype(np.uint8),
    }


def taken_lists(group: StageGroup, step: str) -> BlockRows:
    """Return the lists of a block as a step of a group has them."""
    taken = TakenBlock(group, step)
    return {StoredNeighbors.indices: taken, StoredNeighbors.distances: taken}


def lists_before(task: StageTask, number: int, block: int) -> tuple[Neighbors, NeighborLists]:
    """Return the lists (n, k) of a block before a round, with distances and with what is fresh in them."""
    if number == 0:
        start, stop = task.dimensions.rows(block)
        known = empty_lists(task, stop - start)
        return known, NeighborLists(known.indices, np.zeros(known.indices.shape, np.bool_))
    output, step = StoredNeighbors(task.output), round_step(number - 1)
    readers = output.indices(step), output.distances(step), output.fresh(step)
    indices, distances, fresh = (array.read_block(block) for array in readers)
    return Neighbors(indices, distances), NeighborLists(indices, fresh.astype(bool))


def is_whole(task: StageTask, number: int) -> bool:
    """Return whether all blocks of a round are there."""
    step = round_step(number)
    return all(task.output.committed(block_unit(block, step)) for block in range(task.dimensions.n_blocks))


def settled(
    task: StageTask, start: int, candidates: np.ndarray, known: Neighbors | None = None
) -> tuple[Neighbors, np.ndarray]:
    """Return the nearest of what is known and the candidates of consecutive rows, by exact distance, and what is new.

    Parameters
    ----------
    candidates : (n, c) int32, work rows, -1 for none
    known : (n, k) neighbours, none of them a candidate; None where nothing is known
    """
    metric = task.params.points.metric
    by_function = METRICS[metric].distance.by_function
    row_bytes = task.dimensions.n_features * 8 if by_function else task.dimensions.row_bytes  # in float64
    known = empty_lists(task, len(candidates)) if known is None else known
    return refine_by_tiles(compared_points(task), start, candidates, known, row_bytes, metric)
