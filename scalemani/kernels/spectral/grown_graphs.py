"""Coarse graphs to which points are appended: they join existing aggregates, and no edge is summed again.

A point that joins an aggregate weighs there, and what it weighs more is counted as weight inside of the aggregate: on
the diagonal of the coarse graphs, whose other entries stay. Their Laplacian D - W is then that of the graph before, and
normalised by the degrees of the one that there is. That is what they precondition, up to the edges of the points that
were added.
"""

from collections.abc import Sequence

import numpy as np

from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.spectral.coarsening import MOST_MEMBERS, Level

CROWDED = 2 * MOST_MEMBERS  # members of an aggregate that a node stands for poorly


@compiled
def _strongest_labels(
    rows: Rows,
    inverse_roots: np.ndarray,
    labels: np.ndarray,
    waiting: np.ndarray,
    joined: np.ndarray,
) -> None:
    indptr, indices, values = rows
    for at in range(waiting.size):
        strongest = 0.0
        joined[at] = -1
        for entry in range(indptr[waiting[at]], indptr[waiting[at] + 1]):
            other = indices[entry]
            strength = values[entry] * inverse_roots[other]
            if labels[other] >= 0 and strength > strongest:
                strongest, joined[at] = strength, labels[other]


def join_strongest(rows: AffinityRows, numbers: np.ndarray, inverse_roots: np.ndarray, labels: np.ndarray) -> bool:
    """Let points join the aggregate of their strongest neighbour that has one; return whether all have joined one.

    Points next to those with an aggregate come first, then the points next to these.

    Parameters
    ----------
    rows, numbers : rows (n, N) of W, and their numbers (n,) int64.
    inverse_roots : (N,) float64, degrees to the power -1/2.
    labels : (N,) int32, the aggregate of each point, -1 for none; written.
    """
    waiting = np.arange(len(numbers))
    while len(waiting):
        joined = np.empty(len(waiting), labels.dtype)
        _strongest_labels(tuple(rows), inverse_roots, labels, waiting, joined)
        labels[numbers[waiting]] = joined
        if (joined < 0).all():
            return False
        waiting = waiting[joined < 0]
    return True


def crowded_share(labels: np.ndarray, n_nodes: int) -> float:
    """Return the share of points (N,) that are in an aggregate of more than CROWDED."""
    sizes = np.bincount(labels, minlength=n_nodes)
    return float(sizes[sizes > CROWDED].sum() / len(labels))


@compiled
def _count_loops(indptr: np.ndarray, indices: np.ndarray) -> int:
    count = 0
    for row in range(indptr.size - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            count += indices[entry] == row
    return count


@compiled
def _add_loops(rows: Rows, added: np.ndarray, out: Rows) -> None:
    indptr, indices, values = rows
    out_indptr, out_indices, out_values = out
    written = 0
    out_indptr[0] = 0
    for row in range(added.size):
        missing = True
        for entry in range(indptr[row], indptr[row + 1]):
            out_indices[written], out_values[written] = indices[entry], values[entry]
            if indices[entry] == row:
                out_values[written] = values[entry] + added[row]
                missing = False
            written += 1
        if missing:
            out_indices[written], out_values[written] = row, added[row]
            written += 1
        out_indptr[row + 1] = written


def with_degrees(levels: Sequence[Level], degrees: np.ndarray, workspace: Workspace = IN_MEMORY) -> list[Level]:
    """Return coarse graphs, the finest first, whose first has other degrees (n,): what differs is on the diagonals."""
    changed, added = [], degrees - levels[0].degrees
    for level in levels:
        indptr, indices, values = level.rows
        n_nodes = len(level.degrees)
        n_entries = len(indices) + n_nodes - _count_loops(indptr, indices)
        rows = tuple(
            workspace.empty((count,), part.dtype)
            for count, part in zip((n_nodes + 1, n_entries, n_entries), level.rows, strict=True)
        )
        _add_loops((indptr, indices, values), added, rows)
        changed.append(Level(rows, workspace.as_large(level.degrees + added), level.labels))
        if len(level.labels):
            added = np.bincount(level.labels, weights=added)
    return changed
