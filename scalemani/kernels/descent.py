"""Kernels of search directions: the repulsive Hessian by sums over all pairs, and one step of momentum with gains.

8 L^xx_ii, the blocks of one coordinate with itself, has the weights c_nm (x_ni - x_mi)^2 with
c_nm = K''(d^2) (u_n + u_m) / 2, where u is the strength for sums of kernels, strength / sum S for the logarithm of one
sum, strength / S_n for the sum of logarithms. Source: [PH] eqs. (3.3) and (3.4) of the thesis, their positive parts.
The work is of the order of N^2: for data small enough that a sum over all pairs is worth its direction.

Momentum is the rule of Jacobs (1988) as t-SNE has used it since van der Maaten and Hinton (2008): a coordinate's gain
grows by 0.2 while its gradient keeps pushing the way it moves, and shrinks by a fifth where it pushes back.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.tiles import Mapper, light_panels, row_panels, run
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.machine.compile import compiled, compiled_sums, square_of
from scalemani.kernels.repulsion.pair_sums import LEAST_SUM, ExactSums, derivatives, kernel_number

GAIN_STEP, GAIN_FACTOR, LEAST_GAIN = 0.2, 0.8, 0.01


@compiled_sums
def _products(
    positions: np.ndarray, weights: np.ndarray, kernel: float, first: int, vectors: np.ndarray, out: np.ndarray
) -> None:
    n_dims = positions.shape[1]
    for row in range(out.shape[0]):
        n = first + row
        for m in range(positions.shape[0]):
            square = 0.0
            for d in range(n_dims):
                square += square_of(positions[n, d] - positions[m, d])
            second = 4.0 * (weights[n] + weights[m]) * derivatives(kernel, square)[1]
            for d in range(n_dims):
                difference = positions[n, d] - positions[m, d]
                out[row, d] += second * difference * difference * (vectors[n, d] - vectors[m, d])


@compiled_sums
def _diagonals(
    positions: np.ndarray, weights: np.ndarray, kernel: float, first: int, out: np.ndarray, degrees: np.ndarray
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
            slope, second = derivatives(kernel, square)
            degrees[row] += 2.0 * (weights[n] + weights[m]) * slope
            for d in range(n_dims):
                out[row, d] += 4.0 * (weights[n] + weights[m]) * second * square_of(positions[n, d] - positions[m, d])


@dataclass(frozen=True)
class PairCurvature:
    """Second derivatives of strength E- for one kernel and one way to combine its sums."""

    kernel: str | float
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
        out, kernel, parts = (
            np.zeros_like(positions),
            kernel_number(self.kernel, of_any_dof=True),
            row_panels(len(positions)),
        )
        run(self.over(lambda part: _products(positions, weights, kernel, part.start, vectors, out[part]), parts))
        return out

    def diagonals(self, positions: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonals of 8 L^xx_ii, (N, d), and that of strength E-'s part of 4 L, (N,): taken off 4 L+."""
        out, degrees = np.zeros_like(positions), np.zeros(len(positions))
        kernel, parts = kernel_number(self.kernel, of_any_dof=True), row_panels(len(positions))
        run(self.over(lambda part: _diagonals(positions, weights, kernel, part.start, out[part], degrees[part]), parts))
        return out, degrees


@compiled
def _update(
    gradient: np.ndarray,
    before: tuple[np.ndarray, np.ndarray],
    after: tuple[np.ndarray, np.ndarray],
    rate: float,
    momentum: float,
    longest: float,
) -> None:
    velocity, gains = before
    new_velocity, new_gains = after
    for n in range(gradient.shape[0]):
        square = 0.0
        for d in range(gradient.shape[1]):
            if (velocity[n, d] > 0.0) != (gradient[n, d] > 0.0):
                gain = gains[n, d] + GAIN_STEP
            else:
                gain = max(gains[n, d] * GAIN_FACTOR, LEAST_GAIN)
            step = momentum * velocity[n, d] - rate * gain * gradient[n, d]
            new_gains[n, d], new_velocity[n, d] = gain, step
            square += step * step
        if square > longest * longest:
            shorter = longest / np.sqrt(square)
            for d in range(gradient.shape[1]):
                new_velocity[n, d] *= shorter


class Motion(NamedTuple):
    """Velocities and gains of all coordinates, (N, d) each."""

    velocity: np.ndarray
    gains: np.ndarray


def momentum_step(
    gradient: np.ndarray,
    before: Motion,
    rate: float,
    momentum: float,
    longest: float,
    workspace: Workspace = IN_MEMORY,
) -> Motion:
    """Return the motion after one step; a point whose step would be longer than `longest` is held to it.

    The gradient is (N, d) float64; the motion `before` is left as it is; a share `momentum` of its velocity stays.
    """
    after = Motion(*(workspace.empty(gradient.shape, gradient.dtype) for _ in Motion._fields))

    def panel(part: slice) -> None:
        changed = (after.velocity[part], after.gains[part])
        _update(gradient[part], (before.velocity[part], before.gains[part]), changed, rate, momentum, longest)

    run(workspace.over(panel, light_panels(len(gradient))))
    return after
