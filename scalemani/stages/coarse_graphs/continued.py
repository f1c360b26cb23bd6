"""The coarse graphs of a run that points were appended to, which appended points join as long as they are few.

They precondition, and the refinement certifies what it reaches with them; so they may be those of most of the points.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from scalemani.chunked.appended import rows_of_appended
from scalemani.chunked.work import StageWork
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.spectral.coarsening import Level
from scalemani.kernels.spectral.grown_graphs import crowded_share, join_strongest, with_degrees
from scalemani.records.affinities import affinity_graph
from scalemani.records.coarse import StoredCoarseGraphs
from scalemani.records.points import StoredWorkPoints

MOST_GROWTH = 1.1  # times as many points as the graphs were made of: then more passes cost half of what is saved
MOST_CROWDED = 0.01  # of all points; appended points that are among themselves need aggregates of their own


class KeptGraphs(NamedTuple):
    """The aggregate (N,) int32 of each point, the coarse graphs, and how many points they were made of."""

    labels: np.ndarray
    levels: Iterable[Level]
    made_of: int


def kept_graphs(work: StageWork, workspace: Workspace) -> KeptGraphs | None:
    """Return the coarse graphs of the earlier run with the appended points in them; None where these are too many."""
    task, earlier = work.task, work.task.earlier_results
    stored = StoredCoarseGraphs(earlier.groups[StoredCoarseGraphs.STAGE])
    made_of, n_points = stored.points_when_made(earlier.n_points), task.dimensions.n_points
    if n_points > MOST_GROWTH * made_of:
        return None
    order = StoredWorkPoints(task.inputs[StoredWorkPoints.STAGE]).input_rows.read()
    before = StoredWorkPoints(earlier.groups[StoredWorkPoints.STAGE]).input_rows.read()
    labels = workspace.empty((n_points,), np.int32)
    labels[:] = -1
    labels[inverse_order(order)[before]] = stored.labels.read()
    degrees = affinity_graph(task.inputs).read_degrees(n_points, workspace.empty)
    appended = np.flatnonzero(order >= earlier.n_points)
    rows = rows_of_appended(task, appended, workspace.over)
    if not join_strongest(rows, appended, workspace.as_large(1 / np.sqrt(degrees)), labels):
        return None
    levels = stored.read_levels(workspace.empty)
    n_nodes = len(levels[0].degrees)
    if crowded_share(labels, n_nodes) > MOST_CROWDED:
        return None
    of_nodes = np.bincount(labels, weights=degrees, minlength=n_nodes)
    return KeptGraphs(labels, with_degrees(levels, of_nodes, workspace), made_of)
