"""Quadtrees and octrees as flat arrays in preorder: no recursion, no pointers but the one that skips a subtree.

Points in Morton order: a curve through the cells of all levels at once, so that every cell is a range of rows.

References
----------
G. M. Morton. A computer oriented geodetic data base and a new technique in file sequencing. IBM, 1966.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.coordinates import extremes
from scalemani.kernels.machine.compile import compiled

LEVELS = {2: 31, 3: 21}  # halvings of the root cell that fit into the 63 bits of a key


def morton_order(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort points along the Morton curve of the smallest cube that holds them.

    Parameters
    ----------
    points : (N, d) float64, C-contiguous, finite, d = 2 or 3

    Returns
    -------
    keys : (N,) uint64, ascending; points in one cell of the last level share a key
    rows : (N,) int64, the rows of the points in that order
    """
    if not len(points):
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    low, high = extremes(points)
    keys = np.empty(len(points), np.uint64)
    _write_keys(points, low, float((high - low).max()), LEVELS[points.shape[1]], keys)
    order = np.argsort(keys)
    return keys[order], order


@compiled
def _write_keys(points: np.ndarray, low: np.ndarray, side: float, levels: int, keys: np.ndarray) -> None:
    cells, n_dims = 2.0**levels, points.shape[1]
    for i in range(len(points)):
        key = np.uint64(0)
        for k in range(n_dims):
            share = (points[i, k] - low[k]) / side if side > 0.0 else 0.0
            cell = np.uint64(min(share * cells, cells - 1.0))
            for level in range(levels):
                key |= ((cell >> np.uint64(level)) & np.uint64(1)) << np.uint64(level * n_dims + k)
        keys[i] = key


BITS = 64
HIGHEST_DIGIT = np.uint64(60)  # the place in a key of a point's cell on the first level, with two axes or three
MERGED = 4
CACHE_LINE = 8  # float64 numbers
AXES = 3  # of cells: a plane lies at zero along the third
CHARGE, SIZE = 0, 1  # the columns of `totals`


class CellTree(NamedTuple):
    """Points in Morton order, and the cells over them, n of them, each before its children.

    A cell with one occupied child is left out for that child, so there are fewer cells than points and no more levels
    than a Morton key has. A leaf holds at most `leaf_points` points, or points that share a key.

    Attributes
    ----------
    order : (N,) row of the input that each point is.
    columns : (d, N) coordinates.
    charges : (N,) of one sign.
    centers : (n, 3) of charge.
    totals : (n, 2): the sum of the charges, and the size: the longest side of the box around the points.
    moments : (n, 6): sum q (x - c)_k (x - c)_l for k >= l, row by row.
    first, last : (n,) its points are columns[:, first:last].
    skip : (n,) the next cell in preorder that does not lie in this one; node + 1 for a leaf.
    """

    order: np.ndarray
    columns: np.ndarray
    charges: np.ndarray
    centers: np.ndarray
    totals: np.ndarray
    moments: np.ndarray
    first: np.ndarray
    last: np.ndarray
    skip: np.ndarray


def build_tree(points: np.ndarray, charges: np.ndarray, leaf_points: int) -> CellTree:
    """Return the tree over points (N, d), d = 2 or 3, with charges (N,) none of which differ in sign."""
    keys, order = morton_order(points)
    columns, charges = np.ascontiguousarray(points[order].T), charges[order]
    first, last = _split(keys, len(columns), leaf_points)
    nodes = np.zeros((len(first), CACHE_LINE))  # what a walk asks of a cell is in one place
    skip = np.searchsorted(first, last)  # cells in preorder begin where those before them do, or later
    moments = np.zeros((len(first), AXES * (AXES + 1) // 2))
    tree = CellTree(order, columns, charges, nodes[:, :AXES], nodes[:, AXES : AXES + 2], moments, first, last, skip)
    _weigh(tree)
    return tree


@compiled
def cover(tree: CellTree, most: int) -> np.ndarray:
    """Return ranges (g, 2) that hold every point once, at most `most` each.

    The largest cells of at most MERGED times that many points are cut into parts of equal length, which leaves fewer
    short ranges than the largest cells that are short enough.
    """
    ranges, n_ranges, node = np.empty((len(tree.order), 2), np.int64), 0, 0
    while node < len(tree.skip):
        first, count = tree.first[node], tree.last[node] - tree.first[node]
        if count > MERGED * most and tree.skip[node] > node + 1:
            node += 1
            continue
        n_parts = (count + most - 1) // most
        for part in range(n_parts):
            ranges[n_ranges, 0] = first + part * count // n_parts
            ranges[n_ranges, 1] = first + (part + 1) * count // n_parts
            n_ranges += 1
        node = tree.skip[node]
    return ranges[:n_ranges].copy()


@compiled
def _split(keys: np.ndarray, n_dims: int, leaf_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first point of each cell and the one behind its last, in preorder."""
    capacity = 2 * len(keys)
    first, last = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    stack = np.empty((BITS << n_dims, 2), np.int64)
    stack[0] = 0, len(keys)
    n_nodes, n_open = 0, 1 if len(keys) else 0
    while n_open:
        n_open -= 1
        begin, end = stack[n_open]
        first[n_nodes], last[n_nodes] = begin, end
        n_nodes += 1
        if end - begin <= leaf_points or keys[begin] == keys[end - 1]:
            continue
        shift = HIGHEST_DIGIT
        while keys[begin] >> shift == keys[end - 1] >> shift:
            shift -= np.uint64(n_dims)
        stop = end
        while stop > begin:  # the last child first: the first one is then popped first
            start = begin + np.searchsorted(keys[begin:stop], (keys[stop - 1] >> shift) << shift)
            stack[n_open] = start, stop
            n_open += 1
            stop = start
    return first[:n_nodes].copy(), last[:n_nodes].copy()


@compiled
def _weigh(tree: CellTree) -> None:
    """Write `centers`, `totals` and `moments` of each cell, from its points.

    A cell without any charge has the middle of its box as its centre.
    """
    columns, charges, n_dims = tree.columns, tree.charges, len(tree.columns)
    for node in range(len(tree.first)):
        points, center, moments = range(tree.first[node], tree.last[node]), tree.centers[node], tree.moments[node]
        total, size, entry = charges[tree.first[node] : tree.last[node]].sum(), 0.0, 0
        for k in range(n_dims):
            low, high, weighted = np.inf, -np.inf, 0.0
            for i in points:
                low, high = min(low, columns[k, i]), max(high, columns[k, i])
                weighted += charges[i] * columns[k, i]
            middle = weighted / total if total != 0.0 else 0.5 * (low + high)
            center[k], size = min(max(middle, low), high), max(size, high - low)
            for l in range(k + 1):
                for i in points:
                    moments[entry] += charges[i] * (columns[k, i] - center[k]) * (columns[l, i] - center[l])
                entry += 1
        tree.totals[node, CHARGE], tree.totals[node, SIZE] = total, size
