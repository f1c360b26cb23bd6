"""Coordinates for points that have none, from their neighbours in a graph that have some."""

import numpy as np

from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.machine.compile import compiled


@compiled
def _neighbor_means(
    rows: Rows,
    positions: np.ndarray,
    known: np.ndarray,
    places: np.ndarray,
    means: np.ndarray,
) -> None:
    indptr, indices, values = rows
    for at in range(places.shape[0]):
        row, total = places[at], 0.0
        means[at] = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            neighbor = indices[entry]
            if known[neighbor]:
                total += values[entry]
                for column in range(positions.shape[1]):
                    means[at, column] += values[entry] * positions[neighbor, column]
        for column in range(positions.shape[1]):
            means[at, column] = means[at, column] / total if total > 0.0 else np.nan


def spread_to_neighbors(rows: AffinityRows, positions: np.ndarray, numbers: np.ndarray | None = None) -> np.ndarray:
    """Fill rows of NaN with the affinity-weighted mean of their neighbours that have a position; return their numbers.

    Points next to those with a position come first, then the points next to these. Points that no path leads to are put
    in the middle of those that had a position.

    Parameters
    ----------
    rows : rows (n, N) of W
    positions : (N, d) float64, filled in place; NaN in all columns of a row without a position
    numbers : (n,) int64, ascending, the numbers of these rows, all that lack a position among them; None: all N
    """
    known = ~np.isnan(positions[:, 0])
    middle, filled = positions[known].mean(axis=0), np.flatnonzero(~known)
    waiting = filled
    while len(waiting):
        means = np.empty((len(waiting), positions.shape[1]))
        places = waiting if numbers is None else np.searchsorted(numbers, waiting)
        _neighbor_means(tuple(rows), positions, known, places, means)
        reached = ~np.isnan(means[:, 0])
        if not reached.any():
            positions[waiting] = middle
            break
        positions[waiting[reached]] = means[reached]
        known[waiting[reached]] = True
        waiting = waiting[~reached]
    return filled
