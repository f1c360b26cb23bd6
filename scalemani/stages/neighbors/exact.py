"""Neighbours by looking at every point: of all points at once, of a block, and of any other queries.

The recall of the exact search itself is measured by plain distances, which share no code with it.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.neighbors.exact import SketchedRows, nearest_among, pair_rounds, paired_neighbors
from scalemani.kernels.neighbors.plain import Comparison, compared, merged, recall_of
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS, compared_rows
from scalemani.stages.arrays.graph import StoredNeighbors, round_step
from scalemani.stages.neighbors.counts import n_compared, paired_bytes
from scalemani.stages.neighbors.lists import compared_block, empty_lists, no_known, round_arrays
from scalemani.stages.neighbors.tables import basis_of, sketch_tables, work_points_of


def exact_search(work: StageWork) -> Callable[[StageTask, int], Arrays]:
    """Return what gives the exact neighbours of a block: out of those of all points, where these have room here."""
    if work.executor.on_threads and 0 < paired_bytes(work.task) <= work.task.cache_bytes:
        return functools.partial(paired_block, search_pairs(work))
    return exact_block


def search_pairs(work: StageWork) -> Neighbors:
    """Return the neighbours of all points, on threads of this process."""
    task, executor = work.task, work.executor
    points = compared_rows(work_points_of(task).points.read(), task.params.points.metric)
    executor.progress.start(task.stage, len(pair_rounds(*points.shape)), "round")

    def map_round(function: Callable[[Any], Any], pairs: Sequence[Any]) -> list[Any]:
        results = executor.over(function, pairs)
        executor.progress.advance()
        return results

    lists = empty_lists(task, len(points))
    return paired_neighbors(with_sketches(task, points, slice(None)), lists, map_round)


def paired_block(lists: Neighbors, task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block out of those of all points."""
    rows = slice(*task.dimensions.rows(block))
    found = Neighbors(lists.indices[rows], lists.distances[rows])
    return round_arrays(found, np.ones(found.indices.shape, np.uint8))


def exact_block(task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block by looking at every point."""
    labels, lists, queries = np.arange(*task.dimensions.rows(block)), no_known(task, block), sketched_block(task, block)
    unlimited = np.full(len(labels), np.inf)
    for other in range(task.dimensions.n_blocks):
        lists = nearest_of_block(task, queries, labels, lists, unlimited, other)
    return round_arrays(lists, np.ones(lists.indices.shape, np.uint8))


def sketched_rows(task: StageTask, rows: np.ndarray) -> SketchedRows:
    """Return the points at ascending work rows `rows`, with their sketches."""
    return with_sketches(task, compared_rows(work_points_of(task).points.gather(rows), task.params.points.metric), rows)


def sketched_block(task: StageTask, block: int) -> SketchedRows:
    """Return the points of a block, with their sketches."""
    return with_sketches(task, compared_block(task, block), slice(*task.dimensions.rows(block)))


def with_sketches(task: StageTask, points: Points, rows: np.ndarray | slice) -> SketchedRows:
    """Return points, which are those at some work rows, with their sketches."""
    return SketchedRows(points, sketch_tables(task).by_row[rows], basis_of(task).scale)


def nearest_of_block(
    task: StageTask, queries: SketchedRows, labels: np.ndarray, known: Neighbors, limits: np.ndarray, block: int
) -> Neighbors:
    """Return the nearest of what is known and a block of points: parameters are those of `nearest_among`."""
    return nearest_among(queries, labels, sketched_block(task, block), task.dimensions.rows(block)[0], known, limits)


class StoredLists(NamedTuple):
    """Points (m, D) at work rows (m,), and the neighbours (m, k) that the first round has stored for them."""

    points: Points
    rows: np.ndarray
    lists: np.ndarray


def compared_recall(work: StageWork) -> float:
    """Return the share of the true neighbours of a random sample of points that the exact search has stored."""
    whole = work.fold_blocks(compared_with_block, merged, "recall")
    return recall_of(whole, stored_lists(work.task).lists, work.task.dimensions.distance_dtype)


def compared_with_block(task: StageTask, block: int) -> Comparison:
    """Compare the stored lists of the sample with a block of points."""
    start, _ = task.dimensions.rows(block)
    sample = task.once(stored_lists)
    points = work_points_of(task).points.read_block(block)
    of_sets = METRICS[task.params.points.metric].of_sets
    queries, points = (rows > 0 if of_sets else rows for rows in (sample.points, points))
    return compared(queries, sample.rows, sample.lists, points, start)


def stored_lists(task: StageTask) -> StoredLists:
    """Return the sample by which an exact search is judged."""
    rows = sample_rows(task.params.seed, "neighbors/queries", task.dimensions.n_points, n_compared(task.dimensions))
    points = work_points_of(task).points.gather(rows)
    return StoredLists(points, rows, StoredNeighbors(task.output).indices(round_step(0)).gather(rows))
