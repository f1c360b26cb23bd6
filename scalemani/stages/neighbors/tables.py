"""Tables of all points that a search looks up by row: sketches, and the lists of the round before.

Rounds over cells look at sketches; rounds among neighbours of neighbours at lists, and at sketches that are rounded. A
process that has no room for all of these may have it for either, and then holds them in turn: to read rows from files
takes longer than what is done with them.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from scalemani.engine.memory.files import Table
from scalemani.engine.reading import copy_to_file, read_only
from scalemani.engine.work import StageTask
from scalemani.kernels.arrays.grouping import compact_rows
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.exact import about
from scalemani.kernels.neighbors.nn_descent import NeighborLists, append_sources
from scalemani.kernels.rows.sketches import SketchBasis, rounded_sketches, rounding_error, rounding_step
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredPartition, StoredWorkPoints
from scalemani.stages.neighbors.counts import n_listed, n_mutual
from scalemani.stages.neighbors.needs import BYTES_OF_EDGE

COPIED_ROWS = 2**16  # of sketches at a time, on their way from one table to the other


class SketchesByCell(NamedTuple):
    """The sketches (N, s) of all points cell after cell, where cells begin (C + 1,), and the work rows of these.

    `rows` (N,) int32 is None where work rows are sorted by cell.
    """

    sketches: Table
    offsets: np.ndarray
    rows: np.ndarray | None

    def work_rows(self, found: np.ndarray) -> np.ndarray:
        """Return the work rows of what was found among these sketches, (n, c) int32; -1 stays what it is."""
        return found if self.rows is None else np.where(found < 0, found, self.rows[found])


class SketchTables(NamedTuple):
    """The sketches (N, s) float32 of all points, by work row and by cell."""

    by_row: Table
    by_cell: SketchesByCell


class ListTables(NamedTuple):
    """What a round among neighbours of neighbours looks up.

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
    """Return what a round among the neighbours of neighbours that a step has found looks up, which tasks share.

    Where leaves were searched, rows are compared by all coordinates, and a list also holds those whose neighbour it is.
    """
    return task.in_turn(read_lists, step, of_leaves)


def read_sketches(task: StageTask) -> SketchTables:
    """Return the sketches of all points by row and by cell: one table where work rows are sorted by cell."""
    stored = work_points_of(task)
    together = stored.sketch.zarr().nbytes * (1 if stored.sorted_by_cell else 2)
    table, empty = stored_sketches(task, together), functools.partial(empty_table, task, together)
    return SketchTables(table, listed_by_cell(stored, table, len(centroids_of(task)), empty))


def listed_by_cell(
    stored: StoredWorkPoints, sketches: Table, n_cells: int, empty: Callable[[tuple[int, ...], DTypeLike], Table]
) -> SketchesByCell:
    """Return sketches by cell: those in work order, where that is sorted by cell.

    Parameters
    ----------
    sketches : (N, s) float32, theirs in work order
    """
    stretches = stored.stretches
    if stored.sorted_by_cell:
        return SketchesByCell(sketches, stretches.offsets, None)
    rows, offsets = stretches.by_cell(n_cells)
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
        rows = slice(*task.dimensions.rows(block))
        for table, array, nothing in ((indices, output.indices, -1), (fresh, output.fresh, 0)):
            heads = array(step).read_block(block)[:, :width]
            table[rows] = np.pad(heads, ((0, 0), (0, shape[1] - width)), constant_values=nothing)
    if of_leaves:
        list_sources(task, indices, fresh, width)
    return ListTables(sketches, unit, (indices, fresh))


def list_sources(task: StageTask, indices: Table, fresh: Table, width: int) -> None:
    """Write into the second halves (N, width) of lists, which are empty, the first rows in whose lists a row is."""
    for block in range(task.dimensions.n_blocks):
        start, stop = task.dimensions.rows(block)
        listed, flags = indices[start:stop][:, :width], fresh[start:stop][:, :width]
        rows, places = compact_rows(np.ascontiguousarray(listed))
        found = NeighborLists(indices[rows], fresh[rows])
        append_sources(start, places, np.ascontiguousarray(flags), found)
        indices[rows], fresh[rows] = found


def short_sketches(task: StageTask, by_all: bool) -> tuple[Table, float]:
    """Return the sketches of all points, in bytes unless that is too coarse for near neighbours, and their unit.

    Or all coordinates instead.

    The rows of a list lie all over memory: how many bytes each has decides how long a round takes.
    """
    tuning, output = task.params.neighbors, StoredNeighbors(task.output)
    scale = basis_of(task).scale
    sampled = task.once(query_coordinates if by_all else query_sketches)
    step, width = rounding_step(sampled), sampled.shape[1]
    close = float(np.quantile(output.query_limits.read_once(), tuning.close_share))
    if not 0 < rounding_error(step, width) * scale <= tuning.rounding_share * close < np.inf:
        together = sampled.itemsize * width * task.dimensions.n_points
        if by_all:
            return filled_by_blocks(task, together, width, np.float32, coordinates_of_block), scale
        return (sketch_tables(task).by_row if task.in_memory else stored_sketches(task, together)), scale

    def rounded(task: StageTask, block: int) -> np.ndarray:
        return rounded_sketches((coordinates_of_block if by_all else sketches_of_block)(task, block), step)

    return filled_by_blocks(task, task.dimensions.n_points * width, width, np.int8, rounded), step * scale


def filled_by_blocks(
    task: StageTask, together: int, width: int, dtype: DTypeLike, of_block: Callable[[StageTask, int], np.ndarray]
) -> Table:
    """Return a table (N, width) of what `of_block` returns of each block: other parameters are of `empty_table`."""
    table = empty_table(task, together, (task.dimensions.n_points, width), dtype)
    for block in range(task.dimensions.n_blocks):
        table[slice(*task.dimensions.rows(block))] = of_block(task, block)
    return table


def coordinates_of(task: StageTask, points: np.ndarray) -> np.ndarray:
    """Return all coordinates (n, D) float32 of dense points about the mean of the sketches, in their unit of length."""
    basis = basis_of(task)
    return about(basis.mean, points, basis.scale)


def coordinates_of_block(task: StageTask, block: int) -> np.ndarray:
    """Return what `coordinates_of` does, of a block."""
    return coordinates_of(task, work_points_of(task).points.read_block(block))


def query_coordinates(task: StageTask) -> np.ndarray:
    """Return what `coordinates_of` does, of the points by which the recall is measured."""
    rows = StoredNeighbors(task.output).query_rows.read_once()
    return coordinates_of(task, work_points_of(task).points.gather(rows))


def query_sketches(task: StageTask) -> np.ndarray:
    """Return the sketches (q, s) of the points by which the recall is measured."""
    rows = StoredNeighbors(task.output).query_rows.read_once()
    # Where tables are held in turn this may be asked for while those of lists are made.
    return np.asarray(sketch_tables(task).by_row[rows]) if task.in_memory else work_points_of(task).sketch.gather(rows)


def sketches_of_block(task: StageTask, block: int) -> np.ndarray:
    """Return the sketches of a block, from memory where those of all points are there anyway."""
    if task.in_memory:
        return np.asarray(sketch_tables(task).by_row[slice(*task.dimensions.rows(block))])
    return work_points_of(task).sketch.read_block(block)


def stored_sketches(task: StageTask, together: int) -> Table:
    """Return the sketches of all points, in memory where there is room for so many bytes."""
    return (read_only if task.has_room(together) else copy_to_file)(work_points_of(task).sketch)


def empty_table(task: StageTask, together: int, shape: tuple[int, ...], dtype: DTypeLike) -> Table:
    """Return a table that is to be filled, in memory where there is room for it and what belongs to it.

    Parameters
    ----------
    together : bytes of the table and of those that are looked up beside it
    """
    return np.empty(shape, dtype) if task.has_room(together) else task.table(shape, dtype)


def work_points_of(task: StageTask) -> StoredWorkPoints:
    """Return the points that are searched."""
    return task.stored(StoredWorkPoints)


def basis_of(task: StageTask) -> SketchBasis:
    """Return the axes of the sketches of the points."""
    return task.stored(StoredPartition).basis


def centroids_of(task: StageTask) -> np.ndarray:
    """Return the centres (C, s) of the cells, kept in this process."""
    return task.stored(StoredPartition).centroids.read_once()
