"""Points as they came, in input order, cut into the blocks that every later array follows."""

import functools
from collections.abc import Sequence
from typing import Any

from scalemani.engine.context import DIMENSIONS, EXTREMES, Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.sizes import Sizes, points_written
from scalemani.engine.task import Dimensions
from scalemani.errors import StoreError
from scalemani.io.sources import PointsSource
from scalemani.io.sources.base import read_rows
from scalemani.kernels.rows.metrics import COPIES_OF_MAPPED, COPIES_OF_NONZEROS, EUCLIDEAN, PRECOMPUTED, rows_at_once
from scalemani.stages.arrays.points import FEATURES, StoredPoints, check_unchanged
from scalemani.store.objects import RECORD_BYTES
from scalemani.store.schema import RowArray

SURVEY = "survey.json"  # the digests of all tiles, for processes that read points themselves


def memory(sizes: Sizes) -> Memory:
    """Return what ingesting a block takes: the block as read, and encoded where nothing compresses."""
    dimensions, rows = sizes.dimensions, sizes.dimensions.block_rows
    block = rows * dimensions.row_bytes
    held = Memory(task={"points of a block": 2 * block})
    if sizes.params.points.metric in (EUCLIDEAN, PRECOMPUTED):
        return held
    if dimensions.sparse:
        return held + Memory(task={"nonzeros of a block as they are mapped": COPIES_OF_NONZEROS * block})
    mapped = array("float64", min(rows, rows_at_once(dimensions.n_features)), dimensions.n_features)
    return held + Memory(
        task={"points of a block as given": block, "rows that are mapped at once": COPIES_OF_MAPPED * mapped}
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the rows of all points."""
    return Disk(points_written(StoredPoints.dense_points.name, sizes))


def arrays(dimensions: Dimensions) -> list[RowArray]:
    """Describe what is stored."""
    return [StoredPoints.dense_points.sized(dimensions.n_features, dtype=dimensions.dtype)]


def run(context: StageContext) -> dict[str, Any]:
    """Copy the blocks that are missing from the source into the store: on the workers where they can read it too.

    Where points were appended to a run, its blocks are reused.
    """
    task, points = context.task, context.points
    if points is None:
        raise ValueError("the stage `points` was started without points to read")
    task.output.objects.set_json(DIMENSIONS, task.dimensions.as_dict())
    sparse = task.dimensions.sparse
    if points.extremes is not None and not sparse:
        task.output.objects.set_json(EXTREMES, points.extremes)
    if sparse:
        task.output.write_whole(StoredPoints.SPARSE.features(task.dimensions.n_features), FEATURES)
    else:
        task.output.create(task.dimensions.n_points, arrays(task.dimensions))
        context.take_earlier_blocks()
    if context.executor.reads_on_workers(points.source):
        task.output.objects.set_json(SURVEY, {"tiles": points.tile_digests})
        context.compute(functools.partial(blocks_read, points.source))
    else:
        read = functools.partial(read_block, points.source, points.tile_digests)
        context.map_blocks_here(read, points.source.sequential)
    return {"points": task.dimensions.n_points, "constant_features": points.constant_features}


def graphs(context: StageContext) -> Steps:
    """Yield what tasks copy, where they can read the source."""
    points = context.points
    if points is not None and context.executor.reads_on_workers(points.source):
        yield functools.partial(blocks_read, points.source)
    else:
        yield "the driver reads the points"


def blocks_read(source: PointsSource, graph: StageGraph) -> None:
    """Add the blocks as any process reads them."""
    graph.map_blocks(functools.partial(read_anywhere, source))


def read_anywhere(source: PointsSource, task: StageTask, block: int) -> Arrays:
    """Read one block in a process that did not make the survey."""
    return read_block(source, task.once(surveyed_tiles), task, block)


def surveyed_tiles(task: StageTask) -> list[str]:
    """Return the digests of all tiles, as the survey saw them."""
    survey = task.output.objects.get_json(SURVEY, RECORD_BYTES)
    if survey is None:
        raise StoreError(f"{SURVEY} of {task.output.path} is missing: run the same command again")
    return list(survey["tiles"])


def read_block(source: PointsSource, tile_digests: Sequence[str], task: StageTask, block: int) -> Arrays:
    """Read one block and make sure that it is what the survey saw.

    Parameters
    ----------
    source : (N, D), the points

    Raises
    ------
    DataError
        Where the source has other rows than it had.
    """
    start, stop = task.dimensions.rows(block)
    sparse = task.dimensions.sparse
    rows = check_unchanged(read_rows(source, start, stop, sparse), start, tile_digests)
    return StoredPoints.SPARSE.parts(rows) if sparse else {StoredPoints.dense_points: rows}
