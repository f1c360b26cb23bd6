"""The error of approximate forces, measured at the positions of a descent, and what keeps it within a tolerance.

Sums are asked for an error by rules that were measured on other maps. The clusters of many points are narrower than
those of any of these, and forces among them err by more: a descent measures, and asks for less where that is needed.
"""

from dataclasses import replace

import numpy as np

from scalemani.embeddings.descent import State
from scalemani.embeddings.problem import Problem
from scalemani.embeddings.repulsion import make_repulsion
from scalemani.errors import ConfigError, NumericalError
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.repulsion.exact import ExactSums
from scalemani.kernels.repulsion.pair_sums import PairSums

CERTIFIED_TARGETS = 1000
WATCHED_TARGETS = 250
WATCHED_EVERY = 50  # iterations of a phase: windows of as many end where errors are measured
WATCHING_SEED = 2**32  # no usual seed: other points than those of a run's certificate
ROOM = 0.8  # of the tolerance: what sums are set to err by, since clusters narrow until they are looked at again
LOOSE = 0.4  # of the tolerance: sums that err by less cost more than they need to
LEAST_SHARE = 0.05


def measured_error(
    sums: PairSums,
    kernel: str,
    positions: np.ndarray,
    seed: int = 0,
    over: Mapper = map,
    charges: np.ndarray | None = None,
    n_targets: int = CERTIFIED_TARGETS,
) -> float:
    """Return the relative error of the gradient of the sums over a sample of the points, against exact sums.

    Parameters
    ----------
    sums : which are measured
    kernel : theirs
    positions : (N, d) float64; where there are fewer points than targets, all of them count
    seed : of the draw of the points
    over : the builtin `map`, or one that runs on threads
    charges : (N,) float64, what each point weighs in the sums; None: one
    n_targets : at how many points
    """
    rows = sample_rows(seed, "repulsion", len(positions), n_targets)
    _, exact = ExactSums(kernel, over).field(positions, positions[rows], charges)  # self pairs have no gradient
    _, found = sums.field(positions, charges=charges)
    length = float(np.sqrt((exact**2).sum()))
    return float(np.sqrt(((found[rows] - exact) ** 2).sum())) / length if length > 0 else 0.0


def sums_at_end(problem: Problem, method: str, tolerance: float, state: State, seed: int) -> tuple[PairSums, float]:
    """Return the sums that the last state of a descent was found by, and the relative error of their gradient there.

    Parameters
    ----------
    problem : the objective
    method : how repulsion is summed, as of `make_repulsion`
    tolerance : the largest relative error that was asked for
    state : the last one
    seed : of the draw of the points at which errors are measured
    """
    kernel = problem.objective.kernel
    sums = make_repulsion(method, kernel, tolerance * state.share, problem.workspace)
    return sums, measured_error(sums, kernel, state.positions, seed, problem.workspace.over, problem.masses)


def watched(
    problem: Problem, method: str, tolerance: float, sums: PairSums, state: State, growth: float = 1.0
) -> State:
    """Return the state with the share of the tolerance that its sums are asked for from here on.

    The share stays where the measured error is within the tolerance and not far below it. Elsewhere it is set so that
    the error is `ROOM` of the tolerance, since errors follow what is asked for; values and gradients of the sums before
    are then forgotten. Where a window of the descent ends here, the next one starts from the value by the new sums.

    Parameters
    ----------
    problem : the objective
    method : how repulsion is summed, as of `make_repulsion`
    tolerance : the largest relative error of the forces
    sums : as asked for `state.share` of the tolerance
    state : where the error is measured
    growth : by which the error is known to grow from there on
    """
    workspace, masses, kernel = problem.workspace, problem.masses, problem.objective.kernel
    measured = measured_error(sums, kernel, state.positions, WATCHING_SEED, workspace.over, masses, WATCHED_TARGETS)
    error = growth * measured
    share = float(np.clip(state.share * ROOM * tolerance / max(error, LEAST_SHARE * tolerance), LEAST_SHARE, 1.0))
    fits = error <= tolerance and (error >= LOOSE * tolerance or state.share == 1.0)
    if fits or share == state.share:
        return state
    try:
        others = make_repulsion(method, kernel, tolerance * share, workspace)
        others.field(state.positions)
    except (ConfigError, NumericalError):  # finer than the method goes, or than memory allows
        return state
    window_ended = state.reference == state.value
    reference = problem.value(state.positions, others) if window_ended else np.nan
    return replace(state, share=share, value=np.nan, reference=reference, gradient=None)
