"""The field of points that were gathered from here and there, at a few targets, with vector instructions."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.repulsion.exact import SLOPE, moment, square_distances, weigh

HELD = 256  # points held before they are summed: with their distances they stay in the first-level cache


class Held(NamedTuple):
    """Up to HELD points: `columns` (d, HELD) and `charges` (HELD,)."""

    columns: np.ndarray
    charges: np.ndarray


@compiled
def empty_held(n_dims: int) -> Held:
    """Return room for HELD points in d dimensions."""
    return Held(np.zeros((n_dims, HELD)), np.zeros(HELD))


@compiled
def add_points(kind: int, held: Held, n_held: int, targets: np.ndarray, found: np.ndarray) -> int:
    """Add the field of the points that are held at some targets, and hold none.

    Parameters
    ----------
    kind : GAUSSIAN, STUDENT or EPANECHNIKOV
    held, n_held : the points, of which the first `n_held` count
    targets : (g, d) float64
    found : (g, d + 1) float64; gradient and S are added to it

    Returns
    -------
    0, how many points are held afterwards
    """
    n_dims = len(held.columns)
    squared, slopes = np.empty(HELD), np.empty(HELD)
    for i in range(len(targets)):
        square_distances(held.columns, targets[i], 0, n_held, squared)
        found[i, n_dims] += weigh(kind, squared, held.charges[:n_held], slopes)
        for k in range(n_dims):
            found[i, k] += SLOPE * moment(held.columns[k, :n_held], targets[i, k], slopes)
    return 0


@compiled
def add_own(kind: int, held: Held, targets: np.ndarray, charges: np.ndarray, found: np.ndarray) -> None:
    """Add the field of targets at each other: to itself, a point has no charge.

    Parameters
    ----------
    kind : GAUSSIAN, STUDENT or EPANECHNIKOV
    held : room for points, overwritten
    targets : (g, d) float64
    charges : (g,) float64
    found : (g, d + 1) float64; gradient and S are added to it
    """
    for first in range(0, len(targets), HELD):
        n_held = min(HELD, len(targets) - first)
        for j in range(n_held):
            for k in range(targets.shape[1]):
                held.columns[k, j] = targets[first + j, k]
            held.charges[j] = charges[first + j]
        for i in range(len(targets)):
            own = i - first if first <= i < first + n_held else n_held
            if own < n_held:
                held.charges[own] = 0.0
            add_points(kind, held, n_held, targets[i : i + 1], found[i : i + 1])
            if own < n_held:
                held.charges[own] = charges[i]
