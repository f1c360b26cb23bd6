"""Work order where points were appended to a run: that of the run, and these behind it, sorted by cell.

All blocks but the last of the earlier run are then taken over as they are, and what is known by work row stays true.
"""

import numpy as np

from scalemani.chunked.task import EarlierResults
from scalemani.chunked.work import Arrays, StageTask
from scalemani.errors import CorruptChunkError
from scalemani.kernels.neighbors.stretches import Stretches
from scalemani.kernels.rows.sketches import sketch_points
from scalemani.records.points import StoredPartition, StoredPoints, StoredWorkPoints

# Times as many points as were sorted by cell, and stretches a cell: what reads rows near each other then still finds
# most of them so, and sorting all of them anew costs each of the goes that have led there a few hundredths.
MOST_GROWTH, MOST_STRETCHES = 1.25, 16


def kept_order(earlier: EarlierResults, cells: np.ndarray, n_cells: int) -> tuple[np.ndarray, Stretches] | None:
    """Return the order of an earlier run with the appended points behind it; None where these have become too many.

    Parameters
    ----------
    earlier : its points and their order
    cells : (N,) int, the cell of each point, in input order
    n_cells : C
    """
    before = StoredWorkPoints(earlier.groups[StoredWorkPoints.STAGE])
    known = before.stretches
    if len(cells) > MOST_GROWTH * known.offsets[n_cells]:
        return None
    behind, stretches = known.continued(cells[earlier.n_points :])
    if len(stretches.cells) > MOST_STRETCHES * n_cells:
        return None
    return np.append(before.input_rows.read(), earlier.n_points + behind), stretches


def appended_block(task: StageTask, block: int) -> Arrays:
    """Return a block that was not taken over: rows of the earlier run, and appended points behind them."""
    (start, stop), earlier = task.dimensions.rows(block), task.earlier_results
    border = max(start, min(stop, earlier.n_points))
    order = StoredWorkPoints(task.output).input_rows.read_once()
    points, before = (
        stored.dense_points
        for stored in (StoredPoints(task.inputs["points"]), StoredWorkPoints(earlier.groups[StoredWorkPoints.STAGE]))
    )
    try:
        known = before.gather(np.arange(start, border))
    except CorruptChunkError:
        known = points.gather(order[start:border])  # which lie in all blocks
    rows = np.concatenate([known, points.gather(order[border:stop])])
    basis = StoredPartition(task.inputs["partition"]).basis
    return {StoredWorkPoints.dense_points: rows, StoredWorkPoints.sketch: sketch_points(rows, basis)}
