"""Rounds of a search that look among the neighbours of neighbours, and pynndescent as a peer."""

import numpy as np

from scalemani.chunked.tiled_search import propose_by_tiles
from scalemani.chunked.work import Arrays, StageTask
from scalemani.kernels.neighbors.nn_descent import NeighborLists
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.kernels.neighbors.rounds import Round, without_known
from scalemani.records.graph import StoredNeighbors, round_step
from scalemani.records.points import StoredWorkPoints
from scalemani.stages.neighbors.counts import n_candidates
from scalemani.stages.neighbors.lists import nearest_of_candidates, no_known, round_block
from scalemani.stages.neighbors.tables import list_tables

OF_NO_LIST = np.int32(-2)  # neither a row nor the mark of an empty place


def near_neighbors_block(asked: Round, number: int, task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block after looking among the neighbours of those of the round before."""
    start, _ = task.dimensions.rows(block)
    step = round_step(number - 1)
    indices, distances, fresh = round_block(task, number - 1, block)
    sketches, unit, lists = list_tables(task, step)
    with np.errstate(over="ignore"):  # from far out, nothing is too far
        limits = ((distances[:, -1] / unit) ** 2).astype(np.float32)
    most_visited = task.params.neighbors.most_visited
    own, visited = NeighborLists(indices, fresh.astype(bool)), np.ascontiguousarray(indices[:, :most_visited])
    if asked.of_changed:
        visited = np.where(own.fresh.any(axis=1, keepdims=True), visited, np.int32(-1))
    count = asked.candidates * n_candidates(task, number)
    candidates = propose_by_tiles(sketches, start, own, visited, lists, limits, count)
    found = dict(nearest_of_candidates(task, start, candidates, Neighbors(indices, distances)))
    if asked.of_changed:
        found[StoredNeighbors.fresh] |= still_fresh(own, found[StoredNeighbors.indices])
    return found


def still_fresh(before: NeighborLists, indices: np.ndarray) -> np.ndarray:
    """Return where (n, k) lists hold what was fresh in them before: points that did not look have yet to meet it."""
    others = without_known(indices, np.where(before.fresh, before.indices, OF_NO_LIST))
    return (indices >= 0) & (others < 0)


def pynndescent_block(task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block as pynndescent finds them, with distances computed anew."""
    start, stop = task.dimensions.rows(block)
    found = task.once(pynndescent_graph)[start:stop]
    # pynndescent lists a point among its own neighbours, not always first.
    itself = np.arange(start, stop, dtype=np.int32)[:, np.newaxis]
    return nearest_of_candidates(task, start, np.where(found == itself, np.int32(-1), found), no_known(task, block))


def pynndescent_graph(task: StageTask) -> np.ndarray:
    """Return the rows (N, k + 1) that pynndescent finds for all points in memory: it compiles for some 30 seconds."""
    from pynndescent import NNDescent  # its import alone takes seconds

    points = StoredWorkPoints(task.inputs["work_points"]).points.read().astype(np.float32)
    width = min(task.params.n_neighbors + 1, task.dimensions.n_points)
    index = NNDescent(points, n_neighbors=width, random_state=task.params.seed % 2**32, low_memory=True)
    return np.asarray(index.neighbor_graph[0], dtype=np.int32)
