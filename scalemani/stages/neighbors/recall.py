"""The recall of a round: the share of the true neighbours of a random sample of points that it lists.

The true neighbours of a query are computed from every point, before the first round: the cells in which they lie
say how many cells a point is to visit. Where points were appended to a run, its queries stay, but for as many as a
sample of all points takes from the appended ones: to a query that stays only appended points come nearer, and these
alone are looked at.

Where a function compares rows, SciPy computes the distances, to true neighbours and to those that are listed; or the
function itself where a user has written it.
"""

import functools
from typing import NamedTuple

import numpy as np

from scalemani.config.metrics import compares_rows
from scalemani.engine.context import StageContext, StageGraph, StageTask, Steps
from scalemani.engine.graph import Key
from scalemani.kernels.arrays.draws import continue_sample, sample_rows
from scalemani.kernels.arrays.grouping import compact_rows
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.measures import Measure, mean_of
from scalemani.kernels.neighbors.cells import nearest_cells
from scalemani.kernels.neighbors.exact import SketchedRows, nearest_among
from scalemani.kernels.neighbors.plain import listed_distances, nearest_by
from scalemani.kernels.neighbors.rerank import Neighbors, merge_neighbors, no_neighbors, recall_by_row
from scalemani.stages.arrays.graph import QUERIES, TRUTH, StoredNeighbors, round_step
from scalemani.stages.neighbors.cells import nearest_in_cells
from scalemani.stages.neighbors.continued import appended_points, probes_of_earlier
from scalemani.stages.neighbors.counts import cells_to_visit
from scalemani.stages.neighbors.tables import (
    centroids_of,
    points_at,
    query_vectors,
    rows_of,
    sketched_at,
    work_points_of,
)

REACH_MARGIN = np.float32(1e-5)  # of the squared lengths of two sketches, in float32: some hundred roundings
LISTED_BYTES = 2**26  # of listed points in float64, that are compared with their queries at once


class Sample(NamedTuple):
    """The queries: their work rows (q,), ascending, which of them (q,) an earlier run has had, and its distances.

    `nearest` (q, k) float64 are the distances of the nearest points of the earlier run, inf where it did not look.
    """

    rows: np.ndarray
    retained: np.ndarray
    nearest: np.ndarray


def sampled(task: StageTask) -> Sample:
    """Return the queries: newly drawn, or those of an earlier run and some of the points that were appended to it."""
    n_queries, width = task.params.neighbors.sampled_queries, task.params.n_neighbors
    if task.earlier is not None:
        stored = task.earlier.stored(StoredNeighbors)
        if stored.group.committed(QUERIES) and stored.group.committed(TRUTH):
            return continued_sample(task, stored)
    rows = sample_rows(task.params.seed, "neighbors/queries", task.dimensions.n_points, n_queries)
    return Sample(rows, np.zeros(len(rows), bool), np.full((len(rows), width), np.inf))


def continued_sample(task: StageTask, stored: StoredNeighbors) -> Sample:
    """Return the sample of an earlier run, some of whose places appended points take: a uniform one of all points."""
    appended, before, n_points = task.once(appended_points), stored.query_rows.read(), task.dimensions.n_points
    n_queries, stage = task.params.neighbors.sampled_queries, "neighbors/appended queries"
    n_before = len(appended.known)
    retained, entering = continue_sample(task.params.seed, stage, len(before), n_before, n_points, n_queries)
    new = appended.new[np.isin(appended.input_rows, entering)]
    rows = np.concatenate([appended.known[before[retained]], new])
    nearest = np.full((len(rows), task.params.n_neighbors), np.inf)
    nearest[: len(retained)] = stored.true_distances.read()[retained]
    order = np.argsort(rows)
    return Sample(rows[order], order < len(retained), nearest[order])


def limits_of_block(task: StageTask, block: int) -> np.ndarray:
    """Return the distance (q,) within which each query of a block has as many points as a list holds.

    They are those in the cells nearest to it; of a query of an earlier run, those that were nearest then.
    """
    sample = task.once(sampled)
    here = slice(*np.searchsorted(sample.rows, task.dimensions.rows(block)))
    limits, new = sample.nearest[here, -1].copy(), np.flatnonzero(~sample.retained[here])
    if not len(new):
        return limits
    limits[new] = nearest_in_cells(task, sample.rows[here][new]).distances[:, -1]
    return limits


def find_truth(context: StageContext) -> None:
    """Find the true neighbours of a random sample of points, and how many cells the points of a run are to visit."""
    task, sample = context.task, context.task.once(sampled)
    if not task.output.committed(QUERIES):
        limits = context.compute(limits_of_queries) * (1 + np.finfo(np.float32).eps)
        queries = {StoredNeighbors.query_rows: sample.rows, StoredNeighbors.query_limits: limits}
        task.output.write_whole(queries, QUERIES)
    if not task.output.committed(TRUTH):
        looked_at = context.compute(neighbors_of_queries)
        truth = np.sort(np.concatenate([looked_at.distances, sample.nearest], axis=1), axis=1)
        truths = {
            StoredNeighbors.true_distances: truth[:, : task.params.n_neighbors],
            StoredNeighbors.n_probes: np.array(chosen_probes(task, looked_at.indices)),
        }
        task.output.write_whole(truths, TRUTH)


def truth_graphs(context: StageContext) -> Steps:
    """Yield what finds the true neighbours of a sample of points."""
    if not context.task.output.committed(QUERIES):
        yield limits_of_queries
    if not context.task.output.committed(TRUTH):
        yield neighbors_of_queries


def limits_of_queries(graph: StageGraph) -> Key | None:
    """Add the distance within which each query has as many points as a list holds."""
    return graph.fold_blocks(limits_of_block, np.append, "recall")


def neighbors_of_queries(graph: StageGraph) -> Key | None:
    """Add the nearest points of each query."""
    merge = functools.partial(merge_neighbors, n_neighbors=graph.context.task.params.n_neighbors)
    return graph.fold_blocks(nearest_to_queries, merge, "recall")


def measured_recall(task: StageTask, number: int) -> Measure:
    """Return the share of the true neighbours of the sampled points that a round lists."""
    output = StoredNeighbors(task.output)
    rows, step = task.once(sampled).rows, round_step(number)
    lists = Neighbors(output.indices(step).gather(rows), output.distances(step).gather(rows))
    if compares_rows(task.params.points.metric):
        lists = lists._replace(distances=distances_of_lists(task, rows, lists.indices))
    return mean_of(recall_by_row(lists, output.true_distances.read()), task.dimensions.n_points)


def distances_of_lists(task: StageTask, queries: np.ndarray, lists: np.ndarray) -> np.ndarray:
    """Return the distances (q, k) float64 of work rows (q,) to those that lists (q, k) name, as `plain` computes them.

    Missing entries, which are -1, are infinitely far.
    """
    metric, distances = task.params.points.metric, np.full(lists.shape, np.inf)
    at_once = max(1, LISTED_BYTES // (8 * task.dimensions.n_features * lists.shape[1]))
    for part in slices(len(queries), at_once):
        rows, places = compact_rows(lists[part])
        listed = points_at(task, rows.astype(np.int64))
        away = listed_distances(metric, points_at(task, queries[part]), np.maximum(places, 0), listed)
        distances[part] = np.where(places < 0, np.inf, away)
    return distances


def chosen_probes(task: StageTask, true: np.ndarray) -> int:
    """Return how many cells a point visits: as many as requested, as in an earlier run, or as true neighbours lie in.

    Parameters
    ----------
    true : (q, k) the work rows of the true neighbours of the queries; of those of an earlier run only appended ones
    """
    tuning, centroids = task.params.neighbors, centroids_of(task)
    if tuning.n_probes is not None:
        return min(tuning.n_probes, len(centroids))
    if task.earlier is not None:
        return probes_of_earlier(task)
    near = nearest_cells(task.once(query_vectors, False), centroids, tuning.most_probes)
    cells = work_points_of(task).cell_ranges.cells_of(true)
    n_cells = cells_to_visit(near, cells, 1 - tuning.missed * (1 - tuning.recall))
    return min(max(n_cells, tuning.least_probes), len(centroids))


def queries_of(task: StageTask, of_earlier: bool) -> tuple[np.ndarray, np.ndarray, SketchedRows]:
    """Return the queries of an earlier run, or the others: their places (m,) in the sample, work rows, and points.

    They lie in all blocks, and are gathered once a process.
    """
    sample = task.once(sampled)
    places = np.flatnonzero(sample.retained == of_earlier)
    return places, sample.rows[places], sketched_at(task, sample.rows[places])


def nearest_to_queries(task: StageTask, block: int) -> Neighbors:
    """Return the nearest of a block of points to the queries; to those of an earlier run, of its appended points."""
    sample, limits = task.once(sampled), StoredNeighbors(task.output).query_limits.read_once()
    rows, width, metric = rows_of(task, block), task.params.n_neighbors, task.params.points.metric
    block_rows, lists = sketched_at(task, rows), no_neighbors(len(sample.rows), width)
    for of_earlier in np.unique(sample.retained).tolist():
        places, labels, queries = task.once(queries_of, of_earlier)
        numbers = rows_to_compare(task, rows, block_rows, of_earlier)
        among, positions = block_rows, positions_in(numbers, labels - rows.start)
        if len(numbers) < len(block_rows.sketches):
            among = among._replace(points=among.points[numbers], sketches=among.sketches[numbers])
        none = no_neighbors(len(places), width)
        if compares_rows(metric):
            near = nearest_by(metric, queries.points, positions, among.points, 0, none)
        else:
            near = nearest_among(queries, positions, among, 0, none, limits[places])
        lists.indices[places] = np.append(rows.start + numbers, -1)[near.indices]  # -1 stays what it is
        lists.distances[places] = near.distances
    return lists


def rows_to_compare(task: StageTask, rows: slice, block_rows: SketchedRows, of_earlier: bool) -> np.ndarray:
    """Return which rows (m,) of a block are compared with the queries of an earlier run, or with the others.

    The former look at appended points alone. The latter are few where there are such: what lies farther from all of
    them than their limits, by its sketch, is not looked at.
    """
    sample = task.once(sampled)
    if of_earlier:
        new = task.once(appended_points).new
        return new[slice(*np.searchsorted(new, [rows.start, rows.stop]))] - rows.start
    if not sample.retained.any() or compares_rows(task.params.points.metric):
        return np.arange(rows.stop - rows.start)
    places, _, queries = task.once(queries_of, False)
    limits = StoredNeighbors(task.output).query_limits.read_once()[places]
    return np.flatnonzero(is_in_reach(block_rows.sketches, queries.sketches, limits / block_rows.scale))


def is_in_reach(sketches: np.ndarray, queries: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return which sketches (n, s) lie within the limit (q,) of one of the queries (q, s) at least: (n,) bool.

    Products in float32 make that a few more.
    """
    squares, of_queries = (np.einsum("ij,ij->i", part, part) for part in (sketches, queries))
    sums = squares[:, np.newaxis] + of_queries
    within = (limits**2).astype(np.float32) + REACH_MARGIN * sums
    return np.asarray((sums - 2 * (sketches @ queries.T) <= within).any(axis=1))


def positions_in(numbers: np.ndarray, sought: np.ndarray) -> np.ndarray:
    """Return where numbers (q,) are among ascending ones (m,), -1 for those that are not."""
    places = np.searchsorted(numbers, sought)
    there = np.append(numbers, -1)[places] == sought
    return np.where(there & (sought >= 0), places, -1)
