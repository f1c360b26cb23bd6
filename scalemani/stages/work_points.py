"""Points and sketches in work order: sorted by cell, so that a cell is a range of rows and near rows near points.

Points that are appended to a run come behind the others, sorted by cell, as long as they are few. All blocks but the
last of the earlier run are then reused, and what is known by work row stays true.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from scalemani.config.stages import PRECOMPUTED
from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.sizes import Sizes, grouping, points_written, sketched_tile, written
from scalemani.engine.task import EarlierResults
from scalemani.errors import CorruptChunkError
from scalemani.kernels.arrays.grouping import group_large
from scalemani.kernels.neighbors.cells import CellRanges
from scalemani.kernels.rows.sketches import sketch_points
from scalemani.stages.arrays.points import FEATURES, StoredPartition, StoredPoints, StoredWorkPoints

RANGE_ROWS = 2**26  # of block ranges at work in a process, at most: their row numbers take 2 GB
# Times as many points as were sorted by cell, and ranges of rows a cell: what reads rows near each other then still has
# most of them so, and sorting all of them again costs a few hundredths of each of the appends before it.
MOST_GROWTH, MOST_RANGES = 1.25, 16


def memory(sizes: Sizes) -> Memory:
    """Return what the order takes, a block with the block its points come from, and all points that runs collect."""
    dimensions, width, rows = sizes.dimensions, sizes.sketch_width, sizes.dimensions.block_rows
    numbers, block = array("int64", dimensions.n_points), rows * dimensions.row_bytes
    if sizes.params.points.metric == PRECOMPUTED:
        return Memory({"row numbers": numbers})
    if sizes.params.neighbors.of_pixels:
        return Memory({"row numbers": numbers}, {"pixels of a block": 2 * block})
    earlier = {"row numbers of the earlier run, and of all": 3 * numbers} if sizes.n_appended else {}
    models = {"mean and axes of the sketches": array("float64", dimensions.n_features, width + 1)}
    of_sketches = {
        "sketches of a block: found, looked at, and encoded": 3 * array("float32", rows, width),
        **sketched_tile(sizes),
    }
    collected = {"points of the runs at work": dimensions.n_blocks * block}
    return Memory(
        process=models if sizes.stores_sketches else {},
        task={
            "points of a block: as read, as they leave a run, and encoded": 3 * block,
            **(of_sketches if sizes.stores_sketches else {}),
        },
        points={} if dimensions.sparse else collected,
        cache=collected if dimensions.sparse else {},
        steps={
            "order": grouping(dimensions.n_points, "row numbers") + Memory(earlier),
            # Row numbers as stored, sorted, their places, and the blocks they are in.
            "rows": Memory({"row numbers of the runs at work": 4 * min(numbers, array("int64", RANGE_ROWS))}),
        },
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the order, the rows of all points, and their sketches."""
    stored, of_pixels = StoredWorkPoints, sizes.params.neighbors.of_pixels
    if sizes.params.points.metric == PRECOMPUTED:
        return Disk(written([stored.input_rows], sizes))
    models = [stored.input_rows] if of_pixels else [stored.input_rows, stored.cell_offsets]
    models += [stored.sketch] if sizes.stores_sketches and not of_pixels else []
    return Disk({**written(models, sizes), **points_written(stored.dense_points.name, sizes)})


def run(context: StageContext) -> dict[str, Any]:
    """Fix the order, then write points and sketches in it; pixels and precomputed neighbours stay in their order."""
    task, dimensions, stored = context.task, context.task.dimensions, StoredWorkPoints
    if not task.output.committed("whole"):
        task.output.write_whole(order_of(context))
    if task.params.points.metric == PRECOMPUTED:
        return {}
    points = stored.dense_points.sized(dimensions.n_features, dtype=dimensions.dtype)
    if task.params.neighbors.of_pixels:
        task.output.create(dimensions.n_points, [points])
        context.compute(pixels_copied)
        return {}
    sketch = stored.sketch.sized(task.stored(StoredPartition).basis.axes.shape[1])
    arrays = [points, sketch] if stores_sketches(task) else [points]
    if dimensions.sparse:  # as many points at a time as there is room for, and then their sketches
        task.output.write_whole(stored.SPARSE.features(dimensions.n_features), FEATURES)
        context.compute(sparse_rows)
        task.output.create(dimensions.n_points, [sketch])
        context.compute(sketches)
        return {}
    task.output.create(dimensions.n_points, arrays)
    if stored(task.output).sorted_by_cell:
        context.compute(ordered_rows)
    else:
        context.take_earlier_blocks()
        context.map_blocks(appended_block)
    return {}


def graphs(context: StageContext) -> Steps:
    """Yield the points in their order, which comes first."""
    if not context.task.output.committed("whole"):
        yield "the order of the points"
    if context.task.params.points.metric == PRECOMPUTED:
        return
    if context.task.params.neighbors.of_pixels:
        yield pixels_copied
    elif context.task.dimensions.sparse:
        yield sparse_rows
        yield sketches
    else:
        yield ordered_rows


def pixels_copied(graph: StageGraph) -> None:
    """Add the rows of pixels, which stay where they are."""
    graph.map_blocks(pixels_block)


def sparse_rows(graph: StageGraph) -> None:
    """Add sparse points, as many at a time as there is room for."""
    dimensions = graph.context.task.dimensions
    blocks = graph.context.blocks_per_range(dimensions.block_rows * dimensions.row_bytes)
    graph.map_block_ranges(ordered_blocks, blocks, StoredWorkPoints.ROWS_STEP)


def sketches(graph: StageGraph) -> None:
    """Add the sketches of sparse points."""
    graph.map_blocks(sketched_block)


def ordered_rows(graph: StageGraph) -> None:
    """Add dense points: a block range for every task, and no more rows in a process than RANGE_ROWS."""
    context, dimensions = graph.context, graph.context.task.dimensions
    most = RANGE_ROWS // dimensions.block_rows // context.in_one_process
    graph.map_block_ranges(ordered_blocks, min(max(1, most), -(-dimensions.n_blocks // context.at_once)))


def order_of(context: StageContext) -> Arrays:
    """Return which input row each work row is, and where cells begin, or where the row ranges of cells do.

    Pixels and precomputed neighbours are one cell, in the order that they came in.
    """
    task, stored, n_points = context.task, StoredWorkPoints, context.task.dimensions.n_points
    if task.params.points.metric == PRECOMPUTED or task.params.neighbors.of_pixels:
        return {stored.input_rows: np.arange(n_points), stored.cell_offsets: np.array([0, n_points])}
    partition = task.stored(StoredPartition)
    n_cells = len(partition.centroids.read())
    extended = None if task.earlier is None else extended_order(task.earlier, partition.cells.read(), n_cells)
    if extended is None:
        order, offsets = group_large(partition.cells.read_rows, n_points, n_cells, context.workspace.empty)
        return {stored.input_rows: order, stored.cell_offsets: offsets}
    order, (offsets, of_cells) = extended
    return {stored.input_rows: order, stored.stretch_offsets: offsets, stored.stretch_cells: of_cells}


def extended_order(
    earlier: EarlierResults, cells: np.ndarray, n_cells: int, most_ranges: int = MOST_RANGES
) -> tuple[np.ndarray, CellRanges] | None:
    """Return the order of an earlier run with the appended points behind it; None where these have become too many.

    Parameters
    ----------
    cells : (N,) int, the cell of each point, in input order
    most_ranges : ranges of rows that a cell may have, in the mean
    """
    before = earlier.stored(StoredWorkPoints)
    known = before.cell_ranges
    if len(cells) > MOST_GROWTH * known.offsets[n_cells]:
        return None
    behind, ranges = known.continued(cells[earlier.n_points :])
    if len(ranges.cells) > most_ranges * n_cells:
        return None
    return np.append(before.input_rows.read(), earlier.n_points + behind), ranges


def appended_block(task: StageTask, block: int) -> Arrays:
    """Return a block that was not reused: rows of the earlier run, and appended points behind them."""
    (start, stop), earlier = task.dimensions.rows(block), task.earlier_results
    border = max(start, min(stop, earlier.n_points))
    order = StoredWorkPoints(task.output).input_rows.read_rows(slice(start, stop))
    points, before = (stored.dense_points for stored in (task.stored(StoredPoints), earlier.stored(StoredWorkPoints)))
    try:
        known = before.gather(np.arange(start, border))
    except CorruptChunkError:
        known = points.gather(order[: border - start])  # which lie in all blocks
    return with_sketches(task, np.concatenate([known, points.gather(order[border - start :])]))


def pixels_block(task: StageTask, block: int) -> Arrays:
    """Return the pixels of a block as they came."""
    return {StoredWorkPoints.dense_points: task.stored(StoredPoints).points.read_block(block)}


def ordered_blocks(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the blocks of a range, sparse ones without sketches, which one pass over all points collects."""
    dimensions, stored, (first, last) = task.dimensions, task.stored(StoredPoints), task.dimensions.rows_of(blocks)
    order = StoredWorkPoints(task.output).input_rows.read_rows(slice(first, last))
    if dimensions.sparse:
        points = stored.points.gather(order)
    else:
        points = task.table((last - first, dimensions.n_features), dimensions.dtype)
        stored.dense_points.gather_into(points, order)
    for block in blocks:
        start, stop = dimensions.rows(block)
        rows = points[start - first : stop - first]
        yield block, StoredWorkPoints.SPARSE.parts(rows) if dimensions.sparse else with_sketches(task, rows)


def stores_sketches(task: StageTask) -> bool:
    """Return whether sketches are stored, as `Sizes` says."""
    return Sizes(task.dimensions, task.params).stores_sketches


def with_sketches(task: StageTask, rows: np.ndarray) -> Arrays:
    """Return dense points (n, D), with their sketches where these are stored."""
    if not stores_sketches(task):
        return {StoredWorkPoints.dense_points: rows}
    sketches = sketch_points(rows, task.stored(StoredPartition).basis)
    return {StoredWorkPoints.dense_points: rows, StoredWorkPoints.sketch: sketches}


def sketched_block(task: StageTask, block: int) -> Arrays:
    """Return the sketches of one block of sparse points in work order."""
    points = StoredWorkPoints(task.output).points.read_block(block)
    return {StoredWorkPoints.sketch: sketch_points(points, task.stored(StoredPartition).basis)}
