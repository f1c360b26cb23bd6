"""One step of gradient descent with momentum and gains, in one pass over the coordinates.

The rule of Jacobs (1988) as t-SNE has used it since van der Maaten and Hinton (2008): a coordinate's gain grows by 0.2
while its gradient keeps pushing the way it moves, and shrinks by a fifth where it pushes back.
"""

import numpy as np

from scalemani.kernels.attraction import row_panels
from scalemani.kernels.compile import compiled
from scalemani.kernels.tall import Mapper

GAIN_STEP, GAIN_FACTOR, LEAST_GAIN = 0.2, 0.8, 0.01


@compiled
def _update(
    gradient: np.ndarray, velocity: np.ndarray, gains: np.ndarray, rate: float, momentum: float, longest: float
) -> None:
    for n in range(gradient.shape[0]):
        square = 0.0
        for d in range(gradient.shape[1]):
            if (velocity[n, d] > 0.0) != (gradient[n, d] > 0.0):
                gains[n, d] += GAIN_STEP
            else:
                gains[n, d] = max(gains[n, d] * GAIN_FACTOR, LEAST_GAIN)
            velocity[n, d] = momentum * velocity[n, d] - rate * gains[n, d] * gradient[n, d]
            square += velocity[n, d] * velocity[n, d]
        if square > longest * longest:
            shorter = longest / np.sqrt(square)
            for d in range(gradient.shape[1]):
                velocity[n, d] *= shorter


def momentum_update(
    gradient: np.ndarray,
    velocity: np.ndarray,
    gains: np.ndarray,
    rate: float,
    momentum: float,
    longest: float,
    over: Mapper = map,
) -> None:
    """Update velocity and gains (N, d) in place; a point whose step would be longer than `longest` is held to it."""

    def panel(part: slice) -> None:
        _update(gradient[part], velocity[part], gains[part], rate, momentum, longest)

    for _ in over(panel, row_panels(len(gradient))):
        pass
