"""The error of approximate forces, measured at the positions of a descent, and what keeps it within a tolerance.

The step of a mesh follows from the requested error by rules that were measured on other maps. The clusters of many
points are narrower than those of any of these, and forces among them err by more: a descent measures the error, and
requests less where that is needed.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scalemani.config.limits import SINGLE_POINTS
from scalemani.descents.descent import State
from scalemani.descents.problem import Problem, correct_isolated, field_of_copies, repulsive_term
from scalemani.descents.repulsion import make_repulsion
from scalemani.errors import ConfigError, NumericalError
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.repulsion.pair_sums import LEAST_SUM, ExactSums, PairSums

CERTIFIED_TARGETS = 1000
ADAPTATION_TARGETS = 250
ADAPT_EVERY = 50  # iterations of a phase: windows of as many end where errors are measured
ADAPTATION_SEED = 2**32  # no usual seed: other points than those of a run's certificate
FINER = "set a smaller layout.tolerance, or layout.repulsion to exact"
ROOM = 0.8  # of the tolerance: what sums are set to err by, since clusters narrow until the next measurement
LOOSE = 0.4  # of the tolerance: sums that err by less cost more than they need to
LEAST_FACTOR = 0.05
# Of the gradient of a point, below which errors are no longer relative to it: the pair that pushes hardest has 0.65 by
# Student's kernel and 0.86 by the Gaussian, whose own sums vanish at isolated points.
LEAST_FORCE = 1e-3


class ForceErrors(NamedTuple):
    """Relative errors of gradients that were summed approximately.

    `whole` is the norm of all errors over that of all gradients. Nine in ten points err by `worst_decile` at most, each
    relative to the norm of its own gradient, or to `LEAST_FORCE` where that is more.
    """

    whole: float
    worst_decile: float

    @property
    def least_tolerance(self) -> float:
        """The smallest tolerance that holds these errors."""
        return max(self.whole, self.worst_decile / SINGLE_POINTS)


def errors_of(gradients: np.ndarray, exact: np.ndarray) -> ForceErrors:
    """Return the relative errors of gradients (n, d) compared with exact ones; inf where one is no number."""
    errors, lengths = np.linalg.norm(gradients - exact, axis=1), np.linalg.norm(exact, axis=1)
    if not np.isfinite(errors).all():
        return ForceErrors(np.inf, np.inf)
    error, length = float(np.sqrt((errors**2).sum())), float(np.sqrt((lengths**2).sum()))
    whole = error / length if length > 0 else error / LEAST_FORCE
    return ForceErrors(whole, float(np.quantile(errors / np.maximum(lengths, LEAST_FORCE), 0.9)))


def measured_errors(
    sums: PairSums,
    kernel: str,
    positions: np.ndarray,
    seed: int = 0,
    over: Mapper = map,
    charges: np.ndarray | None = None,
    n_targets: int = CERTIFIED_TARGETS,
) -> ForceErrors:
    """Return the relative errors of the gradient of the sums at a sample of the points, against exact sums.

    Where there are fewer points (N, d) than targets, all of them count; `charges` (N,) float64 are one by default.
    """
    rows = sample_rows(seed, "repulsion", len(positions), n_targets)
    _, exact = ExactSums(kernel, over).field(positions, positions[rows], charges)  # self pairs have no gradient
    _, approximate = sums.field(positions, charges=charges)
    return errors_of(approximate[rows], exact)


def force_errors(
    problem: Problem, sums: PairSums, positions: np.ndarray, seed: int = 0, n_targets: int = CERTIFIED_TARGETS
) -> ForceErrors:
    """Return the relative errors of an objective's repulsive forces at a sample of the positions, against exact sums.

    They are those of the gradients of the sums, but for objectives that divide by the sums (SNE): there the sums of the
    sampled points err as well. Those of the points that push them are taken as they are: all would be all pairs.
    """
    kernel, over, masses = problem.objective.kernel, problem.workspace.over, problem.masses
    if problem.objective.combine != "sum-log":
        return measured_errors(sums, kernel, positions, seed, over, masses, n_targets)
    rows = sample_rows(seed, "repulsion", len(positions), n_targets)
    copies = np.ones(len(positions)) if masses is None else masses
    approximate = repulsive_term(problem.objective, positions, sums, masses).gradients[rows] / copies[rows, np.newaxis]
    exact, targets = ExactSums(kernel, over), positions[rows]
    sums_at, gradients = exact.field(positions, targets, copies)
    field = field_of_copies(sums, positions, copies)
    correct_isolated(sums, positions, field, copies)
    others = exact.field(positions, targets, copies / np.maximum(field[0], LEAST_SUM))[1]
    return errors_of(approximate, gradients / np.maximum(sums_at - 1.0, LEAST_SUM)[:, np.newaxis] + others)


def sums_at_end(
    problem: Problem, method: str, tolerance: float, state: State, seed: int
) -> tuple[PairSums, ForceErrors]:
    """Return the sums of the last state of a descent, whose forces were to err by `tolerance`, and their errors."""
    sums = make_repulsion(method, problem.objective.kernel, tolerance * state.tolerance_factor, problem.workspace)
    return sums, force_errors(problem, sums, state.positions, seed)


def coarse_forces(errors: ForceErrors, tolerance: float, remedy: str = FINER) -> str:
    """Return the warning of forces that err by more than was requested."""
    return (
        f"forces err by {errors.whole:.1e} of all and those of one point in ten by {errors.worst_decile:.1e} or more "
        f"of its own; requested were {tolerance:.1e} and {SINGLE_POINTS * tolerance:.1e}: {remedy}"
    )


def adapt_tolerance(
    problem: Problem, method: str, tolerance: float, sums: PairSums, state: State, growth: float = 1.0
) -> State:
    """Return the state with the factor on the tolerance that its sums are to have from here on.

    The factor stays where the measured error, times `growth`, is within the tolerance of the forces and not far below
    it. Elsewhere it is set so that the error becomes `ROOM` of the tolerance, as errors are proportional to what is
    requested; values and gradients of the earlier sums are then forgotten. Where a window of the descent ends here, the
    next one starts from the value by the new sums.
    """
    errors = force_errors(problem, sums, state.positions, ADAPTATION_SEED, ADAPTATION_TARGETS)
    error, before = growth * errors.least_tolerance, state.tolerance_factor
    factor = float(np.clip(before * ROOM * tolerance / max(error, LEAST_FACTOR * tolerance), LEAST_FACTOR, 1.0))
    fits = error <= tolerance and (error >= LOOSE * tolerance or before == 1.0)
    if fits or factor == before:
        return state
    try:
        others = make_repulsion(method, problem.objective.kernel, tolerance * factor, problem.workspace)
        others.field(state.positions)
    except (ConfigError, NumericalError):  # finer than the method goes, or than memory allows
        return state
    window_ended = state.reference == state.value
    reference = problem.value(state.positions, others) if window_ended else np.nan
    return replace(state, tolerance_factor=factor, value=np.nan, reference=reference, gradient=None)
