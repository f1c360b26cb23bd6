"""Neighbours by looking at every point: of all points at once, of a block, and of any other queries.

The recall of the exact search itself is measured by plain distances, which share no code with it.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scalemani.config.metrics import compares_rows
from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.neighbors.exact import nearest_among, pair_rounds, paired_neighbors, tile_rows
from scalemani.kernels.neighbors.plain import Comparison, compared, merged, recall_of
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS, compared_rows
from scalemani.stages.arrays.graph import StoredNeighbors, round_step
from scalemani.stages.neighbors.counts import n_compared, paired_bytes
from scalemani.stages.neighbors.lists import empty_lists, is_whole, round_arrays
from scalemani.stages.neighbors.tables import (
    points_at,
    rows_of,
    sketch_tables,
    sketched_at,
    sketched_rows,
    work_points_of,
)


def exact_search(work: StageWork, number: int) -> Callable[[StageTask, int], Arrays]:
    """Return what gives the exact neighbours of a block: out of those of all points, where these have room here."""
    has_room = work.executor.on_threads and 0 < paired_bytes(work.task) <= work.task.cache_bytes
    if has_room and not is_whole(work.task, number):
        return functools.partial(paired_block, search_pairs(work))
    return exact_block


def search_pairs(work: StageWork) -> Neighbors:
    """Return the neighbours of all points, on threads of this process."""
    task, executor = work.task, work.executor
    points = compared_rows(work_points_of(task).points.read(), task.params.points.metric)
    executor.progress.start(task.stage, len(pair_rounds(-(-len(points) // tile_rows(len(points))))), "round")

    def map_round(function: Callable[[Any], Any], pairs: Sequence[Any]) -> list[Any]:
        results = executor.over(function, pairs)
        executor.progress.advance()
        return results

    rows = sketched_rows(task, points, sketch_tables(task).by_row[:])
    return paired_neighbors(rows, empty_lists(task, len(points)), map_round)


def paired_block(lists: Neighbors, task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block out of those of all points."""
    indices, distances = (field[rows_of(task, block)] for field in lists)
    return round_arrays(Neighbors(indices, distances), np.ones(indices.shape, np.uint8))


def exact_block(task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block by looking at every point."""
    labels, queries = np.arange(*task.dimensions.rows(block)), sketched_at(task, rows_of(task, block))
    lists, unlimited = empty_lists(task, len(labels)), np.full(len(labels), np.inf)
    for other in (rows_of(task, number) for number in range(task.dimensions.n_blocks)):
        lists = nearest_among(queries, labels, sketched_at(task, other), other.start, lists, unlimited)
    return round_arrays(lists, np.ones(lists.indices.shape, np.uint8))


def compared_recall(work: StageWork) -> float:
    """Return the share of the true neighbours of a random sample of points that the exact search has stored."""
    whole = work.fold_blocks(compared_with_block, merged, "recall")
    return recall_of(whole, stored_lists(work.task)[2], work.task.dimensions.distance_dtype)


def compared_with_block(task: StageTask, block: int) -> Comparison:
    """Compare the stored lists of the sample with a block of points."""
    rows, (sampled, labels, lists) = rows_of(task, block), task.once(stored_lists)
    metric = task.params.points.metric
    of_sets = METRICS[metric].of_sets
    queries, points = (some > 0 if of_sets else some for some in (sampled, points_at(task, rows)))
    return compared(queries, labels, lists, points, rows.start, metric if compares_rows(metric) else "")


def stored_lists(task: StageTask) -> tuple[Points, np.ndarray, np.ndarray]:
    """Return the sample by which an exact search is judged: points (m, D), their rows (m,), and lists as stored."""
    rows = sample_rows(task.params.seed, "neighbors/queries", task.dimensions.n_points, n_compared(task.dimensions))
    return points_at(task, rows), rows, StoredNeighbors(task.output).indices(round_step(0)).gather(rows)
