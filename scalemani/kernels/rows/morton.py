"""Points in Morton order: a curve through the cells of all levels at once, so that every cell is a range of rows.

References
----------
G. M. Morton. A computer oriented geodetic data base and a new technique in file sequencing. IBM, 1966.
"""

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
