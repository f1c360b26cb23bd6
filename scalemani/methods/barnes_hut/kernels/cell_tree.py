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
_1, _2, _4, _8, _16, _32 = (np.uint64(i) for i in (1, 2, 4, 8, 16, 32))


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
    cells = 2.0**levels
    for i in range(len(points)):
        key = np.uint64(0)
        for k in range(points.shape[1]):
            share = (points[i, k] - low[k]) / side if side > 0.0 else 0.0
            cell = np.uint64(min(share * cells, cells - 1.0))
            key |= (_spread_by_two(cell) if points.shape[1] == 2 else _spread_by_three(cell)) << np.uint64(k)
        keys[i] = key


@compiled
def _spread_by_two(cell: int) -> int:
    """Move bit i of a number below 2^32 to bit 2 i."""
    x = np.uint64(cell)
    x = (x | (x << _16)) & np.uint64(0x0000FFFF0000FFFF)
    x = (x | (x << _8)) & np.uint64(0x00FF00FF00FF00FF)
    x = (x | (x << _4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    x = (x | (x << _2)) & np.uint64(0x3333333333333333)
    return (x | (x << _1)) & np.uint64(0x5555555555555555)


@compiled
def _spread_by_three(cell: int) -> int:
    """Move bit i of a number below 2^21 to bit 3 i."""
    x = np.uint64(cell)
    x = (x | (x << _32)) & np.uint64(0x001F00000000FFFF)
    x = (x | (x << _16)) & np.uint64(0x001F0000FF0000FF)
    x = (x | (x << _8)) & np.uint64(0x100F00F00F00F00F)
    x = (x | (x << _4)) & np.uint64(0x10C30C30C30C30C3)
    return (x | (x << _2)) & np.uint64(0x1249249249249249)


BITS = 64
MERGED = 4
CACHE_LINE = 8  # float64 numbers
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
    centers : (n, d) of charge.
    totals : (n, 2): the sum of the charges, and the size: the longest side of the box around the points.
    moments : (n, d (d + 1) / 2): sum q (x - c)_k (x - c)_l for k <= l, row by row.
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


class Ranges(NamedTuple):
    """Cells in preorder: the first point (n,) of each, the one behind its last, and its parent, -1 for the root."""

    first: np.ndarray
    last: np.ndarray
    parents: np.ndarray


def build_tree(points: np.ndarray, charges: np.ndarray, leaf_points: int) -> CellTree:
    """Return the tree over points (N, d), d = 2 or 3, with charges (N,) none of which differ in sign."""
    keys, order = morton_order(points)
    columns, charges = np.ascontiguousarray(points[order].T), charges[order]
    ranges = Ranges(*_split(keys, len(columns), leaf_points))
    centers, totals, skip = _weigh(columns, charges, ranges)
    moments = _second_moments(columns, charges, ranges, centers, totals, skip)
    return CellTree(order, columns, charges, centers, totals, moments, ranges.first, ranges.last, skip)


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
def _split(keys: np.ndarray, n_dims: int, leaf_points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ranges of the cells and the parent of each, in preorder."""
    capacity = 2 * len(keys)
    first, last, parents = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    stack = np.empty((BITS << n_dims, 3), np.int64)
    stack[0] = 0, len(keys), -1
    n_nodes, n_open = 0, 1 if len(keys) else 0
    while n_open:
        n_open -= 1
        begin, end, parent = stack[n_open]
        node = n_nodes
        first[node], last[node], parents[node] = begin, end, parent
        n_nodes += 1
        if end - begin <= leaf_points or keys[begin] == keys[end - 1]:
            continue
        shift = np.uint64(_highest_bit(keys[begin] ^ keys[end - 1]) // n_dims * n_dims)
        stop = end
        while stop > begin:  # the last child first: the first one is then popped first
            start = begin + np.searchsorted(keys[begin:stop], (keys[stop - 1] >> shift) << shift)
            stack[n_open] = start, stop, node
            n_open += 1
            stop = start
    return first[:n_nodes].copy(), last[:n_nodes].copy(), parents[:n_nodes].copy()


@compiled
def _highest_bit(number: int) -> int:
    bit = 0
    while number > np.uint64(1):
        number >>= np.uint64(1)
        bit += 1
    return bit


@compiled
def _weigh(columns: np.ndarray, charges: np.ndarray, ranges: Ranges) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `centers`, `totals` and `skip`, from the leaves up: parents stand before children, so the last is first.

    A cell without any charge has the middle of its box as its centre.
    """
    first, last, parents = ranges
    n_nodes, n_dims = len(first), len(columns)
    nodes = np.zeros((n_nodes, CACHE_LINE))  # what a walk asks of a cell is in one place
    centers, totals, skip = nodes[:, :n_dims], nodes[:, n_dims : n_dims + 2], np.arange(1, n_nodes + 1)
    low, high = np.full((n_nodes, n_dims), np.inf), np.full((n_nodes, n_dims), -np.inf)
    for node in range(n_nodes - 1, -1, -1):
        if skip[node] == node + 1:
            for i in range(first[node], last[node]):
                totals[node, CHARGE] += charges[i]
                for k in range(n_dims):
                    centers[node, k] += charges[i] * columns[k, i]
                    low[node, k] = min(low[node, k], columns[k, i])
                    high[node, k] = max(high[node, k], columns[k, i])
        parent, total = parents[node], totals[node, CHARGE]
        if parent >= 0:
            totals[parent, CHARGE] += total
            skip[parent] = max(skip[parent], skip[node])
        for k in range(n_dims):
            totals[node, SIZE] = max(totals[node, SIZE], high[node, k] - low[node, k])
            if parent >= 0:
                centers[parent, k] += centers[node, k]
                low[parent, k], high[parent, k] = min(low[parent, k], low[node, k]), max(high[parent, k], high[node, k])
            center = centers[node, k] / total if total != 0.0 else 0.5 * (low[node, k] + high[node, k])
            centers[node, k] = min(max(center, low[node, k]), high[node, k])
    return centers, totals, skip


@compiled
def _second_moments(
    columns: np.ndarray,
    charges: np.ndarray,
    ranges: Ranges,
    centers: np.ndarray,
    totals: np.ndarray,
    skip: np.ndarray,
) -> np.ndarray:
    first, last, parents = ranges
    n_dims = len(columns)
    moments, offset = np.zeros((len(first), n_dims * (n_dims + 1) // 2)), np.empty(n_dims)
    for node in range(len(first) - 1, -1, -1):
        if skip[node] == node + 1:
            for i in range(first[node], last[node]):
                for k in range(n_dims):
                    offset[k] = columns[k, i] - centers[node, k]
                _add_moments(moments, node, offset, charges[i])
        parent = parents[node]
        if parent >= 0:  # about the centre of the parent: a shift by a distance adds the charge times its square
            for k in range(n_dims):
                offset[k] = centers[node, k] - centers[parent, k]
            _add_moments(moments, parent, offset, totals[node, CHARGE])
            for entry in range(moments.shape[1]):
                moments[parent, entry] += moments[node, entry]
    return moments


@compiled
def _add_moments(moments: np.ndarray, node: int, offset: np.ndarray, charge: float) -> None:
    entry = 0
    for k in range(len(offset)):
        for l in range(k, len(offset)):
            moments[node, entry] += charge * offset[k] * offset[l]
            entry += 1
