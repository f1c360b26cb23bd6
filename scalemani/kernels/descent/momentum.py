"""One step of gradient descent with momentum and gains, in one pass over the coordinates.

The rule of Jacobs (1988) as t-SNE has used it since van der Maaten and Hinton (2008): a coordinate's gain grows by 0.2
while its gradient keeps pushing the way it moves, and shrinks by a fifth where it pushes back.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.tiles import light_panels, run
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.machine.compile import compiled

GAIN_STEP, GAIN_FACTOR, LEAST_GAIN = 0.2, 0.8, 0.01


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
        own = (after.velocity[part], after.gains[part])
        _update(gradient[part], (before.velocity[part], before.gains[part]), own, rate, momentum, longest)

    run(workspace.over(panel, light_panels(len(gradient))))
    return after
