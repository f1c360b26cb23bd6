"""Groups of cells: where there are thousands of cells, a point looks only at those of the groups nearest to it.

Comparing every point with every cell makes the cost of a search grow with the square of the number of points. With as
many groups as a group has cells, it grows with its power of one and a half. The cells found are the nearest of all for
most points and among the nearest for the others. That does for what cells are for: an order in which near points are
near each other, and places to look for neighbours, whose recall is measured.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.neighbors.cells import nearest_cells, no_cells, offer_cells

FEW_CELLS = 4096  # up to here every cell is looked at: that costs no more than the sketches themselves
VISITED_GROUPS = 8  # of 130 groups of 130 cells each these hold the nearest cell of some 99 points in 100
CELLS_PER_PROBE = 4  # cells looked at for each that is asked for, at least
CELLS_PER_NEARBY_CELL = 16  # the same for cells near a cell: so many are asked for that four leave out one in fifteen
ITERATIONS = 4  # of k-means over the centroids: groups need to be compact, not the best there are


class CellGroups(NamedTuple):
    """Cells sorted by the group that they are in.

    `centers` (G, s) float32 of the groups, `cells` (C,) int64 sorted by group, `offsets` (G + 1,) int64 of the groups
    in `cells`, and `centroids` (C, s) float32 in that order.
    """

    centers: np.ndarray
    cells: np.ndarray
    offsets: np.ndarray
    centroids: np.ndarray


def group_cells(centroids: np.ndarray, few: int = FEW_CELLS) -> CellGroups:
    """Return as many groups of cells as a group has cells on average, or one of few cells.

    The groups come from k-means of the centroids, from evenly spread ones of them.

    Parameters
    ----------
    centroids : (C, s) float32
    few : up to so many cells are one group
    """
    n_cells = len(centroids)
    if n_cells <= few:
        return CellGroups(centroids[:1], np.arange(n_cells), np.array([0, n_cells]), centroids)
    n_groups = max(1, round(np.sqrt(n_cells)))
    centers = centroids[np.linspace(0, n_cells - 1, n_groups).astype(np.int64)]
    for _ in range(ITERATIONS):
        groups = nearest_cells(centroids, centers, 1)[:, 0]
        order, offsets = group_by(groups, n_groups)
        filled = np.flatnonzero(np.diff(offsets))  # an empty group stays where it is: it costs a comparison
        sums = np.add.reduceat(centroids[order], offsets[filled], axis=0, dtype=np.float64)
        centers[filled] = sums / np.diff(offsets)[filled, np.newaxis]
    order, offsets = group_by(nearest_cells(centroids, centers, 1)[:, 0], n_groups)
    return CellGroups(centers, order, offsets, centroids[order])


def nearest_cells_in_groups(
    sketches: np.ndarray, groups: CellGroups, n_probes: int, per_probe: int = CELLS_PER_PROBE
) -> np.ndarray:
    """Return the cells nearest to each sketch among those of the groups nearest to it.

    A row of the answer depends on its sketch only. So many groups are visited that they hold `per_probe` times the
    cells that are asked for, however small they are.

    Parameters
    ----------
    sketches : (n, s) float32
    n_probes : cells for each sketch, at most C
    per_probe : cells that the groups visited hold for each of these, at least

    Returns
    -------
    (n, n_probes) int32, ascending by distance
    """
    if len(groups.centers) == 1:
        return nearest_cells(sketches, groups.centroids, n_probes)
    held = np.cumsum(np.sort(np.diff(groups.offsets)))
    enough = np.searchsorted(held, per_probe * n_probes) + 1
    visited = nearest_cells(sketches, groups.centers, max(VISITED_GROUPS, int(enough)))
    order, offsets = group_by(visited.ravel(), len(groups.centers))
    rows = order // visited.shape[1]
    nearest = no_cells(len(sketches), n_probes)
    for group in np.flatnonzero(np.diff(offsets)):
        first, last = groups.offsets[group], groups.offsets[group + 1]
        queries = rows[offsets[group] : offsets[group + 1]]
        offer_cells(sketches, queries, 0, groups.centroids[first:last], first, nearest)
    return groups.cells[nearest.cells].astype(np.int32)
