"""What stages of a run share to which points were appended: blocks that stay, and the rows of W of these points."""

import functools

import numpy as np
import scipy.sparse as sp

from scalemani.engine.task import StageTask
from scalemani.engine.work import StageWork
from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.store.groups import block_unit


def take_earlier_blocks(work: StageWork) -> None:
    """Commit the blocks that hold rows of the earlier run alone as its group has them; none is decoded.

    Where that cannot be, as where one is damaged, a block is left to be computed as any other.
    """
    task = work.task
    if task.earlier is None:
        return
    earlier = task.earlier.groups[task.stage]
    whole = range(task.earlier.n_points // task.dimensions.block_rows)
    missing = [block for block in whole if not task.output.committed(block_unit(block))]
    work.executor.over(functools.partial(task.output.take_block, other=earlier), missing)


def rows_of_appended(task: StageTask, appended: np.ndarray, over: Mapper) -> AffinityRows:
    """Return rows of W in memory: blocks that hold none of them are not read.

    Parameters
    ----------
    appended : (n,) int64, ascending work rows

    Returns
    -------
    rows (n, N)
    """
    graph, dimensions = affinity_graph(task.inputs), task.dimensions

    def rows_of_block(block: int) -> sp.csr_matrix:
        start, stop = dimensions.rows(block)
        first, last = np.searchsorted(appended, [start, stop])
        return graph.read_matrix(block, dimensions.n_points)[appended[first:last] - start]

    parts = list(over(rows_of_block, np.unique(appended // dimensions.block_rows).tolist()))
    rows = sp.vstack(parts, format="csr")
    return AffinityRows(rows.indptr.astype(np.int64), rows.indices.astype(np.uint32), rows.data)
