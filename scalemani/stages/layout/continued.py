"""The descent of a run that points were appended to: where these start, and when it ends.

Appended points start where descents in the field of the others end, which stay still: as new points are placed. Then
the descent continues with all points, from the last tolerance of the sums in the earlier one. A map that has settled
falls little, so that this is checked more often, for as small a fall in an iteration.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from scalemani.config.objectives import Objective, objective_of
from scalemani.descents.phases import Phase
from scalemani.descents.placement import FixedSources, PlacementProblem, place_points, rows_of_lists
from scalemani.descents.repulsion import make_repulsion
from scalemani.engine.task import StageTask
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.repulsion.pair_sums import PairSums
from scalemani.stages.arrays.embeddings import StoredLayout

PLACED_AT_ONCE = 1024  # points with their neighbours: some 20 MB
LOOKS = 5  # at the objective in a window


def in_short_windows(phases: Sequence[Phase]) -> list[Phase]:
    """Return phases that look more often whether the objective has fallen, for the same share an iteration."""
    windows = [max(1, phase.window // LOOKS) for phase in phases]
    return [
        replace(phase, window=window, converged=phase.converged * window / phase.window)
        for phase, window in zip(phases, windows, strict=True)
    ]


def tolerance_factor(task: StageTask, method: str) -> float:
    """Return what the tolerance of sums was multiplied by at the end of the earlier descent; one for other sums."""
    certificates = task.earlier_results.groups[StoredLayout.STAGE].record["certificates"]
    if certificates.get("repulsion") != method:
        return 1.0
    return float(min(1.0, certificates["repulsion_tolerance"] / task.params.layout.tolerance))


def earlier_sums(task: StageTask, method: str, workspace: Workspace) -> PairSums:
    """Return the sums that the earlier descent had at its end."""
    kernel = objective_of(str(task.params.layout.objective), task.params.layout.dof).kernel
    return make_repulsion(method, kernel, task.params.layout.tolerance * tolerance_factor(task, method), workspace)


def place_appended(
    rows: AffinityRows, positions: np.ndarray, sums: PairSums, objective: Objective, strength: float, most: int
) -> None:
    """Fill rows of NaN, of points with neighbours that have a position, by descents in the field of all these.

    Parameters
    ----------
    rows : those of W
    positions : (N, d) float64, filled in place
    sums : of the kernel
    objective, strength : those of the descent, the strength relative to the exaggeration
    most : so many of the strongest neighbours attract a point
    """
    known = ~np.isnan(positions[:, 0])
    sources = np.ascontiguousarray(positions[known])
    fixed, numbers, appended = FixedSources(sums, sources), np.cumsum(known) - 1, np.flatnonzero(~known)
    for part in slices(len(appended), PLACED_AT_ONCE):
        neighbors, affinities = strongest_known(rows, appended[part], known, most)
        placed = affinities[:, 0] > 0
        total = affinities[placed].sum(axis=1, keepdims=True)
        lists = rows_of_lists(numbers[neighbors[placed]], affinities[placed] / total)
        problem = PlacementProblem(objective, strength, fixed, sources, lists)
        positions[appended[part][placed]] = place_points(problem).positions


def strongest_known(
    rows: AffinityRows, numbers: np.ndarray, known: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the strongest neighbours (n, k) that are known, k up to `most`, strongest first, and their affinities.

    Places that rows with fewer of them have left name any known point, with affinity zero.

    Parameters
    ----------
    rows : those of W
    numbers : (n,) of some rows
    known : (N,) bool
    """
    starts, lengths = rows.indptr[numbers], rows.indptr[numbers + 1] - rows.indptr[numbers]
    columns = np.arange(lengths.max(initial=1))
    inside = columns < lengths[:, np.newaxis]
    entries = np.where(inside, starts[:, np.newaxis] + columns, 0)
    neighbors = rows.indices[entries].astype(np.int64)
    affinities = np.where(inside & known[neighbors], rows.values[entries], 0.0).astype(np.float64)
    order = np.argsort(-affinities, axis=1, kind="stable")[:, :most]
    strongest, strengths = np.take_along_axis(neighbors, order, axis=1), np.take_along_axis(affinities, order, axis=1)
    return np.where(strengths > 0, strongest, np.flatnonzero(known)[0]), strengths
