"""Points and sketches in work order: sorted by cell, so that a cell is a range of rows and near rows near points."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from scalemani.chunked.needs import EACH_PROCESS, EACH_TASK, ENCODED, GROWING, STORED, Held, Written
from scalemani.chunked.sizes import Sizes, sketched_tile
from scalemani.chunked.work import Arrays, Dimensions, StageTask, StageWork
from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.rows.sketches import sketch_points
from scalemani.records.points import StoredPartition, StoredPoints, StoredWorkPoints
from scalemani.routes import PRECOMPUTED
from scalemani.store.schema import RowArray

COPIES_OF_ORDER = 4  # the order, that of a run, sorted, and the blocks its rows are in
COPIES_OF_BLOCK = 3  # that points come from, as they leave the run, and encoded
COPIES_OF_SKETCHES = 3  # found, looked at for what is not finite, and encoded


def memory(sizes: Sizes) -> list[Held]:
    """List the order, what a block takes with the block that its points come from, and all points that runs collect."""
    dimensions, width = sizes.dimensions, sizes.sketch_width
    if sizes.params.points.metric == PRECOMPUTED:
        return [Held("row numbers", EACH_PROCESS, dimensions.n_points, 1, "int64")]
    if sizes.params.neighbors.by_window:
        block = Held("pixels of a block", EACH_TASK, dimensions.block_rows, dimensions.n_features, dimensions.dtype, 2)
        return [Held("row numbers", EACH_PROCESS, dimensions.n_points, 1, "int64"), block]
    rows, features, dtype = dimensions.block_rows, dimensions.n_features, dimensions.dtype
    return [
        Held("row numbers", EACH_PROCESS, dimensions.n_points, 1, "int64", COPIES_OF_ORDER),
        Held("mean and axes of the sketches", EACH_PROCESS, features, width + 1),
        Held("points of a block", EACH_TASK, rows, features, dtype, COPIES_OF_BLOCK),
        *sketched_tile(sizes, EACH_TASK),
        Held("sketches of a block", EACH_TASK, rows, width, "float32", COPIES_OF_SKETCHES),
        Held("points of the runs at work", GROWING, dimensions.n_blocks * rows, features, dtype),
    ]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: the order, the rows of all points, and their sketches."""
    dimensions = sizes.dimensions
    n_points = dimensions.n_points
    order = Written("input row of each work row", STORED, n_points, 1, "int64")
    if sizes.params.points.metric == PRECOMPUTED:
        return [order]
    sketches = Written("sketches", STORED, n_points, sizes.sketch_width, "float32")
    return [
        order,
        Written("points in work order", ENCODED, n_points, dimensions.n_features, dimensions.dtype),
        *([] if sizes.params.neighbors.by_window else [sketches]),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Fix the order, then write points and sketches in it; pixels and neighbours that are given stay in their order."""
    if work.task.params.points.metric == PRECOMPUTED or work.task.params.neighbors.by_window:
        keep_order(work)
        return {}
    task, partition = work.task, StoredPartition(work.task.inputs["partition"])
    if not task.output.committed("whole"):
        order, offsets = group_by(partition.cells.read(), len(partition.centroids.read()))
        task.output.write_whole({StoredWorkPoints.INPUT_ROWS: order, StoredWorkPoints.CELL_OFFSETS: offsets})
    task.output.create(task.dimensions.n_points, arrays(task.dimensions, partition.basis.axes.shape[1]))
    work.map_runs(ordered_blocks, -(-task.dimensions.n_blocks // work.at_once))
    return {}


def keep_order(work: StageWork) -> None:
    """Write the order that points came in, and where they are pixels, these."""
    task, n_points = work.task, work.task.dimensions.n_points
    if not task.output.committed("whole"):
        order, offsets = np.arange(n_points), np.array([0, n_points])
        task.output.write_whole({StoredWorkPoints.INPUT_ROWS: order, StoredWorkPoints.CELL_OFFSETS: offsets})
    if task.params.neighbors.by_window:
        task.output.create(n_points, arrays(task.dimensions, 0)[:1])
        work.map_blocks(pixels_block)


def pixels_block(task: StageTask, block: int) -> Arrays:
    """Return the pixels of a block as they came."""
    return {StoredWorkPoints.POINTS: StoredPoints(task.inputs["points"]).points.read_block(block)}


def arrays(dimensions: Dimensions, width: int) -> list[RowArray]:
    """Describe what is stored by row, with sketches of so many axes."""
    return [
        StoredWorkPoints.POINTS.sized(dimensions.n_features, dtype=dimensions.dtype),
        StoredWorkPoints.SKETCH.sized(width),
    ]


def ordered_blocks(task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the blocks of a run: one pass over all points in input order collects them."""
    order = StoredWorkPoints(task.output).input_rows.read_once()
    basis = StoredPartition(task.inputs["partition"]).basis
    first, last = task.dimensions.rows(blocks[0])[0], task.dimensions.rows(blocks[-1])[1]
    points = task.table((last - first, task.dimensions.n_features), task.dimensions.dtype)
    StoredPoints(task.inputs["points"]).points.gather_into(points, order[first:last])
    for block in blocks:
        start, stop = task.dimensions.rows(block)
        rows = points[start - first : stop - first]
        yield block, {StoredWorkPoints.POINTS: rows, StoredWorkPoints.SKETCH: sketch_points(rows, basis)}
