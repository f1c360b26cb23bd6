"""Neighbours within overlapping leaves: points that share a leader, each of which is compared with all others.

Leaders are points drawn at random, and a point is in the leaves of the few leaders nearest to it. A leaf is searched
exactly. Two near points share a leaf the more often the more leaves either is in, and leaves of other leaders find
what those before have missed. Nothing here takes leading axes: vectors of language and image models have none, and
cells of their sketches lose the neighbours.

References
----------
Rubel, Dhulipala, Gottesbueren, Jayaram and Lacki, PiPNN: Ultra-scalable graph-based nearest neighbor indexing, 2025.
"""

import math
from collections.abc import Iterator

import numpy as np

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.cell_groups import CellGroups, group_cells, nearest_cells_in_groups
from scalemani.kernels.neighbors.cells import nearest_cells
from scalemani.kernels.neighbors.exact import SketchedRows, paired_neighbors
from scalemani.kernels.neighbors.rerank import Neighbors, merge_neighbors

LARGE = 2.5  # times the points that a leaf is to have: what is larger is split, since products grow with the square
MORE_LEADERS = 1.5  # times as many as leaves of that size: sizes differ
MOST_SPLITS = 4  # of a leaf: equal points have one leader however often, and are cut
FEW_LEADERS = 1024  # up to here every leader is looked at


def count_leaders(n_points: int, leaf_points: int, overlap: int) -> int:
    """Return how many leaders there are if each point is in `overlap` leaves of so many points on average."""
    return min(n_points, max(overlap, math.ceil(n_points * overlap / leaf_points)))


def index_leaders(vectors: np.ndarray) -> CellGroups:
    """Return what finds the nearest leaders (L, D) float32: in groups where there are many."""
    return group_cells(vectors, FEW_LEADERS)


def nearest_leaders(vectors: np.ndarray, leaders: CellGroups, overlap: int) -> np.ndarray:
    """Return the numbers (n, overlap) int32 of the leaders nearest to vectors (n, D) float32, or nearly.

    A row of the answer depends on its vector only.
    """
    return nearest_cells_in_groups(vectors, leaders, overlap)


def split_leaf(vectors: np.ndarray, leaf_points: int, draws: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the rows of each part of a leaf, ascending: all, or those of leaders of their own where it is large.

    In the first split a point is in the parts of two leaders, later in that of one.

    Parameters
    ----------
    vectors : (n, D) float32
    """
    pending = [(np.arange(len(vectors)), 0)]
    while pending:
        rows, depth = pending.pop()
        if len(rows) <= LARGE * leaf_points:
            yield rows
        elif depth == MOST_SPLITS:
            yield from (rows[part] for part in slices(len(rows), leaf_points))
        else:
            count, width = math.ceil(MORE_LEADERS * len(rows) / leaf_points), 1 if depth else 2
            leaders = rows[np.sort(draws.choice(len(rows), count, replace=False))]
            order, bounds = group_by(nearest_cells(vectors[rows], vectors[leaders], width).ravel(), count)
            parts = (rows[order[bounds[i] : bounds[i + 1]] // width] for i in range(count))
            pending.extend((part, depth + 1) for part in parts if len(part) > 1)


def join_leaf(
    rows: SketchedRows, empty: Neighbors, limits: np.ndarray, leaf_points: int, draws: np.random.Generator
) -> Neighbors:
    """Return the nearest points of a leaf to each other, by exact distance, ties by their numbers in the leaf.

    Of a large leaf, points are compared that share a part of it.

    Parameters
    ----------
    rows : the points (n, D), dense; their sketches are all coordinates about any origin
    empty : (n, k) lists without neighbours
    limits : (n,) distances beyond which no neighbour is wanted, inf for none

    Returns
    -------
    Neighbors (n, k) in the dtypes of `empty`
    """
    lists = Neighbors(empty.indices.copy(), empty.distances.copy())
    for part in split_leaf(rows.sketches, leaf_points, draws):
        own = SketchedRows(rows.points[part], rows.sketches[part], rows.scale)
        known = Neighbors(lists.indices[part], lists.distances[part])
        # What is known is found again: a list that is being filled takes each row once.
        none = Neighbors(empty.indices[: len(part)], empty.distances[: len(part)])
        found = paired_neighbors(own, none, limits=np.minimum(limits[part], known.distances[:, -1]))
        numbers = np.where(found.indices < 0, -1, part[found.indices]).astype(known.indices.dtype)
        merged = merge_neighbors(known, Neighbors(numbers, found.distances), known.indices.shape[1])
        lists.indices[part], lists.distances[part] = merged
    return lists
