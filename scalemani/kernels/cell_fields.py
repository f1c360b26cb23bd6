"""The field of cells and points that a tree walk has collected, at a few targets, with vector instructions.

A cell with charge Q and second moments M about its centre of charge c has, with r = y - c and s = |r|^2,
S = Q K(s) + tr(M) K'(s) + 2 (r' M r) K''(s) up to its third moments: there is no first moment about c.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.compile import compiled, compiled_sums
from scalemani.kernels.pair_sums import SLOPE, STUDENT, moment, square_distances, weigh
from scalemani.kernels.vector_exp import exp_nonpositive

HELD = 256  # entries held before they are summed: with their distances they stay in the first-level cache


class Held(NamedTuple):
    """Up to HELD points, or cells: `columns` (d, HELD), `charges` (HELD,), `moments` (d (d + 1) / 2, HELD)."""

    columns: np.ndarray
    charges: np.ndarray
    moments: np.ndarray


@compiled
def empty_held(n_dims: int) -> Held:
    """Return room for HELD entries in d dimensions."""
    return Held(np.zeros((n_dims, HELD)), np.zeros(HELD), np.zeros((n_dims * (n_dims + 1) // 2, HELD)))


@compiled
def add_points(kind: int, held: Held, n_held: int, targets: np.ndarray, found: np.ndarray) -> int:
    """Add gradient and S of the first n_held points at the targets (g, d) to `found` (g, d + 1); return 0.

    What is returned is how many are held afterwards.
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
    """Add the field of the targets (g, d) with charges (g,) at each other: to itself, a point has no charge."""
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


@compiled
def add_cells(kind: int, held: Held, n_held: int, targets: np.ndarray, found: np.ndarray) -> int:
    """Add gradient and S of the first n_held cells at the targets, as `add_points` does; return 0."""
    n_dims = len(held.columns)
    squared, stretched, radial, bent = np.empty(HELD), np.empty(HELD), np.empty(HELD), np.empty(HELD)
    traces = np.zeros(HELD)
    for k in range(n_dims):
        traces += held.moments[k * n_dims - k * (k - 1) // 2]
    for i in range(len(targets)):
        square_distances(held.columns, targets[i], 0, n_held, squared)
        if n_dims == 2:
            _stretch_plane(held.columns, held.moments, targets[i], n_held, stretched)
        else:
            _stretch_space(held.columns, held.moments, targets[i], n_held, stretched)
        found[i, n_dims] += _weigh_cells(kind, held.charges[:n_held], traces, squared, stretched, radial, bent)
        if n_dims == 2:
            _add_gradient_plane(held.columns, held.moments, targets[i], n_held, radial, bent, found[i])
        else:
            _add_gradient_space(held.columns, held.moments, targets[i], n_held, radial, bent, found[i])
    return 0


@compiled_sums
def _weigh_cells(
    kind: int,
    charges: np.ndarray,
    traces: np.ndarray,
    squared: np.ndarray,
    stretched: np.ndarray,
    radial: np.ndarray,
    bent: np.ndarray,
) -> float:
    """Return the sum of S; grad S = sum of radial r + bent M r: radial = 2 Q K' + 2 tr K'' + 4 r'Mr K''', bent = 4 K''.

    For K = exp(-s) every derivative is +-K; for K = 1 / (1 + s) they are -K^2, 2 K^3 and -6 K^4.
    """
    total = 0.0
    if kind == STUDENT:
        for j in range(np.uint64(len(charges))):
            response = 1.0 / (1.0 + squared[j])
            square = response * response
            total += charges[j] * response - square * (traces[j] - 4.0 * response * stretched[j])
            bent[j] = 8.0 * square * response
            radial[j] = -2.0 * square * (charges[j] - response * (2.0 * traces[j] - 12.0 * response * stretched[j]))
    else:
        for j in range(np.uint64(len(charges))):
            response = exp_nonpositive(-squared[j])
            strength = response * (charges[j] - traces[j] + 2.0 * stretched[j])
            total += strength
            bent[j] = 4.0 * response
            radial[j] = -2.0 * strength
    return total


@compiled_sums
def _stretch_plane(
    columns: np.ndarray, moments: np.ndarray, target: np.ndarray, n_held: int, stretched: np.ndarray
) -> None:
    """Write r' M r."""
    a, b, y0, y1 = columns[0], columns[1], target[0], target[1]
    m00, m01, m11 = moments[0], moments[1], moments[2]
    for j in range(np.uint64(n_held)):
        u, v = y0 - a[j], y1 - b[j]
        stretched[j] = u * (m00[j] * u + 2.0 * m01[j] * v) + m11[j] * v * v


@compiled_sums
def _stretch_space(
    columns: np.ndarray, moments: np.ndarray, target: np.ndarray, n_held: int, stretched: np.ndarray
) -> None:
    a, b, c, y0, y1, y2 = columns[0], columns[1], columns[2], target[0], target[1], target[2]
    m00, m01, m02, m11, m12, m22 = moments[0], moments[1], moments[2], moments[3], moments[4], moments[5]
    for j in range(np.uint64(n_held)):
        u, v, w = y0 - a[j], y1 - b[j], y2 - c[j]
        stretched[j] = u * (m00[j] * u + 2.0 * (m01[j] * v + m02[j] * w))
        stretched[j] += v * (m11[j] * v + 2.0 * m12[j] * w) + m22[j] * w * w


@compiled_sums
def _add_gradient_plane(
    columns: np.ndarray,
    moments: np.ndarray,
    target: np.ndarray,
    n_held: int,
    radial: np.ndarray,
    bent: np.ndarray,
    found: np.ndarray,
) -> None:
    a, b, y0, y1 = columns[0], columns[1], target[0], target[1]
    m00, m01, m11 = moments[0], moments[1], moments[2]
    g0, g1 = 0.0, 0.0
    for j in range(np.uint64(n_held)):
        u, v = y0 - a[j], y1 - b[j]
        g0 += radial[j] * u + bent[j] * (m00[j] * u + m01[j] * v)
        g1 += radial[j] * v + bent[j] * (m01[j] * u + m11[j] * v)
    found[0] += g0
    found[1] += g1


@compiled_sums
def _add_gradient_space(
    columns: np.ndarray,
    moments: np.ndarray,
    target: np.ndarray,
    n_held: int,
    radial: np.ndarray,
    bent: np.ndarray,
    found: np.ndarray,
) -> None:
    a, b, c, y0, y1, y2 = columns[0], columns[1], columns[2], target[0], target[1], target[2]
    m00, m01, m02, m11, m12, m22 = moments[0], moments[1], moments[2], moments[3], moments[4], moments[5]
    g0, g1, g2 = 0.0, 0.0, 0.0
    for j in range(np.uint64(n_held)):
        u, v, w = y0 - a[j], y1 - b[j], y2 - c[j]
        g0 += radial[j] * u + bent[j] * (m00[j] * u + m01[j] * v + m02[j] * w)
        g1 += radial[j] * v + bent[j] * (m01[j] * u + m11[j] * v + m12[j] * w)
        g2 += radial[j] * w + bent[j] * (m02[j] * u + m12[j] * v + m22[j] * w)
    found[0] += g0
    found[1] += g1
    found[2] += g2
