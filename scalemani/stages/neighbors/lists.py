"""The lists of a block: as they are stored after a round, and refined by candidates."""

import numpy as np

from scalemani.engine.memory.files import Table
from scalemani.engine.reading import SparseTable
from scalemani.engine.work import Arrays, StageTask
from scalemani.kernels.neighbors.nn_descent import NeighborLists
from scalemani.kernels.neighbors.rerank import Neighbors, no_neighbors
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS, SET_WORDS, compared_rows, n_words
from scalemani.stages.arrays.graph import StoredNeighbors, round_step
from scalemani.stages.arrays.points import StoredPoints
from scalemani.stages.neighbors.tables import filled_by_blocks, work_points_of
from scalemani.stages.shared.tiled_search import refine_by_tiles
from scalemani.store.groups import block_unit
from scalemani.store.schema import RowArray


def arrays(task: StageTask) -> list[RowArray]:
    """Describe one round."""
    width = task.params.n_neighbors
    return [
        StoredNeighbors.indices.sized(width),
        StoredNeighbors.distances.sized(width, dtype=task.dimensions.distance_dtype),
        StoredNeighbors.fresh.sized(width),
    ]


def no_known(task: StageTask, block: int) -> Neighbors:
    """Return the lists of a block before anything is known."""
    start, stop = task.dimensions.rows(block)
    return empty_lists(task, stop - start)


def empty_lists(task: StageTask, count: int) -> Neighbors:
    """Return so many lists before anything is known."""
    empty = no_neighbors(count, task.params.n_neighbors)
    return Neighbors(empty.indices, empty.distances.astype(task.dimensions.distance_dtype))


def given_block(task: StageTask, block: int) -> Arrays:
    """Return the lists of a block that were given in the place of points."""
    rows = task.stored(StoredPoints).points.read_block(block)
    indices, distances = np.split(rows, 2, axis=1)
    lists = Neighbors(indices.astype(np.int32), np.ascontiguousarray(distances))
    return round_arrays(lists, np.zeros(indices.shape, np.uint8))


def round_arrays(found: Neighbors, fresh: np.ndarray) -> Arrays:
    """Return the lists of a block as they are stored."""
    return {
        StoredNeighbors.indices: found.indices,
        StoredNeighbors.distances: found.distances,
        StoredNeighbors.fresh: fresh.astype(np.uint8),
    }


def round_block(task: StageTask, number: int, block: int) -> tuple[Neighbors, NeighborLists]:
    """Return the lists (n, k) of a block after a round, with distances and with what is fresh in them."""
    output, step = StoredNeighbors(task.output), round_step(number)
    readers = output.indices(step), output.distances(step), output.fresh(step)
    indices, distances, fresh = (array.read_block(block) for array in readers)
    return Neighbors(indices, distances), NeighborLists(indices, fresh.astype(bool))


def is_whole(task: StageTask, number: int) -> bool:
    """Return whether all blocks of a round are there."""
    step = round_step(number)
    return all(task.output.committed(block_unit(block, step)) for block in range(task.dimensions.n_blocks))


def holds_points(task: StageTask, more_bytes: int = 0) -> bool:
    """Return whether a process that searches holds all points in memory, and so many bytes more."""
    return task.in_memory and task.cache_bytes >= task.dimensions.n_points * task.dimensions.row_bytes + more_bytes


def points_at_hand(task: StageTask) -> Table | SparseTable:
    """Return all points as they are stored: in memory where a process holds them, else rows in a file."""
    stored = work_points_of(task).points
    return stored.read_once() if holds_points(task) else stored.keep_in_file()


def compared_points(task: StageTask) -> Table | SparseTable:
    """Return all points as neighbours are compared: in memory where there is room; sparse ones as they are stored."""
    of_sets = METRICS[task.params.points.metric].of_sets
    return task.once(sets_of_points) if of_sets and not task.dimensions.sparse else points_at_hand(task)


def sets_of_points(task: StageTask) -> Table:
    """Return all dense points as sets (N, W) uint64."""
    width = n_words(task.dimensions.n_features)
    return filled_by_blocks(
        task, task.dimensions.n_points * width * SET_WORDS.itemsize, width, SET_WORDS, compared_block
    )


def compared_block(task: StageTask, block: int) -> Points:
    """Return the points of a block as neighbours are compared."""
    return compared_rows(work_points_of(task).points.read_block(block), task.params.points.metric)


def nearest_of_candidates(task: StageTask, start: int, candidates: np.ndarray, known: Neighbors) -> Arrays:
    """Return the arrays of consecutive rows: the nearest of what is known and the candidates, by exact distance.

    Parameters
    ----------
    candidates : (n, c) int32, work rows, -1 for none
    known : (n, k) neighbours, none of them a candidate
    """
    row_bytes, metric = task.dimensions.row_bytes, task.params.points.metric
    found, fresh = refine_by_tiles(compared_points(task), start, candidates, known, row_bytes, metric)
    return round_arrays(found, fresh)
