"""The phases of a descent, from parameters that are resolved."""

from dataclasses import replace

import numpy as np

from scalemani.config.params import LayoutParams
from scalemani.config.params.parameters import PAIRS
from scalemani.config.stages import GIVEN_START
from scalemani.descents.growth import NEVER
from scalemani.descents.phases import Phase


def phases_of(params: LayoutParams, n_points: float) -> list[Phase]:
    """Return the phases of a descent: exaggerated, then plain; or one for each strength of a homotopy."""
    usual = Phase(
        params.direction,
        params.max_iterations,
        length=step_length(params, 1.0, n_points),
        momentum=params.momentum or 0.0,
        pairs=params.pairs or PAIRS,
        kappa=params.kappa,
        converged=params.converged or 0.0,
        window=params.window or 1,
        tolerance=params.tolerance,
        schedule=params.schedule,
        coarsest=params.coarsest,
        # Line searches find the size of a map themselves, and one that was given keeps its own.
        doubled_for=params.doubled_for if params.direction == "momentum" and params.init != GIVEN_START else NEVER,
    )
    if params.homotopy > 1:
        shares = np.geomspace(params.least_strength, 1.0, params.homotopy).tolist()
        return [replace(usual, strength=share) for share in shares]
    exaggeration = params.exaggeration or 1.0
    iterations = min(params.exaggerated_iterations or 0, params.max_iterations)
    if iterations == 0 or exaggeration == 1:
        return [usual]
    early = replace(
        usual,
        most_iterations=iterations,
        exaggeration=exaggeration,
        length=step_length(params, exaggeration, n_points),
        momentum=params.exaggerated_momentum or 0.0,
        converged=0.0,
        doubled_for=NEVER,
    )
    remaining = params.max_iterations - iterations
    return [early, replace(usual, most_iterations=remaining, scheduled=iterations)] if remaining > 0 else [early]


def step_length(params: LayoutParams, exaggeration: float, n_points: float) -> float | None:
    """Return the fixed step, None for a line search; for momentum the learning rate, N / exaggeration where open.

    Source: Belkina et al., Automated optimized parameters for t-SNE, 2019.
    """
    if params.learning_rate is None and params.direction == "momentum":
        return n_points / exaggeration
    return params.learning_rate
