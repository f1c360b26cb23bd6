"""The points whose true neighbours are searched for: a random sample, and how far their neighbours are at most.

Where points were appended to a run, its queries stay, but for as many as a sample of all points takes from the
appended ones. What was nearest to a query that stays is known.
"""

from typing import NamedTuple

import numpy as np

from scalemani.chunked.work import StageTask
from scalemani.kernels.arrays.draws import continue_sample, sample_rows
from scalemani.kernels.neighbors.cells import nearest_cells
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.records.graph import QUERIES, TRUTH, StoredNeighbors
from scalemani.records.points import StoredPartition
from scalemani.stages.neighbors.cells import candidates_of_rows
from scalemani.stages.neighbors.continued import appended_points
from scalemani.stages.neighbors.counts import n_candidates
from scalemani.stages.neighbors.lists import nearest_of_candidates, no_known
from scalemani.stages.neighbors.tables import sketch_tables


class Sample(NamedTuple):
    """The queries: their work rows (q,), ascending, which of them (q,) an earlier run has had, and what it knows.

    `nearest` (q, k) float64 are the distances of the nearest points of the earlier run, inf where it did not look.
    """

    rows: np.ndarray
    kept: np.ndarray
    nearest: np.ndarray


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


def limits_of_block(task: StageTask, block: int) -> np.ndarray:
    """Return the distance (q,) within which each query of a block has as many points as a list holds.

    They are those in the cells nearest to it; of a query of an earlier run, those that were nearest then.
    """
    sample, (start, stop) = task.once(sampled), task.dimensions.rows(block)
    here = slice(*np.searchsorted(sample.rows, [start, stop]))
    limits, new = sample.nearest[here, -1].copy(), np.flatnonzero(~sample.kept[here])
    if not len(new):
        return limits
    rows = sample.rows[here][new]
    centroids = StoredPartition(task.inputs["partition"]).centroids.read_once()
    sketches = sketch_tables(task).by_row
    n_probes = task.params.neighbors.n_probes or task.params.neighbors.first_probes
    probes = nearest_cells(np.ascontiguousarray(sketches[rows]), centroids, n_probes)
    candidates = candidates_of_rows(task, rows, probes, n_candidates(task, 0))
    none = no_known(task, block)
    for i, row in enumerate(rows.tolist()):
        known = Neighbors(none.indices[:1], none.distances[:1])
        found = nearest_of_candidates(task, row, candidates[i : i + 1], known)
        limits[new[i]] = found[StoredNeighbors.distances][0, -1]
    return limits


def one_behind_the_other(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return two arrays as one."""
    return np.concatenate([one, other])
