"""The repulsive Hessian's blocks of one coordinate with itself, by sums over all pairs.

8 L^xx_ii has the weights c_nm (x_ni - x_mi)^2 with c_nm = K''(d^2) (u_n + u_m) / 2, where u is the strength for sums of
kernels, strength / sum S for the logarithm of one sum, strength / S_n for the sum of logarithms. Source: [PH] eqs.
(3.3) and (3.4) of the thesis, their positive parts. The work is of the order of N^2: for data small enough that a sum
over all pairs is worth its direction.
"""

from dataclasses import dataclass

import numpy as np

from scalemani.kernels.arrays.tiles import Mapper, row_panels, run
from scalemani.kernels.machine.compile import compiled_sums, inlined_sums, square_of
from scalemani.kernels.machine.vector_exp import exp_nonpositive
from scalemani.kernels.repulsion.exact import ExactSums
from scalemani.kernels.repulsion.pair_sums import GAUSSIAN, KERNELS, LEAST_SUM, STUDENT


@inlined_sums
def _derivatives(kernel: int, square: float) -> tuple[float, float]:
    """Return -K' and K'' at a squared distance."""
    if kernel == GAUSSIAN:
        value = exp_nonpositive(-square)
        return value, value
    if kernel == STUDENT:
        value = 1.0 / (1.0 + square)
        return value * value, 2.0 * value * value * value
    return (1.0 if square < 1.0 else 0.0), 0.0


@compiled_sums
def _products(
    positions: np.ndarray, weights: np.ndarray, kernel: int, first: int, vectors: np.ndarray, out: np.ndarray
) -> None:
    n_dims = positions.shape[1]
    for row in range(out.shape[0]):
        n = first + row
        for m in range(positions.shape[0]):
            square = 0.0
            for d in range(n_dims):
                square += square_of(positions[n, d] - positions[m, d])
            second = 4.0 * (weights[n] + weights[m]) * _derivatives(kernel, square)[1]
            for d in range(n_dims):
                difference = positions[n, d] - positions[m, d]
                out[row, d] += second * difference * difference * (vectors[n, d] - vectors[m, d])


@compiled_sums
def _diagonals(
    positions: np.ndarray, weights: np.ndarray, kernel: int, first: int, out: np.ndarray, degrees: np.ndarray
) -> None:
    n_dims = positions.shape[1]
    for row in range(out.shape[0]):
        n = first + row
        for m in range(positions.shape[0]):
            if m == n:
                continue
            square = 0.0
            for d in range(n_dims):
                square += square_of(positions[n, d] - positions[m, d])
            slope, second = _derivatives(kernel, square)
            degrees[row] += 2.0 * (weights[n] + weights[m]) * slope
            for d in range(n_dims):
                out[row, d] += 4.0 * (weights[n] + weights[m]) * second * square_of(positions[n, d] - positions[m, d])


@dataclass(frozen=True)
class PairCurvature:
    """Second derivatives of strength E- for one kernel and one way to combine its sums."""

    kernel: str
    combine: str
    strength: float
    over: Mapper = map

    def weights(self, positions: np.ndarray) -> np.ndarray:
        """Return u (N,) at positions (N, d) float64."""
        if self.combine == "sum":
            return np.full(len(positions), self.strength)
        sums, _ = ExactSums(self.kernel, self.over).field(positions)
        if self.combine == "log-sum":
            return np.full(len(positions), self.strength / max(float(sums.sum()), LEAST_SUM))
        return self.strength / np.maximum(sums, LEAST_SUM)

    def product(self, positions: np.ndarray, weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Return 8 L^xx_ii times the i-th column of vectors (N, d), for each i."""
        out, kernel, parts = np.zeros_like(positions), KERNELS[self.kernel], row_panels(len(positions))
        run(self.over(lambda part: _products(positions, weights, kernel, part.start, vectors, out[part]), parts))
        return out

    def diagonals(self, positions: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonals of 8 L^xx_ii, (N, d), and that of strength E-'s part of 4 L, (N,): taken off 4 L+."""
        out, degrees = np.zeros_like(positions), np.zeros(len(positions))
        kernel, parts = KERNELS[self.kernel], row_panels(len(positions))
        run(self.over(lambda part: _diagonals(positions, weights, kernel, part.start, out[part], degrees[part]), parts))
        return out, degrees
