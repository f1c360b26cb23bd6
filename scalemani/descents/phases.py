"""What a descent does in which order: phases of one direction and one weight of the two halves of the objective.

A map is doubled where that alone lowers the objective substantially. Attraction, exaggerated, contracts a map to a
tenth of its width. Its parts then push each other away over hundreds of iterations, the longer the more points there
are, since far ones hardly push. The objective of a larger map can be evaluated at once.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from scalemani.config.methods import DescentExtension, extensions
from scalemani.config.params import LayoutParams, ResolvedLayout
from scalemani.config.params.layout import FIRST_DOUBLING
from scalemani.config.params.parameters import PAIRS
from scalemani.config.stages import INPUT_START
from scalemani.descents.descent import Backtracking, FixedStep, LineSearch, State, step
from scalemani.descents.directions import (
    Direction,
    by_diagonal,
    conjugate_direction,
    limited_memory,
    of_copies,
    preconditioned,
    shifted_laplacian,
    spectral_minus,
    spectral_operator,
    with_momentum,
)
from scalemani.descents.force_errors import ADAPT_EVERY, adapt_tolerance
from scalemani.descents.parts import DescentPart
from scalemani.descents.problem import Problem
from scalemani.descents.repulsion import largest_radius
from scalemani.errors import ConfigError
from scalemani.kernels.arrays.coordinates import moved
from scalemani.kernels.descent import PairCurvature
from scalemani.kernels.graph.attraction import without_loops
from scalemani.kernels.repulsion.pair_sums import PairSums

NEVER = 1.0  # a share of the objective that doubling a map does not take away
# Iterations of a phase from look to look: those at which the error of forces is measured, since a map that was doubled
# needs finer sums.
LOOK_EVERY = ADAPT_EVERY
# Of the error of forces, within five iterations: the parts of a map that was doubled draw together again. Of 70,000 and
# of a million digits it grew to 1.2 and 1.45 times as much.
ERROR_GROWTH = 1.5

OF_PAIRS = ("diagonal-hessian", "spectral-minus")  # directions that sum second derivatives over pairs of points


def may_double(state: State) -> bool:
    """Return whether a map may be doubled after so many iterations of its phase."""
    return state.phase_iteration >= FIRST_DOUBLING and state.phase_iteration % LOOK_EVERY == 0


def doubled_if_lower(problem: Problem, sums: PairSums, state: State, least_fall: float) -> State:
    """Return the state with its map twice as large, where the objective falls by a share `least_fall`; else as it is.

    Where a window of the descent ends here, the next one starts from the value of the larger map. Velocities stay.
    """
    larger, reach = moved(state.positions, 1.0, state.positions, problem.workspace)
    if reach > largest_radius(problem.n_copies, larger.shape[1]):
        return state
    value = state.value if np.isfinite(state.value) else problem.value(state.positions, sums)
    larger_value = problem.value(larger, sums)
    if not value - larger_value >= least_fall * abs(value):
        return state
    reference = larger_value if state.reference == value else state.reference
    return replace(state, positions=larger, value=larger_value, reference=reference, gradient=None)


@dataclass(frozen=True)
class Phase:
    """A part of a descent.

    It ends after `most_iterations`, or when the objective has fallen by less than a share `converged` over the last
    `window` iterations (0: never). `length` is the fixed step, or for "momentum" the learning rate; None backtracks.
    The first `schedule` iterations, of which phases before have made `scheduled`, tighten the error of the repulsion
    from `coarsest` to `tolerance`. The map is doubled where the objective falls by a share `doubled_for` by that alone.
    Directions that methods add read `params`.
    """

    direction: str
    most_iterations: int
    exaggeration: float = 1.0
    strength: float = 1.0
    length: float | None = None
    momentum: float = 0.8
    pairs: int = PAIRS
    kappa: int = 7
    converged: float = 0.0
    window: int = 10
    tolerance: float = 1e-3
    schedule: int = 0
    scheduled: int = 0
    coarsest: float = 0.1
    doubled_for: float = NEVER
    params: LayoutParams = field(default_factory=LayoutParams)

    def tolerance_at(self, iteration: int) -> float:
        """Return the error allowed for the repulsion in an iteration of the phase."""
        iterations_before = self.scheduled + iteration
        if iterations_before >= self.schedule:
            return self.tolerance
        return float(self.coarsest * (self.tolerance / self.coarsest) ** (iterations_before / self.schedule))


def line_search_of(phase: Phase) -> LineSearch:
    """Return how far a phase's steps go."""
    if phase.direction == "momentum":
        return FixedStep(1.0)
    if phase.length is not None:
        return FixedStep(phase.length)
    return Backtracking(np.inf if phase.direction == "conjugate-gradients" else 1.0)


def direction_of(phase: Phase, problem: Problem) -> Direction:
    """Return the direction of a phase, with what it prepares once.

    Gradients are divided by masses where no curvature does that: copies then move as they would one by one.
    """
    name, over, factor = phase.direction, problem.workspace.over, problem.scale * problem.exaggeration
    if problem.masses is not None and name in OF_PAIRS:
        raise ConfigError(f"direction {name!r} knows no weights: take another")
    if name == "momentum":
        if phase.length is None:
            raise ConfigError("direction 'momentum' takes a learning rate, got none: it does not search along a line")
        momentum = functools.partial(
            with_momentum, rate=phase.length, momentum=phase.momentum, workspace=problem.workspace
        )
        return of_copies(momentum, problem.masses)
    added = [one for one in extensions(DescentExtension).values() if name in one.directions]
    if added:
        part: DescentPart = added[0].load()()
        return part.direction(phase, problem)
    if name == "gradient-descent":
        return of_copies(preconditioned(np.copy), problem.masses)
    if name == "conjugate-gradients":
        return conjugate_direction
    rows = problem.rows if problem.masses is None else without_loops(problem.rows)
    if name == "spectral":
        return preconditioned(spectral_operator(rows, phase.kappa, factor, over))
    with_pairs = functools.partial(limited_memory, n_pairs=phase.pairs)
    if name == "spectral+l-bfgs":
        return functools.partial(with_pairs, apply=spectral_operator(rows, phase.kappa, factor, over))
    kappa = phase.kappa if name == "spectral-minus" else problem.rows.n_points
    laplacian = shifted_laplacian(rows, kappa, factor, over)
    if name == "l-bfgs":
        return functools.partial(with_pairs, scale=1 / float(laplacian.diagonal.mean()))
    if name == "fixed-point":
        return preconditioned(lambda gradient: gradient / laplacian.diagonal[:, np.newaxis])
    curvature = PairCurvature(problem.objective.kernel, problem.objective.combine, problem.strength, over)
    if name == "diagonal-hessian":
        return functools.partial(by_diagonal, curvature=curvature, attractive=laplacian.diagonal)
    return functools.partial(spectral_minus, curvature=curvature, laplacian=laplacian)


def descend(problem: Problem, phases: Sequence[Phase], method: str, state: State) -> Iterator[State]:
    """Yield the state after each iteration, repulsion summed by a method of `make_repulsion`.

    The last state has gone through all phases.
    """
    while state.phase < len(phases):
        phase = phases[state.phase]
        weighted = replace(problem, exaggeration=phase.exaggeration, strength=problem.strength * phase.strength)
        for following in phase_states(weighted, phase, method, state):
            yield (state := following)


def has_converged(state: State, phases: Sequence[Phase]) -> bool:
    """Return whether the last state of a descent ended its last phase before the iterations were used up."""
    return state.ended_after < phases[-1].most_iterations


def too_few_iterations(iterations: int) -> str:
    """Return the warning of a descent that ran out of iterations."""
    return (
        f"not converged after {iterations} iterations: raise layout.max_iterations, or accept a larger layout.converged"
    )


def phase_states(problem: Problem, phase: Phase, method: str, state: State) -> Iterator[State]:
    """Yield the states of one phase, as `descend` does; the last one has entered the next."""
    direction, search = direction_of(phase, problem), line_search_of(phase)
    tolerance, sums = np.nan, None
    entered = state.phase
    while state.phase == entered:
        allowed = phase.tolerance_at(state.phase_iteration)
        if sums is None or allowed * state.tolerance_factor != tolerance:
            tolerance = allowed * state.tolerance_factor
            sums = problem.repulsion(method, tolerance)
        afresh = not state.memory
        state = step(problem, sums, direction, search, state)
        if state.phase_iteration >= phase.most_iterations or (state.step == 0 and afresh):
            state = next_phase(state)
        elif state.step == 0:  # what was learnt misleads: once more along the direction without it
            state = replace(state, memory={}, step=1.0)
        elif phase.converged > 0 and state.phase_iteration % phase.window == 0:
            state = check_convergence(problem, phase, sums, state)
        before = state
        if phase.doubled_for < NEVER and state.phase == entered and may_double(state):
            state = doubled_if_lower(problem, sums, state, phase.doubled_for)
        approximate = method != "exact" and allowed == phase.tolerance
        if approximate and state.phase == entered and state.phase_iteration % ADAPT_EVERY == 0:
            growth = 1.0 if state is before else ERROR_GROWTH
            state = adapt_tolerance(problem, method, allowed, sums, state, growth)
        yield state


def check_convergence(problem: Problem, phase: Phase, sums: PairSums, state: State) -> State:
    """Return the state with the value at the end of its window, in the next phase where that hardly fell."""
    value = state.value if np.isfinite(state.value) else problem.value(state.positions, sums)
    fallen = state.reference - value  # NaN in the first window of a phase, which is no small fall
    hardly = fallen < phase.converged * abs(state.reference)
    state = replace(state, value=value, reference=value)
    return next_phase(state) if hardly else state


def next_phase(state: State) -> State:
    """Return the state at the start of the next phase: another objective, of which nothing is known."""
    return replace(
        state,
        phase=state.phase + 1,
        phase_iteration=0,
        ended_after=state.phase_iteration,
        reference=np.nan,
        step=1.0,
        gradient=None,
        memory={},
    )


def phases_of(params: ResolvedLayout, n_points: float) -> list[Phase]:
    """Return the phases of a descent: exaggerated, then plain; or one for each strength of a homotopy."""
    usual = Phase(
        params.direction,
        params.max_iterations,
        exaggeration=params.late_exaggeration,
        length=step_length(params, params.late_exaggeration, n_points),
        momentum=params.momentum or 0.0,
        pairs=params.pairs or PAIRS,
        kappa=params.kappa,
        converged=params.converged,
        window=params.window,
        tolerance=params.tolerance,
        schedule=params.schedule,
        coarsest=params.coarsest,
        # Line searches find the size of a map themselves, and a passed one retains its size.
        doubled_for=params.doubled_for if params.direction == "momentum" and params.init != INPUT_START else NEVER,
        params=params,
    )
    if params.homotopy > 1:
        shares = np.geomspace(params.least_strength, 1.0, params.homotopy).tolist()
        return [replace(usual, strength=share) for share in shares]
    exaggeration = params.early_exaggeration
    iterations = min(params.exaggerated_iterations, params.max_iterations)
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


def step_length(params: ResolvedLayout, exaggeration: float, n_points: float) -> float | None:
    """Return the fixed step, None for a line search; for momentum the learning rate, N / exaggeration where open.

    Source: Belkina et al., Automated optimized parameters for t-SNE, 2019.
    """
    if params.learning_rate is None and params.direction == "momentum":
        return n_points / exaggeration
    return params.learning_rate
