"""The phases of a descent, from parameters that are resolved."""

from dataclasses import replace

import numpy as np

from scalemani.config.params import LayoutParams
from scalemani.config.params.defaults import PAIRS
from scalemani.config.stages import GIVEN_START
from scalemani.descents.growth import NEVER
from scalemani.descents.phases import Phase


def phases_of(asked: LayoutParams, n_points: float) -> list[Phase]:
    """Return the phases of a descent: exaggerated, then plain; or one for each strength of a homotopy."""
    plain = Phase(
        asked.direction,
        asked.max_iterations,
        length=step_length(asked, 1.0, n_points),
        momentum=asked.momentum or 0.0,
        pairs=asked.pairs or PAIRS,
        kappa=asked.kappa,
        converged=asked.converged or 0.0,
        window=asked.window or 1,
        tolerance=asked.tolerance,
        schedule=asked.schedule,
        coarsest=asked.coarsest,
        # Line searches find the size of a map themselves, and one that was given keeps its own.
        doubled_for=asked.doubled_for if asked.direction == "momentum" and asked.init != GIVEN_START else NEVER,
    )
    if asked.homotopy > 1:
        shares = np.geomspace(asked.least_strength, 1.0, asked.homotopy).tolist()
        return [replace(plain, strength=share) for share in shares]
    exaggeration = asked.exaggeration or 1.0
    iterations = min(asked.exaggerated_iterations or 0, asked.max_iterations)
    if iterations == 0 or exaggeration == 1:
        return [plain]
    early = replace(
        plain,
        most_iterations=iterations,
        exaggeration=exaggeration,
        length=step_length(asked, exaggeration, n_points),
        momentum=asked.exaggerated_momentum or 0.0,
        converged=0.0,
        doubled_for=NEVER,
    )
    left = asked.max_iterations - iterations
    return [early, replace(plain, most_iterations=left, scheduled=iterations)] if left > 0 else [early]


def step_length(asked: LayoutParams, exaggeration: float, n_points: float) -> float | None:
    """Return the fixed step, None for a line search; for momentum the learning rate, N / exaggeration where open.

    Source: Belkina et al., Automated optimized parameters for t-SNE, 2019.
    """
    if asked.learning_rate is None and asked.direction == "momentum":
        return n_points / exaggeration
    return asked.learning_rate
