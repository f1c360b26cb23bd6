"""The phases of a method, from what was asked for and the method's defaults."""

from dataclasses import replace

import numpy as np

from scalemani.embeddings.phases import Phase
from scalemani.objectives import objective_of
from scalemani.params import LayoutParams

LEAST_STRENGTH = 1e-6  # of the strength asked for, where a homotopy starts: 1e-4 to 1e2 in [PH] 3.4
HOMOTOPY_CONVERGED = 1e-6  # relative fall in one iteration at which [PH] 3.4 goes on to the next strength
# Of 70,000 MNIST digits by t-SNE: a momentum of 0.9 goes as far in 400 iterations as 0.8 does in 750.
EARLY_MOMENTUM, LATE_MOMENTUM = 0.8, 0.9
WINDOW = {"momentum": 50}
CONVERGED = {"momentum": 1e-2}


def strength_of(asked: LayoutParams) -> float:
    """Return the weight of the repulsion."""
    if asked.strength is not None:
        return asked.strength
    return objective_of(str(asked.objective)).strength


def direction_of(asked: LayoutParams) -> str:
    """Return the search direction: as asked for, or the objective's own."""
    if asked.direction != "auto":
        return asked.direction
    return objective_of(str(asked.objective)).direction


def start_deviation(asked: LayoutParams) -> float:
    """Return the standard deviation that the start is scaled to."""
    if asked.start_deviation is not None:
        return asked.start_deviation
    return 1e-2 if direction_of(asked) == "momentum" else 1.0


def phases_of(asked: LayoutParams, n_points: int) -> list[Phase]:
    """Return the phases of a descent: exaggerated, then plain; or one for each strength of a homotopy."""
    direction = direction_of(asked)
    momentum = direction == "momentum"
    window = asked.window or WINDOW.get(direction, 10)
    converged = CONVERGED.get(direction, 1e-4) if asked.converged is None else asked.converged
    plain = Phase(
        direction,
        asked.max_iterations,
        length=learning_rate(asked, 1.0, n_points) if momentum else asked.learning_rate,
        momentum=LATE_MOMENTUM if asked.momentum is None else asked.momentum,
        pairs=asked.pairs,
        kappa=asked.kappa,
        converged=converged,
        window=window,
        tolerance=asked.tolerance,
        schedule=asked.schedule,
    )
    if asked.homotopy > 1:
        shares = np.geomspace(LEAST_STRENGTH, 1.0, asked.homotopy).tolist()
        converged = HOMOTOPY_CONVERGED if asked.converged is None else asked.converged
        return [replace(plain, strength=share, converged=converged, window=asked.window or 1) for share in shares]
    exaggeration, iterations = exaggeration_of(asked, momentum)
    iterations = min(iterations, asked.max_iterations)
    if iterations == 0 or exaggeration == 1:
        return [plain]
    length = learning_rate(asked, exaggeration, n_points) if momentum else asked.learning_rate
    early = replace(
        plain,
        most_iterations=iterations,
        exaggeration=exaggeration,
        length=length,
        momentum=EARLY_MOMENTUM if asked.momentum is None else asked.momentum,
        converged=0.0,
    )
    left = asked.max_iterations - iterations
    return [early, replace(plain, most_iterations=left, schedule=0)] if left > 0 else [early]


def exaggeration_of(asked: LayoutParams, momentum: bool) -> tuple[float, int]:
    """Return how much stronger the attraction is at first, and for how many iterations."""
    objective = objective_of(str(asked.objective))
    usual = (objective.exaggeration, objective.exaggerated_iterations) if momentum else (1.0, 0)
    exaggeration, iterations = asked.exaggeration, asked.exaggerated_iterations
    return usual[0] if exaggeration is None else exaggeration, usual[1] if iterations is None else iterations


def learning_rate(asked: LayoutParams, exaggeration: float, n_points: int) -> float:
    """Return the learning rate of momentum: as asked, or N / exaggeration (Belkina et al. 2019)."""
    return asked.learning_rate if asked.learning_rate is not None else n_points / exaggeration
