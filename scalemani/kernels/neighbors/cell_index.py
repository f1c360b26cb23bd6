"""Where the cells nearest to a sketch are looked for: of few dimensions in a k-d tree, of more in groups of cells.

A tree finds the nearest of all. Of 17,000 cells in three dimensions it takes half of what groups take for one cell and
a third for many; in six dimensions twice as much, in ten fifteen times.
"""

from typing import TypeAlias

import numpy as np
from scipy.spatial import cKDTree

from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.cell_groups import CELLS_PER_PROBE, CellGroups, group_cells, nearest_cells_in_groups

TREE_DIMENSIONS = 3
FOUND_AT_ONCE = 2**20  # cells, each with a distance and a number of 8 bytes

CellIndex: TypeAlias = CellGroups | cKDTree


def index_cells(centroids: np.ndarray) -> CellIndex:
    """Return what finds the nearest of the centroids (C, s) float32."""
    return cKDTree(centroids) if centroids.shape[1] <= TREE_DIMENSIONS else group_cells(centroids)


def nearest_indexed_cells(
    sketches: np.ndarray, index: CellIndex, n_probes: int, per_probe: int = CELLS_PER_PROBE
) -> np.ndarray:
    """Return the cells nearest to each sketch, or nearly.

    A row of the answer depends on its sketch only.

    Parameters
    ----------
    sketches : (n, s) float32
    n_probes : cells for each sketch, at most C
    per_probe : cells that are looked at for each of these where they are in groups, at least

    Returns
    -------
    (n, n_probes) int32, ascending by distance
    """
    if isinstance(index, CellGroups):
        return nearest_cells_in_groups(sketches, index, n_probes, per_probe)
    found = np.empty((len(sketches), n_probes), np.int32)
    for rows in slices(len(sketches), max(1, FOUND_AT_ONCE // n_probes)):
        found[rows] = index.query(sketches[rows], n_probes)[1].reshape(-1, n_probes)
    return found
