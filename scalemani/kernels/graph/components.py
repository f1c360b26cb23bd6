"""Connected components of a neighbour graph that is read block by block: union-find over streamed rows.

The root of a component is its smallest row, so labels depend neither on the order of blocks nor on their size.

An edge joins its ends where its entry in D^-1/2 A D^-1/2, A = P + P^T, is not below the rounding of float32, in which
affinities are stored. What joins two parts of a graph by smaller entries alone is zero to rounding in the eigenproblem:
both parts have an eigenvalue of zero, and the eigenvectors are one basis of many.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.union_find import find_root, unite
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.machine.compile import compiled

LEAST_ENTRY = float(np.finfo(np.float32).eps)  # of the normalised matrix, that joins: the rounding of a stored affinity


class Components(NamedTuple):
    """`labels` (N,) int32, numbered by first row; `sizes` (C,) int64."""

    labels: np.ndarray
    sizes: np.ndarray


@compiled
def add_degrees(degrees: np.ndarray, indices: np.ndarray, values: np.ndarray, start: int) -> None:
    """Add the edges of rows [start, start + n) to the degrees of P + P^T, (N,) float64, in place.

    Rows are those of `join_neighbors`. Sums follow their order: blocks that are added in order give the same bits,
    whatever their size.
    """
    for row in range(indices.shape[0]):
        for column in range(indices.shape[1]):
            degrees[start + row] += values[row, column]
            degrees[indices[row, column]] += values[row, column]


@compiled
def join_neighbors(
    parents: np.ndarray, indices: np.ndarray, values: np.ndarray, start: int, roots: np.ndarray | None = None
) -> None:
    """Add the edges of rows [start, start + n) to a union-find state, in place: it has a row for every point.

    Parameters
    ----------
    parents : (N,) int32 or int64, the state so far, from `separate_items`
    indices : (n, k) int, the neighbours of these rows
    values : (n, k) float; entries that are not positive are no edges
    roots : (N,) float64, the square roots of the degrees of `add_degrees`: edges below `LEAST_ENTRY` times those of
        both ends join nothing. None: every edge joins
    """
    for row in range(indices.shape[0]):
        for column in range(indices.shape[1]):
            other, value = indices[row, column], values[row, column]
            least = 0.0
            if roots is not None:
                least = LEAST_ENTRY * roots[start + row] * roots[other]
            if value > 0 and value >= least:
                unite(parents, start + row, other)


@compiled
def _number_roots(parents: np.ndarray, labels: np.ndarray) -> None:
    count = 0
    for row in range(parents.shape[0]):
        root = find_root(parents, row)
        if root == row:
            labels[row] = count
            count += 1
        else:
            labels[row] = labels[root]


def labels_of_roots(parents: np.ndarray, empty: Empty = np.empty) -> np.ndarray:
    """Return the number of the component of each row, in order of first rows; shortens the paths of `parents`."""
    labels = empty(parents.shape, np.int32)
    _number_roots(parents, labels)
    return labels


@compiled
def _count_rows(labels: np.ndarray, counts: np.ndarray) -> None:
    for row in range(labels.shape[0]):
        counts[labels[row]] += 1


def sizes_of(labels: np.ndarray) -> np.ndarray:
    """Return how many rows each component has, (C,) int64, without a copy of the labels (N,) int."""
    counts = np.zeros(int(labels.max(initial=-1)) + 1, np.int64)
    _count_rows(labels, counts)
    return counts


def components(parents: np.ndarray, empty: Empty = np.empty) -> Components:
    """Return the components of a finished union-find state (N,) int32 or int64, in order of their first rows.

    The state stays one of the same sets; its paths are shortened.
    """
    labels = labels_of_roots(parents, empty)
    return Components(labels, sizes_of(labels))
