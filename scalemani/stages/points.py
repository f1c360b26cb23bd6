"""Points as they came, in input order, cut into the blocks that every later array follows."""

import functools
from typing import Any

from scalemani.chunked.work import Arrays, Dimensions, MemoryNeed, StageTask, StageWork, write_one
from scalemani.params import Parameters
from scalemani.sources import PointsSource
from scalemani.store.schema import RowArray
from scalemani.survey import Survey, unchanged

COPIES_AT_WORK = 4  # the block read, its encoded form, and the codec's and the reader's buffers


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes that ingesting takes."""
    return MemoryNeed(0, COPIES_AT_WORK * dimensions.block_rows * dimensions.row_bytes)


def arrays(dimensions: Dimensions) -> list[RowArray]:
    """Describe what is stored."""
    return [
        RowArray("points", dimensions.dtype, (dimensions.n_features,), ("point", "feature"), "points in input order")
    ]


def ingest(work: StageWork, source: PointsSource, found: Survey) -> dict[str, Any]:
    """Copy the blocks that are missing from the source into the store."""
    task = work.task
    task.output.create(task.dimensions.n_points, arrays(task.dimensions))
    missing = [[block] for block in range(task.dimensions.n_blocks) if not task.output.done(block)]
    work.executor.progress.start(task.stage, len(missing))
    read = functools.partial(read_block, source, found)
    work.executor.map_locally(functools.partial(write_one, read, "", task), missing, source.sequential)
    return {"points": task.dimensions.n_points, "constant_features": found.constant_features}


def read_block(source: PointsSource, found: Survey, task: StageTask, block: int) -> Arrays:
    """Read one block and make sure that it is what the survey saw."""
    start, stop = task.dimensions.rows(block)
    return {"points": unchanged(source.read(start, stop), start, found.tile_digests)}
