"""Random-access tables of a search: points, their sketches, and the lists of the round before.

Rounds over cells look at sketches; rounds among neighbours of neighbours at lists, and at sketches that are rounded. A
process that has no room for all of these may have it for either, and then holds them in turn: to read rows from files
takes longer than what is done with them.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import DTypeLike

from scalemani.engine.context import StageTask
from scalemani.engine.memory.files import Table
from scalemani.engine.reading import ArrayReader, SketchesOfRows, SparseTable, copy_to_file, read_only
from scalemani.kernels.arrays.grouping import compact_rows
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.machine.instructions import ITEM_BYTES
from scalemani.kernels.neighbors.exact import SketchedRows, about
from scalemani.kernels.neighbors.nn_descent import NeighborLists, append_sources
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS, SET_WORDS, compared_rows, n_words
from scalemani.kernels.rows.reduced import COORDINATES, Distance
from scalemani.kernels.rows.sketches import SketchBasis, rounded_sketches, rounding_error, rounding_step
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import Sketches, StoredPartition, StoredWorkPoints, sketches_of
from scalemani.stages.neighbors.counts import n_listed, n_mutual
from scalemani.stages.neighbors.memory_model import BYTES_OF_EDGE

COPIED_ROWS = 2**16  # of sketches at a time, on their way from one table to the other


class SketchesByCell(NamedTuple):
    """The sketches (N, s) of all points cell after cell, where cells begin (C + 1,), and the work rows of these.

    `rows` (N,) int32 is None where work rows are sorted by cell.
    """

    sketches: Table | SketchesOfRows
    offsets: np.ndarray
    rows: np.ndarray | None

    def work_rows(self, places: np.ndarray) -> np.ndarray:
        """Return the work rows of places among these sketches, (n, c) int32; -1 stays what it is."""
        return places if self.rows is None else np.where(places < 0, places, self.rows[places])


class SketchTables(NamedTuple):
    """The sketches (N, s) float32 of all points, by work row and by cell."""

    by_row: Table | SketchesOfRows
    by_cell: SketchesByCell


class ListTables(NamedTuple):
    """The random-access tables of a round among neighbours of neighbours.

    `sketches` (N, s) of all points, int8 unless that is too coarse for near neighbours, `unit` of their lengths, and
    `lists`: the fields of `NeighborLists`, the head of every list after a round.
    """

    sketches: Table
    unit: float
    lists: tuple[Table, Table]


def sketch_tables(task: StageTask) -> SketchTables:
    """Return the sketches of all points, which tasks share."""
    return task.in_turn(read_sketches)


def list_tables(task: StageTask, step: str, of_leaves: bool = False) -> ListTables:
    """Return the tables of a round among neighbours of neighbours after a step, which tasks share.

    Where leaves were searched, rows are compared by all coordinates, and a list also holds those whose neighbour it is.
    """
    return task.in_turn(read_lists, step, of_leaves)


def read_sketches(task: StageTask) -> SketchTables:
    """Return the sketches of all points by row and by cell: one table where work rows are sorted by cell."""
    stored = work_points_of(task)
    together = ITEM_BYTES * task.dimensions.n_points * len(basis_of(task).axes.T) * (1 if stored.sorted_by_cell else 2)
    table, empty = sketches_at_hand(task, together), functools.partial(empty_table, task, together)
    return SketchTables(table, listed_by_cell(stored, table, len(centroids_of(task)), empty))


def listed_by_cell(
    stored: StoredWorkPoints,
    sketches: Table | SketchesOfRows,
    n_cells: int,
    empty: Callable[[tuple[int, ...], DTypeLike], Table],
) -> SketchesByCell:
    """Return sketches by cell: those in work order, where that is sorted by cell.

    Parameters
    ----------
    sketches : (N, s) float32, theirs in work order
    """
    ranges = stored.cell_ranges
    if stored.sorted_by_cell:
        return SketchesByCell(sketches, ranges.offsets, None)
    rows, offsets = ranges.by_cell(n_cells)
    table = empty(sketches.shape, np.float32)
    for part in slices(len(rows), COPIED_ROWS):
        table[part] = sketches[rows[part]]
    if isinstance(table, np.ndarray):
        table.flags.writeable = False  # as those in work order are: kernels are compiled once for both
    return SketchesByCell(table, offsets, rows.astype(np.int32))


def read_lists(task: StageTask, step: str, of_leaves: bool) -> ListTables:
    """Return the heads of all lists after a step, and sketches for a round among neighbours of neighbours."""
    sketches, unit = task.once(short_sketches, of_leaves) if task.in_memory else short_sketches(task, of_leaves)
    output, width = StoredNeighbors(task.output), n_mutual(task.params) if of_leaves else n_listed(task.params)
    shape = task.dimensions.n_points, 2 * width if of_leaves else width
    # Rows of sketches are looked up more often than lists: these come second where there is not room for both.
    together = len(sketches) * (sketches.shape[1] * sketches.dtype.itemsize + shape[1] * BYTES_OF_EDGE)
    indices, fresh = (empty_table(task, together, shape, dtype) for dtype in (np.int32, np.bool_))
    for block in range(task.dimensions.n_blocks):
        for table, array, nothing in ((indices, output.indices, -1), (fresh, output.fresh, 0)):
            heads = array(step).read_block(block)[:, :width]
            table[rows_of(task, block)] = np.pad(heads, ((0, 0), (0, shape[1] - width)), constant_values=nothing)
    if of_leaves:
        list_sources(task, indices, fresh, width)
    return ListTables(sketches, unit, (indices, fresh))


def list_sources(task: StageTask, indices: Table, fresh: Table, width: int) -> None:
    """Write into the second halves (N, width) of lists, which are empty, the first rows in whose lists a row is."""
    for block in range(task.dimensions.n_blocks):
        block_rows = rows_of(task, block)
        listed, flags = (np.ascontiguousarray(table[block_rows][:, :width]) for table in (indices, fresh))
        rows, places = compact_rows(listed)
        heads = NeighborLists(indices[rows], fresh[rows])
        append_sources(block_rows.start, places, flags, heads)
        indices[rows], fresh[rows] = heads


def short_sketches(task: StageTask, by_all: bool) -> tuple[Table, float]:
    """Return the sketches of all points, in bytes unless that is too coarse for near neighbours, and their unit.

    Or all coordinates instead, and where a function compares rows these.

    The rows of a list lie all over memory: how many bytes each has decides how long a round takes.
    """
    if distance_of_points(task).by_function:
        return cast(Table, compared_points(task)), 1.0  # none of these is sparse
    tuning, scale, vectors_at = task.params.neighbors, basis_of(task).scale, coordinates_at if by_all else sketches_at
    sampled = task.once(query_vectors, by_all)
    step, width = rounding_step(sampled), sampled.shape[1]
    close = float(np.quantile(StoredNeighbors(task.output).query_limits.read_once(), tuning.close_share))
    if 0 < rounding_error(step, width) * scale <= tuning.rounding_share * close < np.inf:
        rounded = filled(task, np.int8, width, lambda rows: rounded_sketches(vectors_at(task, rows), step))
        return rounded, step * scale
    if by_all:
        return filled(task, np.float32, width, functools.partial(coordinates_at, task)), scale
    sketches, bytes_of_all = all_sketches(task), sampled.itemsize * width * task.dimensions.n_points
    if isinstance(sketches, SketchesOfRows):  # rows are looked up one by one
        return filled(task, np.float32, width, sketches.read_rows), scale
    shared = cast(Table, sketch_tables(task).by_row) if task.in_memory else table_of(task, sketches, bytes_of_all)
    return shared, scale


def filled(task: StageTask, dtype: DTypeLike, width: int, of_rows: Callable[[slice], np.ndarray]) -> Table:
    """Return a table (N, width) of what `of_rows` returns of the rows of each block."""
    shape = task.dimensions.n_points, width
    table = empty_table(task, math.prod(shape) * np.dtype(dtype).itemsize, shape, dtype)
    for block in range(task.dimensions.n_blocks):
        table[rows_of(task, block)] = of_rows(rows_of(task, block))
    return table


def query_vectors(task: StageTask, by_all: bool) -> np.ndarray:
    """Return the sketches (q, s) of the points by which the recall is measured, or all of their coordinates."""
    return (coordinates_at if by_all else sketches_at)(task, StoredNeighbors(task.output).query_rows.read_once())


def coordinates_at(task: StageTask, rows: slice | np.ndarray) -> np.ndarray:
    """Return all coordinates (n, D) float32 of dense points about the mean of the sketches, in their unit of length."""
    basis = basis_of(task)
    return about(basis.mean, points_at(task, rows), basis.scale)


def leaf_vectors_at(task: StageTask, rows: slice | np.ndarray) -> np.ndarray:
    """Return points as they look for leaders: their coordinates, or rows (n, D) float64 that a function compares."""
    return points_at(task, rows, True) if distance_of_points(task).by_function else coordinates_at(task, rows)


def sketches_at(task: StageTask, rows: slice | np.ndarray) -> np.ndarray:
    """Return sketches (n, s), from memory where those of all points are there anyway."""
    if task.in_memory:  # where tables are held in turn, this may be called while those of lists are made
        return np.asarray(sketch_tables(task).by_row[rows])
    sketches = all_sketches(task)
    return sketches.gather(rows) if isinstance(rows, np.ndarray) else sketches.read_rows(rows)


def sketched_at(task: StageTask, rows: slice | np.ndarray) -> SketchedRows:
    """Return points as neighbours are compared, with their sketches; `rows` are those of `points_at`."""
    return sketched_rows(task, points_at(task, rows, True), sketch_tables(task).by_row[rows])


def sketched_rows(task: StageTask, points: Points, sketches: np.ndarray) -> SketchedRows:
    """Return points (n, D) as neighbours are compared, with their sketches (n, s)."""
    return SketchedRows(points, sketches, basis_of(task).scale, distance_of_points(task))


def points_at(task: StageTask, rows: slice | np.ndarray, compared: bool = False) -> Points:
    """Return a copy of points as they are stored, or compared: of all, where this process holds them, which is quicker.

    Parameters
    ----------
    rows : the work rows of a block, or ascending ones (n,)
    """
    if holds_points(task) and not task.dimensions.sparse:
        of_sets = compared and METRICS[task.params.points.metric].of_sets
        points = (compared_points if of_sets else points_at_hand)(task)[rows]
        points = points if isinstance(rows, np.ndarray) else points.copy()
        return compared_rows(points, task.params.points.metric) if compared else points
    stored = work_points_of(task).points
    block_rows = (
        stored.gather(rows)
        if isinstance(rows, np.ndarray)
        else stored.read_block(rows.start // task.dimensions.block_rows)
    )
    return compared_rows(block_rows, task.params.points.metric) if compared else block_rows


def holds_points(task: StageTask, more_bytes: int = 0) -> bool:
    """Return whether a process that searches holds all points in memory, and so many bytes more."""
    return task.in_memory and task.cache_bytes >= task.dimensions.n_points * task.dimensions.row_bytes + more_bytes


def points_at_hand(task: StageTask) -> Table | SparseTable:
    """Return all points as they are stored: in memory where a process holds them, else rows in a file."""
    stored = work_points_of(task).points
    return stored.read_once() if holds_points(task) else stored.keep_in_file()


def compared_points(task: StageTask) -> Table | SparseTable:
    """Return all points as neighbours are compared: in memory where there is room; sparse ones as they are stored."""
    distance, dimensions = distance_of_points(task), task.dimensions
    as_stored = dimensions.sparse or (
        dimensions.dtype == "float64" if distance.by_function else distance == COORDINATES
    )
    return points_at_hand(task) if as_stored else task.once(converted_points)


def converted_points(task: StageTask) -> Table:
    """Return all dense points as sets (N, W) uint64, or as the rows (N, D) float64 that a function compares."""
    points, metric, width = work_points_of(task).dense_points, task.params.points.metric, task.dimensions.n_features
    of_sets = METRICS[metric].of_sets
    dtype, width = (SET_WORDS, n_words(width)) if of_sets else (np.dtype(np.float64), width)
    return filled(task, dtype, width, lambda rows: compared_rows(points.read_rows(rows), metric))


def distance_of_points(task: StageTask) -> Distance:
    """Return how the points are compared."""
    return METRICS[task.params.points.metric].distance


def all_sketches(task: StageTask) -> Sketches:
    """Return what reads the sketches of all points."""
    return sketches_of(work_points_of(task), basis_of(task))


def sketches_at_hand(task: StageTask, together: int) -> Table | SketchesOfRows:
    """Return the sketches of all points, or what makes them of points in a table, which take no more.

    Parameters
    ----------
    together : bytes of all sketches, and of what is looked up with them
    """
    sketches = all_sketches(task)
    if isinstance(sketches, SketchesOfRows):
        points = cast(Table, points_at_hand(task))
        return replace(sketches, rows_of=lambda rows: points[rows])
    return table_of(task, sketches, together)


def table_of(task: StageTask, array: ArrayReader, together: int) -> Table:
    """Return all rows of an array, in memory where there is room for so many bytes."""
    return (read_only if task.has_room(together) else copy_to_file)(array)


def empty_table(task: StageTask, together: int, shape: tuple[int, ...], dtype: DTypeLike) -> Table:
    """Return a table that is to be filled, in memory where there is room for it and what belongs to it.

    Parameters
    ----------
    together : bytes of the table and of those that are read with it
    """
    return np.empty(shape, dtype) if task.has_room(together) else task.table(shape, dtype)


def rows_of(task: StageTask, block: int) -> slice:
    """Return the work rows of a block."""
    return slice(*task.dimensions.rows(block))


def work_points_of(task: StageTask) -> StoredWorkPoints:
    """Return the points that are searched."""
    return task.stored(StoredWorkPoints)


def basis_of(task: StageTask) -> SketchBasis:
    """Return the axes of the sketches of the points."""
    return task.stored(StoredPartition).basis


def centroids_of(task: StageTask) -> np.ndarray:
    """Return the centres (C, s) of the cells, shared in this process."""
    return task.stored(StoredPartition).centroids.read_once()
