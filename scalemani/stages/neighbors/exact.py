"""Neighbours by looking at every point: of a block, and of any other queries.

The recall of the exact search itself is measured by plain distances, which share no code with it.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.neighbors.exact import SketchedRows, exact_neighbors
from scalemani.kernels.neighbors.plain import Comparison, compared, merged, recall_of
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.kernels.neighbors.sparse_scan import sparse_neighbors
from scalemani.kernels.neighbors.wide import WIDE_ROW_BYTES, wide_neighbors
from scalemani.kernels.rows.compressed import Points
from scalemani.stages.arrays.graph import StoredNeighbors, round_step
from scalemani.stages.arrays.points import StoredPartition, StoredWorkPoints
from scalemani.stages.neighbors.counts import n_compared
from scalemani.stages.neighbors.lists import no_known, round_arrays
from scalemani.stages.neighbors.tables import sketch_tables


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
    return SketchedRows(work_points.points.gather(rows), sketch_tables(task).by_row[rows], scale)


def sketched_block(task: StageTask, block: int) -> SketchedRows:
    """Return the points of a block, with their sketches."""
    work_points, rows = StoredWorkPoints(task.inputs["work_points"]), slice(*task.dimensions.rows(block))
    scale = StoredPartition(task.inputs["partition"]).basis.scale
    return SketchedRows(work_points.points.read_block(block), sketch_tables(task).by_row[rows], scale)


def nearest_of_block(
    task: StageTask, queries: SketchedRows, rows: np.ndarray, known: Neighbors, limits: np.ndarray, block: int
) -> Neighbors:
    """Return the nearest of what is known and a block of points.

    Parameters
    ----------
    queries, known, limits : as of `nearest_of_rows`
    rows : (n,) int64, the work rows of the queries
    """
    start, _ = task.dimensions.rows(block)
    return nearest_of_rows(queries, rows, sketched_block(task, block), start, known, limits)


def nearest_of_rows(
    queries: SketchedRows, labels: np.ndarray, others: SketchedRows, start: int, known: Neighbors, limits: np.ndarray
) -> Neighbors:
    """Return the nearest of what is known and some points, by the kernel that is quickest for rows of their kind.

    Parameters
    ----------
    labels : (n,) int64, the numbers of the queries among the points; -1 for one that is none of them
    known : (n, k) neighbours, none of them among the points
    limits : (n,) distances beyond which no neighbour is wanted, inf for none
    """
    points = others.points
    if sp.issparse(points):
        return sparse_neighbors(queries.points, labels, points, start, known, limits)
    if points.shape[1] * points.itemsize > WIDE_ROW_BYTES:
        return wide_neighbors(queries.points, labels, points, start, known, limits)
    return exact_neighbors(queries, labels, others, start, known, limits)


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
