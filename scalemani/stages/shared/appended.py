"""What stages of a run share to which points were appended: blocks that stay, and the rows of W of these points."""

import functools
from collections.abc import Callable

import numpy as np

from scalemani.engine.context import StageContext
from scalemani.engine.task import StageTask
from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.store.groups import block_unit


def take_earlier_blocks(context: StageContext, stays: Callable[[int], bool] | None = None) -> None:
    """Commit the blocks that hold rows of the earlier run alone as its group has them; none is decoded.

    Where that cannot be, as where one is damaged, a block is left to be computed as any other.

    Parameters
    ----------
    stays : says whether a block is what it was; None: all are
    """
    task = context.task
    if task.earlier is None:
        return
    earlier = task.earlier.groups[task.stage]
    whole = range(task.earlier.n_points // task.dimensions.block_rows)
    missing = [block for block in whole if not task.output.committed(block_unit(block))]
    same = missing if stays is None else list(filter(stays, missing))
    context.executor.over(functools.partial(task.output.take_block, other=earlier), same)


def rows_of_appended(task: StageTask, appended: np.ndarray, over: Mapper) -> AffinityRows:
    """Return rows (n, N) of W in memory, at ascending work rows (n,) int64."""
    rows = affinity_graph(task.inputs).read_at(appended, task.dimensions, over)
    return AffinityRows(rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data)
