"""Neighbours by looking at every point: of a block, and of the sampled queries by which the recall is measured.

The recall of the exact search itself is measured by plain distances, which share no code with it.
"""

import functools
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.chunked.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.measures import Measure, mean_of
from scalemani.kernels.neighbors.exact import SketchedRows, exact_neighbors
from scalemani.kernels.neighbors.plain import Comparison, compared, merged, recall_of
from scalemani.kernels.neighbors.rerank import Neighbors, found_shares, merge_neighbors, no_neighbors
from scalemani.kernels.neighbors.sparse_scan import sparse_neighbors
from scalemani.kernels.neighbors.wide import WIDE_ROW_BYTES, wide_neighbors
from scalemani.kernels.rows.compressed import Points
from scalemani.records.graph import QUERIES, TRUTH, StoredNeighbors, round_step
from scalemani.records.points import StoredPartition, StoredWorkPoints
from scalemani.stages.neighbors.counts import n_compared
from scalemani.stages.neighbors.lists import no_known, round_arrays


def exact_block(task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block by looking at every point."""
    start, stop = task.dimensions.rows(block)
    rows = np.arange(start, stop)
    found, queries = no_known(task, block), sketched_rows(task, rows)
    for other in range(task.dimensions.n_blocks):
        found = nearest_of_block(task, queries, rows, found, np.full(stop - start, np.inf), other)
    return round_arrays(found, np.ones(found.indices.shape, np.uint8))


def sketched_rows(task: StageTask, rows: np.ndarray) -> SketchedRows:
    """Return the points at ascending work rows `rows`, with their sketches."""
    work_points = StoredWorkPoints(task.inputs["work_points"])
    scale = StoredPartition(task.inputs["partition"]).basis.scale
    return SketchedRows(work_points.points.gather(rows), task.read_table(work_points.sketch)[rows], scale)


def nearest_of_block(
    task: StageTask, queries: SketchedRows, rows: np.ndarray, known: Neighbors, limits: np.ndarray, block: int
) -> Neighbors:
    """Return the nearest of what is known and a block of points.

    Parameters
    ----------
    task : the stage's
    queries : n points with their sketches
    rows : (n,) int64, their work rows
    known : (n, k) neighbours, none of them in the block
    limits : (n,) distances beyond which no neighbour is wanted, inf for none
    block : its number
    """
    work_points = StoredWorkPoints(task.inputs["work_points"])
    start, stop = task.dimensions.rows(block)
    points = work_points.points.read_block(block)
    if sp.issparse(points):
        return sparse_neighbors(queries.points, rows, points, start, known, limits)
    if task.dimensions.row_bytes > WIDE_ROW_BYTES:
        return wide_neighbors(queries.points, rows, points, start, known, limits)
    sketches = task.read_table(work_points.sketch)[start:stop]
    candidates = SketchedRows(points, sketches, queries.scale)
    return exact_neighbors(queries, rows, candidates, start, known, limits)


def measured_recall(work: StageWork, number: int) -> Measure:
    """Return the share of the true neighbours of a random sample of points that a round has found."""
    task, output = work.task, StoredNeighbors(work.task.output)
    rows = sample_rows(
        task.params.seed, "neighbors/queries", task.dimensions.n_points, task.params.neighbors.sampled_queries
    )
    found = output.distances(round_step(number)).gather(rows)
    if not task.output.committed(QUERIES):
        limits = found[:, -1].astype(np.float64) * (1 + np.finfo(np.float32).eps)
        queries = {StoredNeighbors.QUERY_ROWS: rows, StoredNeighbors.QUERY_LIMITS: limits}
        task.output.write_whole(queries, QUERIES)
    if not task.output.committed(TRUTH):
        merge = functools.partial(merge_neighbors, n_neighbors=task.params.n_neighbors)
        truth = work.fold_blocks(nearest_to_queries, merge, "recall")
        task.output.write_whole({StoredNeighbors.TRUE_DISTANCES: truth.distances}, TRUTH)
    return mean_of(found_shares(found, output.true_distances.read()), task.dimensions.n_points)


def nearest_to_queries(task: StageTask, block: int) -> Neighbors:
    """Return the nearest of a block of points to the sampled queries."""
    output = StoredNeighbors(task.output)
    rows = output.query_rows.read_once()
    queries = task.once(sampled_queries)
    empty = no_neighbors(len(rows), task.params.n_neighbors)
    return nearest_of_block(task, queries, rows, empty, output.query_limits.read_once(), block)


def sampled_queries(task: StageTask) -> SketchedRows:
    """Return the sampled queries. They lie in all blocks: gathered for every block, each would be read each time."""
    return sketched_rows(task, StoredNeighbors(task.output).query_rows.read_once())


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
    points = StoredWorkPoints(task.inputs["work_points"]).points.read_block(block)
    return compared(sample.points, sample.rows, sample.lists, points, start)


def stored_lists(task: StageTask) -> StoredLists:
    """Return the sample by which an exact search is judged."""
    rows = sample_rows(task.params.seed, "neighbors/queries", task.dimensions.n_points, n_compared(task.dimensions))
    points = StoredWorkPoints(task.inputs["work_points"]).points.gather(rows)
    return StoredLists(points, rows, StoredNeighbors(task.output).indices(round_step(0)).gather(rows))
