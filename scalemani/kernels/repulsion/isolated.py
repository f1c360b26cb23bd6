"""Sums of a kernel at a few points, each left out of its own sum: exact where approximate sums say next to nothing.

An approximation errs by a share of the sums as they are in the middle of a map; at a point on its own that can be more
than the sum itself, and objectives of one distribution a point divide by it.
"""

import numpy as np

from scalemani.kernels.arrays.tiles import Mapper, run, slices
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.vector_exp import exp_nonpositive

ROWS_AT_ONCE = 64


@compiled
def _sums(positions: np.ndarray, rows: np.ndarray, gaussian: bool, sums: np.ndarray, gradients: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        n = rows[i]
        sums[i], gradients[i] = 0.0, 0.0
        for m in range(positions.shape[0]):
            if m == n:
                continue
            square = 0.0
            for d in range(positions.shape[1]):
                square += (positions[n, d] - positions[m, d]) ** 2
            value = exp_nonpositive(-square) if gaussian else 1.0 / (1.0 + square)
            slope = -2.0 * value if gaussian else -2.0 * value * value
            sums[i] += value
            for d in range(positions.shape[1]):
                gradients[i, d] += slope * (positions[n, d] - positions[m, d])


def isolated_sums(
    positions: np.ndarray, rows: np.ndarray, kernel: str, over: Mapper = map
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums (m,) of a "gaussian" or "student" kernel over positions (N, d), and gradients, at rows (m,)."""
    sums, gradients = np.empty(len(rows)), np.empty((len(rows), positions.shape[1]))

    def panel(part: slice) -> None:
        _sums(positions, rows[part], kernel == "gaussian", sums[part], gradients[part])

    run(over(panel, slices(len(rows), ROWS_AT_ONCE)))
    return sums, gradients
