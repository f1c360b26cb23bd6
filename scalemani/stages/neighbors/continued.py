"""The first round where points were appended to a run: its graph, with what the appended points change.

Appended points look through the cells nearest to them, as all points do in a first round. A point of the earlier graph
keeps its list, and looks among the appended points alone that look through its cell, for those within its farthest
neighbour. The cost follows the appended points: each of them is compared as often as it is in a first round, in both
directions, and no other point looks for the cells near it. Blocks of earlier points whose lists no appended point
enters are taken as they are.
"""

from typing import NamedTuple

import numpy as np

from scalemani.engine.context import StageTask
from scalemani.kernels.arrays.grouping import group_by, inverse_order
from scalemani.kernels.neighbors.cells import nearest_nearby_cells
from scalemani.kernels.neighbors.rerank import Neighbors, merge_neighbors
from scalemani.kernels.neighbors.visitors import nearest_visitors
from scalemani.stages.arrays.graph import TRUTH, StoredNeighbors
from scalemani.stages.arrays.points import StoredPartition, StoredWorkPoints
from scalemani.stages.neighbors.cells import candidates_of_rows, nearby_cells, ranges_of_cells
from scalemani.stages.neighbors.counts import n_candidates
from scalemani.stages.neighbors.lists import empty_lists, round_arrays, settled, taken_lists
from scalemani.stages.neighbors.tables import basis_of, centroids_of, sketch_tables, work_points_of
from scalemani.store.groups import BlockRows

DISTINCT_LISTS = 13  # the version of the stage from which on no list names a neighbour several times


class Appended(NamedTuple):
    """Work rows of the points of an earlier run, and the appended points.

    `known` are the work rows (n,) of the earlier work rows, `earlier_rows` (N,) these of all work rows, -1 for appended
    points, and `in_place` says whether both orders agree. `new` (m,) are the work rows of appended points, ascending;
    `input_rows` (m,) are their input rows, `sketches` (m, s) theirs, and `probes` (m, p) the cells that they look
    through.
    """

    known: np.ndarray
    earlier_rows: np.ndarray
    in_place: bool
    new: np.ndarray
    input_rows: np.ndarray
    sketches: np.ndarray
    probes: np.ndarray


class Visitors(NamedTuple):
    """Which appended points look through each cell, cell after cell.

    `numbers` (v,) are theirs among the appended points, `sketches` (v, s) theirs, `offsets` (C + 1,) where cells begin.
    """

    numbers: np.ndarray
    sketches: np.ndarray
    offsets: np.ndarray


def continued_block(task: StageTask, block: int) -> BlockRows:
    """Return the neighbours of a block: of the earlier graph, and among the appended points."""
    appended = task.once(appended_points)
    start, stop = task.dimensions.rows(block)
    stored = task.earlier_results.stored(StoredNeighbors)
    step, distinct = stored.final_step, stored.group.record["version"] >= DISTINCT_LISTS
    may_stay = distinct and appended.in_place and stop <= len(appended.known)
    unchanged = {
        **taken_lists(stored.group, step),
        StoredNeighbors.fresh: np.zeros((stop - start, task.params.n_neighbors), np.uint8),
    }
    if may_stay and not is_visited(task, start, stop):
        return unchanged
    known = empty_lists(task, stop - start)
    places = np.flatnonzero(appended.earlier_rows[start:stop] >= 0)
    rows = appended.earlier_rows[start + places]
    known.indices[places] = appended.known[stored.indices(step).gather(rows)]
    known.distances[places] = stored.distances(step).gather(rows)
    if not distinct:  # each is taken once, and others fill its places
        known = merge_neighbors(known, empty_lists(task, stop - start), task.params.n_neighbors)
    candidates = candidates_of_block(task, start, places, known)
    if may_stay and not (candidates >= 0).any():
        return unchanged
    return round_arrays(*settled(task, start, candidates, known))


def is_visited(task: StageTask, start: int, stop: int) -> bool:
    """Return whether an appended point looks through a cell in which one of some consecutive rows is."""
    n_visitors = np.diff(task.once(visitors_of_cells).offsets)
    _, cells = task.once(ranges_of_cells).among(start, stop)
    return bool(n_visitors[cells].any())


def appended_points(task: StageTask) -> Appended:
    """Return which work rows are those of the earlier run and which were appended to it."""
    earlier, work_points = task.earlier_results, work_points_of(task)
    order = work_points.input_rows.read()
    before = earlier.stored(StoredWorkPoints).input_rows.read()
    new = np.flatnonzero(order >= earlier.n_points)
    sketches = np.ascontiguousarray(sketch_tables(task).by_row[new])
    sketches.flags.writeable = False  # as those of all points are, so that kernels are compiled once for both
    centroids, n_probes = centroids_of(task), probes_of_earlier(task)
    near = task.once(nearby_cells, n_probes)
    sizes = np.bincount(task.stored(StoredPartition).cells.gather(order[new]), minlength=len(centroids))
    offsets = np.concatenate([[0], np.cumsum(sizes)])  # those of one cell follow each other in either order
    probes = nearest_nearby_cells(sketches, offsets, centroids, near, n_probes)
    known, earlier_rows = inverse_order(order)[before], np.full(len(order), -1)
    earlier_rows[known] = np.arange(len(known))
    in_place = bool((known == np.arange(len(known))).all())
    return Appended(known, earlier_rows, in_place, new, order[new], sketches, probes)


def probes_of_earlier(task: StageTask) -> int:
    """Return how many cells the points of the earlier run have visited, where it still says so."""
    stored = task.earlier_results.stored(StoredNeighbors)
    known = stored.group.committed(TRUTH)
    return int(stored.n_probes.read_once()) if known else task.params.neighbors.first_probes


def visitors_of_cells(task: StageTask) -> Visitors:
    """Return the appended points that look through each cell."""
    appended, n_cells = task.once(appended_points), len(centroids_of(task))
    visits, offsets = group_by(appended.probes.ravel(), n_cells)
    numbers = visits // appended.probes.shape[1]
    sketches = appended.sketches[numbers]
    sketches.flags.writeable = False
    return Visitors(numbers, sketches, offsets)


def candidates_of_block(task: StageTask, start: int, places: np.ndarray, known: Neighbors) -> np.ndarray:
    """Return the work rows (n, c) int32 that may be neighbours of the rows of a block, -1 for none.

    Parameters
    ----------
    places : (p,), which of its rows are points of the earlier run
    known : (n, k), the lists of these; others are empty
    """
    appended, n_rows, count = task.once(appended_points), len(known.indices), n_candidates(task, 0)
    candidates = np.full((n_rows, count + 1), -1, np.int32)
    if len(places):
        limits = ((known.distances[places, -1] / basis_of(task).scale) ** 2).astype(np.float32)
        visitors, (offsets, cells) = (
            task.once(visitors_of_cells),
            task.once(ranges_of_cells).among(start, start + n_rows),
        )
        cell_of_row, queries = np.repeat(cells, np.diff(offsets))[places], sketch_tables(task).by_row[start + places]
        visits = nearest_visitors(visitors.sketches, visitors.offsets, cell_of_row, queries, limits, count)
        candidates[places, :count] = np.where(visits < 0, -1, appended.new[visitors.numbers[visits]])
    others = np.setdiff1d(np.arange(n_rows), places)
    if len(others):
        probes = appended.probes[np.searchsorted(appended.new, start + others)]
        candidates[others] = candidates_of_rows(task, start + others, probes, count)
    return candidates
