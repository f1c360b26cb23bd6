"""Points and sketches in work order: sorted by cell, so that a cell is a range of rows and near rows near points."""

from collections.abc import Iterator, Sequence
from typing import Any

from scalemani.chunked.work import Arrays, Dimensions, DiskNeed, StageTask, StageWork
from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.rows.sketches import sketch_points
from scalemani.params import Parameters
from scalemani.records.points import StoredPartition, StoredPoints, StoredWorkPoints
from scalemani.store.schema import RowArray
from scalemani.workers.budget import MemoryNeed

BYTES_PER_ROW_NUMBER = 16  # the order and what sorting it takes


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the order, of a block with a source block, and of all points that runs collect."""
    width = min(params.partition.sketch_dimensions, dimensions.n_features)
    rows = dimensions.block_rows * dimensions.row_bytes
    return MemoryNeed(
        2 * BYTES_PER_ROW_NUMBER * dimensions.n_points,
        5 * rows + 12 * width * dimensions.block_rows,
        growing=dimensions.n_blocks * rows,
    )


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of the order and the sketches, and the rows of the points that are stored: all."""
    width = min(params.partition.sketch_dimensions, dimensions.n_features)
    return DiskNeed((8 + 4 * width) * dimensions.n_points, points=dimensions.n_points)


def run(work: StageWork) -> dict[str, Any]:
    """Fix the order, then write points and sketches in it."""
    task, partition = work.task, StoredPartition(work.task.inputs["partition"])
    if not task.output.committed("whole"):
        order, offsets = group_by(partition.cells.read(), len(partition.centroids.read()))
        task.output.write_whole({StoredWorkPoints.INPUT_ROWS: order, StoredWorkPoints.CELL_OFFSETS: offsets})
    task.output.create(task.dimensions.n_points, arrays(task.dimensions, partition.basis.axes.shape[1]))
    work.map_runs(ordered_blocks, -(-task.dimensions.n_blocks // work.at_once))
    return {}


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
