"""Rounds of a search that look through the cells nearest to each point."""

import numpy as np

from scalemani.engine.context import Arrays, StageTask
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.cell_index import CELLS_PER_NEARBY_CELL, index_cells, nearest_indexed_cells
from scalemani.kernels.neighbors.cell_scan import search_enough_cells
from scalemani.kernels.neighbors.cells import CellRanges, nearest_cells, nearest_nearby_cells
from scalemani.kernels.neighbors.rerank import Neighbors, merge_neighbors
from scalemani.kernels.neighbors.rounds import Round, without_known
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.neighbors.counts import n_candidates
from scalemani.stages.neighbors.lists import lists_before, round_arrays, settled
from scalemani.stages.neighbors.tables import centroids_of, sketch_tables, work_points_of
from scalemani.stages.shared.tiled_search import joined


def first_round(task: StageTask) -> Round:
    """Return the first round over cells: those nearest to each point."""
    return Round(0, int(StoredNeighbors(task.output).n_probes.read_once()))


def cells_block(current: Round, number: int, task: StageTask, block: int) -> Arrays:
    """Return the neighbours of a block after looking through cells, next to those of the round before."""
    (start, stop), parts = task.dimensions.rows(block), []
    before, _ = lists_before(task, number, block)
    # With more candidates fewer rows are searched at a time: the memory is that of the first round.
    for part in slices(stop - start, -(-(stop - start) // current.candidates)):
        candidates = candidates_of_cells(task, start + part.start, start + part.stop, current)
        known = Neighbors(before.indices[part], before.distances[part])
        parts.append(settled(task, start + part.start, without_known(candidates, known.indices), known))
    return round_arrays(*joined(parts))


def candidates_of_cells(task: StageTask, start: int, stop: int, current: Round) -> np.ndarray:
    """Return the work rows that are nearest by sketch to some rows, among those of the cells that these visit.

    Parameters
    ----------
    start, stop : the rows are work rows [start, stop)

    Returns
    -------
    (stop - start, c) int32, -1 for none
    """
    probes, count = visited_cells(task, start, stop, current), current.candidates * n_candidates(task, 0)
    cells = sketch_tables(task).by_cell
    if cells.rows is not None:
        return candidates_of_rows(task, np.arange(start, stop), probes, count)
    return search_enough_cells(cells.sketches, cells.offsets, centroids_of(task), probes, start, count)


def candidates_of_rows(task: StageTask, rows: np.ndarray, probes: np.ndarray, count: int) -> np.ndarray:
    """Return what `candidates_of_cells` does, of any rows.

    Parameters
    ----------
    rows : (n,) int64, work rows
    probes : (n, m) int32, the cells that each visits

    Returns
    -------
    (n, count + 1) int32, -1 for none
    """
    sketches, cells = sketch_tables(task)
    # One candidate more: a query that is passed next to the table finds itself.
    queries, behind = np.ascontiguousarray(sketches[rows]), task.dimensions.n_points
    places = search_enough_cells(cells.sketches, cells.offsets, centroids_of(task), probes, behind, count + 1, queries)
    candidates = cells.work_rows(places)
    return np.where(candidates == rows[:, np.newaxis], np.int32(-1), candidates)


def nearest_in_cells(task: StageTask, rows: np.ndarray) -> Neighbors:
    """Return the nearest neighbours (n, k) of a few work rows (n,) in the cells nearest to each; lists are full."""
    sketches = sketch_tables(task).by_row
    n_probes = task.params.neighbors.n_probes or task.params.neighbors.first_probes
    probes = nearest_cells(np.ascontiguousarray(sketches[rows]), centroids_of(task), n_probes)
    candidates = candidates_of_rows(task, rows, probes, n_candidates(task, 0))
    neighbors, _ = joined([settled(task, row, candidates[i : i + 1]) for i, row in enumerate(rows.tolist())])
    return neighbors


def fill_short_lists(task: StageTask, start: int, lists: Neighbors) -> None:
    """Fill lists (n, k) of consecutive rows that miss neighbours from the cells nearest to each; changed in place."""
    short = np.flatnonzero(lists.indices[:, -1] < 0)
    if len(short):
        incomplete = Neighbors(lists.indices[short], lists.distances[short])
        merged = merge_neighbors(incomplete, nearest_in_cells(task, start + short), task.params.n_neighbors)
        lists.indices[short], lists.distances[short] = merged


def visited_cells(task: StageTask, start: int, stop: int, current: Round) -> np.ndarray:
    """Return the cells that some rows visit in a round.

    Parameters
    ----------
    task, start, stop, current : those of `candidates_of_cells`

    Returns
    -------
    (stop - start, m) int32, nearest first
    """
    offsets, cells = task.once(ranges_of_cells).among(start, stop)
    near, sketches = task.once(nearby_cells, current.last), sketch_tables(task).by_row[start:stop]
    probes = nearest_nearby_cells(sketches, offsets, centroids_of(task), near[cells], current.last)
    return np.ascontiguousarray(probes[:, current.first :])


def ranges_of_cells(task: StageTask) -> CellRanges:
    """Return the ranges of work rows of one cell."""
    return work_points_of(task).cell_ranges


def nearby_cells(task: StageTask, n_nearest: int) -> np.ndarray:
    """Return the cells among which the `n_nearest` nearest to a point of each cell are searched."""
    centroids = centroids_of(task)
    tuning = task.params.neighbors
    count = min(len(centroids), max(tuning.nearby_cells, tuning.nearby_per_probe * n_nearest))
    return nearest_indexed_cells(centroids, index_cells(centroids), count, CELLS_PER_NEARBY_CELL)
