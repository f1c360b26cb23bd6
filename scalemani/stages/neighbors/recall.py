"""The recall of a round: the share of the true neighbours of a random sample of points that it has found.

The true neighbours of a query are found by looking at every point. Where points were appended to a run, its queries
stay, but for as many as a sample of all points takes from the appended ones. What was nearest to a query that stays is
known, and appended points alone can come nearer: these are looked at.
"""

import functools
from typing import NamedTuple

import numpy as np

from scalemani.chunked.work import StageTask, StageWork
from scalemani.kernels.arrays.draws import continue_sample, sample_rows
from scalemani.kernels.measures import Measure, mean_of
from scalemani.kernels.neighbors.exact import SketchedRows
from scalemani.kernels.neighbors.rerank import Neighbors, found_shares, merge_neighbors, no_neighbors
from scalemani.records.graph import QUERIES, TRUTH, StoredNeighbors, round_step
from scalemani.records.points import StoredPartition, StoredWorkPoints
from scalemani.stages.neighbors.continued import appended_points
from scalemani.stages.neighbors.exact import nearest_of_rows, sketched_block, sketched_rows
from scalemani.stages.neighbors.lists import holds_points


class Sample(NamedTuple):
    """The queries: their work rows (q,), ascending, which of them (q,) an earlier run has had, and what it knows.

    `nearest` (q, k) float64 are the distances of the nearest points of the earlier run, inf where it did not look.
    """

    rows: np.ndarray
    kept: np.ndarray
    nearest: np.ndarray


class Queries(NamedTuple):
    """Some of the queries: their places (m,) in the sample, their work rows (m,), and their points."""

    places: np.ndarray
    rows: np.ndarray
    points: SketchedRows


def measured_recall(work: StageWork, number: int) -> Measure:
    """Return the share of the true neighbours of a random sample of points that a round has found."""
    task, output = work.task, StoredNeighbors(work.task.output)
    sample = task.once(sampled)
    found = output.distances(round_step(number)).gather(sample.rows)
    if not task.output.committed(QUERIES):
        limits = found[:, -1].astype(np.float64) * (1 + np.finfo(np.float32).eps)
        queries = {StoredNeighbors.QUERY_ROWS: sample.rows, StoredNeighbors.QUERY_LIMITS: limits}
        task.output.write_whole(queries, QUERIES)
    if not task.output.committed(TRUTH):
        merge = functools.partial(merge_neighbors, n_neighbors=task.params.n_neighbors)
        looked_at = work.fold_blocks(nearest_to_queries, merge, "recall")
        truth = np.sort(np.concatenate([looked_at.distances, sample.nearest], axis=1), axis=1)
        task.output.write_whole({StoredNeighbors.TRUE_DISTANCES: truth[:, : task.params.n_neighbors]}, TRUTH)
    return mean_of(found_shares(found, output.true_distances.read()), task.dimensions.n_points)


def sampled(task: StageTask) -> Sample:
    """Return the queries: drawn anew, or those of an earlier run and some of the points that were appended to it."""
    asked, width = task.params.neighbors.sampled_queries, task.params.n_neighbors
    if task.earlier is not None:
        stored = StoredNeighbors(task.earlier.groups[StoredNeighbors.STAGE])
        if stored.group.committed(QUERIES) and stored.group.committed(TRUTH):
            return continued_sample(task, stored)
    rows = sample_rows(task.params.seed, "neighbors/queries", task.dimensions.n_points, asked)
    return Sample(rows, np.zeros(len(rows), bool), np.full((len(rows), width), np.inf))


def continued_sample(task: StageTask, stored: StoredNeighbors) -> Sample:
    """Return the sample of an earlier run, some of whose places appended points take: a uniform one of all points."""
    appended, before, n_points = task.once(appended_points), stored.query_rows.read(), task.dimensions.n_points
    asked, stage = task.params.neighbors.sampled_queries, "neighbors/appended queries"
    n_before = len(appended.known)
    kept, entering = continue_sample(task.params.seed, stage, len(before), n_before, n_points, asked)
    new = appended.new[np.isin(appended.input_rows, entering)]
    rows = np.concatenate([appended.known[before[kept]], new])
    nearest = np.full((len(rows), task.params.n_neighbors), np.inf)
    nearest[: len(kept)] = stored.true_distances.read()[kept]
    order = np.argsort(rows)
    return Sample(rows[order], order < len(kept), nearest[order])


def queries_of(task: StageTask, kept: bool) -> Queries:
    """Return the queries of an earlier run, or the others. They lie in all blocks, and are gathered once a process."""
    sample = task.once(sampled)
    places = np.flatnonzero(sample.kept == kept)
    return Queries(places, sample.rows[places], sketched_rows(task, sample.rows[places]))


def nearest_to_queries(task: StageTask, block: int) -> Neighbors:
    """Return the nearest of a block of points to the queries; to those of an earlier run, of its appended points."""
    sample, limits = task.once(sampled), StoredNeighbors(task.output).query_limits.read_once()
    width, (start, stop) = task.params.n_neighbors, task.dimensions.rows(block)
    others, found = points_of_block(task, block), no_neighbors(len(sample.rows), width)
    if not sample.kept.all():
        places, rows, points = task.once(queries_of, False)
        near = nearest_of_rows(points, rows, others, start, no_neighbors(len(rows), width), limits[places])
        found.indices[places], found.distances[places] = near
    if sample.kept.any():
        appended, (places, rows, points) = task.once(appended_points), task.once(queries_of, True)
        first, last = (int(number) for number in np.searchsorted(appended.new, [start, stop]))
        among = others._replace(
            points=others.points[appended.new[first:last] - start], sketches=appended.sketches[first:last]
        )
        # Appended points are numbered among themselves, and no query that stays is one of them.
        labels = np.full(len(rows), -1)
        near = nearest_of_rows(points, labels, among, first, no_neighbors(len(rows), width), limits[places])
        found.indices[places] = np.where(near.indices < 0, near.indices, appended.new[near.indices])
        found.distances[places] = near.distances
    return found


def points_of_block(task: StageTask, block: int) -> SketchedRows:
    """Return what `sketched_block` does: a copy where this process holds the points, which is quicker than to read."""
    if task.dimensions.sparse or not holds_points(task):
        return sketched_block(task, block)
    work_points, rows = StoredWorkPoints(task.inputs["work_points"]), slice(*task.dimensions.rows(block))
    scale = StoredPartition(task.inputs["partition"]).basis.scale
    return SketchedRows(work_points.points.read_once()[rows].copy(), task.read_table(work_points.sketch)[rows], scale)
