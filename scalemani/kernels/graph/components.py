"""Connected components of a neighbour graph that is read block by block: union-find over streamed rows.

The root of a component is its smallest row, so labels depend neither on the order of blocks nor on their size.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.union_find import find_root, unite
from scalemani.kernels.machine.compile import compiled


class Components(NamedTuple):
    """`labels` (N,) int32, numbered by first row; `sizes` (C,) int64."""

    labels: np.ndarray
    sizes: np.ndarray


@compiled
def _join_rows(parents: np.ndarray, indices: np.ndarray, values: np.ndarray, start: int) -> None:
    for row in range(indices.shape[0]):
        for column in range(indices.shape[1]):
            if values[row, column] > 0:
                unite(parents, start + row, indices[row, column])


def join_neighbors(parents: np.ndarray, indices: np.ndarray, values: np.ndarray, start: int) -> None:
    """Add the edges of rows [start, start + n) to a union-find state, in place: it has a row for every point.

    Parameters
    ----------
    parents : (N,) int32 or int64, the state so far, from `separate_items`
    indices : (n, k) int, the neighbours of these rows
    values : (n, k) float; entries that are not positive are no edges
    start : number of the first row
    """
    _join_rows(parents, indices, values, start)


@compiled
def labels_of_roots(parents: np.ndarray) -> np.ndarray:
    """Return the number of the component of each row, in order of first rows; shortens the paths of `parents`."""
    labels = np.empty(parents.shape[0], np.int32)
    count = 0
    for row in range(parents.shape[0]):
        root = find_root(parents, row)
        if root == row:
            labels[row] = count
            count += 1
        else:
            labels[row] = labels[root]
    return labels


def components(parents: np.ndarray) -> Components:
    """Return the components of a finished union-find state (N,) int32 or int64, in order of their first rows.

    The state stays one of the same sets; its paths are shortened.
    """
    labels = labels_of_roots(parents)
    return Components(labels, np.bincount(labels).astype(np.int64))
