"""Cells of sketches: k-means of a sample, and the search for the cells nearest to a sketch.

Sketches of few dimensions search a k-d tree, which finds the nearest of all. Of 17,000 cells in three dimensions it
takes half of what groups take for one cell and a third for many; in six dimensions twice as much, in ten fifteen times.

Others search groups of cells. Comparing every point with every cell makes the cost of a search grow with the square of
the number of points; with as many groups as a group has cells, it grows with its power of one and a half. The cells
are the nearest of all for most points and among the nearest for the others. That does for what cells are for: an
order in which near points are near each other, and places to look for neighbours, whose recall is measured.
"""

import functools
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.spatial import cKDTree

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.arrays.tiles import Mapper, row_panels, slices
from scalemani.kernels.machine.compile import compiled, square_of
from scalemani.kernels.neighbors.cells import locality_order, nearest_cells, no_cells, offer_cells

FEW_CELLS = 4096  # up to here every cell is looked at: that costs no more than the sketches themselves
VISITED_GROUPS = 8  # of 130 groups of 130 cells each these hold the nearest cell of some 99 points in 100
CELLS_PER_PROBE = 4  # cells looked at for each requested one, at least
CELLS_PER_NEARBY_CELL = 16  # the same for cells near a cell: so many are requested that four leave out one in fifteen
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
    requested cells, however small they are.

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


TREE_DIMENSIONS = 3
PROBES_AT_ONCE = 2**20  # cells, each with a distance and a number of 8 bytes

CellIndex: TypeAlias = CellGroups | cKDTree


def index_cells(centroids: np.ndarray) -> CellIndex:
    """Return what finds the nearest of the centroids (C, s) float32."""
    return cKDTree(centroids) if centroids.shape[1] <= TREE_DIMENSIONS else group_cells(centroids)


def nearest_indexed_cells(
    sketches: np.ndarray,
    index: CellIndex,
    n_probes: int,
    per_probe: int = CELLS_PER_PROBE,
    probes_at_once: int = PROBES_AT_ONCE,
) -> np.ndarray:
    """Return the cells nearest to each sketch, or nearly.

    A row of the answer depends on its sketch only.

    Parameters
    ----------
    sketches : (n, s) float32
    n_probes : cells for each sketch, at most C
    per_probe : cells that are looked at for each of these where they are in groups, at least
    probes_at_once : what a tree returns at once; changes no bit

    Returns
    -------
    (n, n_probes) int32, ascending by distance
    """
    if isinstance(index, CellGroups):
        return nearest_cells_in_groups(sketches, index, n_probes, per_probe)
    cells = np.empty((len(sketches), n_probes), np.int32)
    for rows in slices(len(sketches), max(1, probes_at_once // n_probes)):
        cells[rows] = index.query(sketches[rows], n_probes)[1].reshape(-1, n_probes)
    return cells


def train_cells(
    sample: np.ndarray, n_cells: int, generator: np.random.Generator, n_iterations: int = 10, over: Mapper = map
) -> np.ndarray:
    """Return the centroids of a k-means of sketches, in locality order.

    Lloyd's iterations from distinct random rows of the sample; a cell that runs empty starts again at the row
    farthest from its centroid. Cells only have to be small and compact, so float32 distances and few iterations do;
    `landmarks.kmeans` is for clusters that are a result, its mini-batches for more points than memory holds.

    Parameters
    ----------
    sample : (n, s) float32
    n_iterations : default 10
    over : runs panels of the sample, as the builtin `map` does; changes no bit

    Returns
    -------
    (min(C, n), s) float32
    """
    n_cells = min(n_cells, sample.shape[0])
    centroids = sample[np.sort(generator.choice(sample.shape[0], n_cells, replace=False))]
    panels = row_panels(len(sample))
    for _ in range(n_iterations):
        nearest = functools.partial(_nearest_of_panel, sample, index_cells(centroids))
        cells = np.concatenate(list(over(nearest, panels)))
        centroids, counts, squares = _cell_means(sample, cells, centroids)
        empty = np.flatnonzero(counts == 0)
        if empty.size > 0:
            farthest = np.argsort(-squares, kind="stable")[: empty.size]
            centroids[empty] = sample[farthest]
    return centroids[locality_order(centroids)]


def _nearest_of_panel(sample: np.ndarray, index: CellIndex, panel: slice) -> np.ndarray:
    """Return the cell of each row of a panel of the sample."""
    return nearest_indexed_cells(sample[panel], index, 1)[:, 0]


@compiled
def _cell_means(
    sample: np.ndarray, cells: np.ndarray, centroids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean (float32, summed in float64) and number of rows of each cell, and each row's squared distance."""
    sums = np.zeros(centroids.shape)
    counts = np.zeros(centroids.shape[0], dtype=np.int64)
    squares = np.zeros(sample.shape[0], dtype=np.float32)
    for i in range(sample.shape[0]):
        cell = cells[i]
        counts[cell] += 1
        for d in range(sample.shape[1]):
            sums[cell, d] += sample[i, d]
            squares[i] += square_of(sample[i, d] - centroids[cell, d])
    means = np.empty_like(centroids)
    for cell in range(counts.size):
        for d in range(sums.shape[1]):
            means[cell, d] = sums[cell, d] / max(counts[cell], 1)
    return means, counts, squares
