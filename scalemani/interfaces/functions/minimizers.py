"""The descent of a run on affinities in memory: `minimize`."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.system import cpu_count

from scalemani.config.objectives import objective_of
from scalemani.config.params import LayoutParams, Parameters, Situation, acting, checked_settings, names_of_parameters
from scalemani.config.params.defaults import COMPONENTS
from scalemani.config.validation import check_count, check_points, check_seed
from scalemani.descents.descent import State
from scalemani.descents.force_errors import sums_at_end
from scalemani.descents.phases import OF_PAIRS, Phase, descend, has_converged
from scalemani.descents.problem import Problem, problem_of
from scalemani.descents.recipes import phases_of
from scalemani.descents.repulsion import chosen_method, make_repulsion
from scalemani.descents.shortfalls import FINER, coarse_forces, too_few_iterations
from scalemani.errors import ConfigError, DataError, ShortfallWarning, nearest_name, warn
from scalemani.interfaces.functions.validation import checked_affinities, rows_of_affinities
from scalemani.io.sources.side_data import check_weights
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.runs.opened import Curve

# Arguments, what prepares the start of a run, and what a run stores on its way.
NOT_TUNED = {f"layout.{name}" for name in ("objective", "direction", "init", "freeze", "jitter", "snapshots")}
NUMBERS = tuple(name for name in names_of_parameters() if name.startswith("layout.") and name not in NOT_TUNED)


@dataclass(frozen=True)
class Minimum:
    """Where a descent ended, and how.

    Attributes
    ----------
    embedding : (N, d) float64, about its mean
    objective : its value there; for t-SNE and s-SNE at strength 1 the Kullback-Leibler divergence
    curve : `iteration`, `objective` and `gradient_norm`, (n,) each, of the iterations that computed the objective
    iterations : those made
    stopped : "converged", or "max_iterations"
    gradient_norm : before the last step
    repulsion : how it was summed
    force_error : the relative error of its forces at the end
    worst_decile_force_error : that of a single point's force, relative to its own norm, at the 90th percentile
    """

    embedding: np.ndarray
    objective: float
    curve: Curve
    iterations: int
    stopped: str
    gradient_norm: float
    repulsion: str
    force_error: float
    worst_decile_force_error: float


def minimize(  # noqa: PLR0913 - what a run takes of a descent, and affinities in memory
    W: Any,
    method: str = "elastic-embedding",
    init: Any = None,
    n_components: int | None = None,
    *,
    direction: str = "auto",
    settings: Mapping[str, Any] | None = None,
    random_state: Any = 0,
    sample_weight: Any = None,
) -> Minimum:
    """Minimize the objective of a nonlinear embedding over given affinities, by the descent of a run, in memory.

    Parameters
    ----------
    W : (N, N) sparse, symmetric affinities (`symmetric_affinities`), float32 or float64, N from 2
    method : a nonlinear method, as in `objective`
    init : (N, d) array-like of finite numbers, the positions to start from, taken as they are. None: uniform random
        ones, at the standard deviation "layout.start_deviation"
    n_components : d, dimensions of the embedding. None: those of `init`, and 2 where this is None too
    direction : search direction, as in `TSNE`; "auto": that of the method
    settings : other numbers of the descent by the names that they have on the command line: {"layout.strength": 100.0},
        {"layout.max_iterations": 200, "layout.converged": 1e-6, "layout.repulsion": "exact"}
    random_state : seed of the random start, and of the points by which the error of the forces is measured
    sample_weight : (N,) real numbers of at least one, how many equal points each stands for; None: one. W is then that
        of `symmetric_affinities` with the same weights, and the minimum is that of the repeated points

    Returns
    -------
    Minimum: the embedding with its rows as those of W, the curve, and how the descent ended. From the W of a run, in
    the order of its rows, and from its start these are the run's to the bit

    Raises
    ------
    ConfigError
        For an unknown method, direction or number, numbers out of range or at odds with each other, a deviation of a
        start that is given, and a repulsion that does not serve the method or the dimensions.
    DataError
        For affinities that are not finite, negative or asymmetric, and a start that does not fit them.
    DisconnectedGraphError
        For a point without any affinity.
    ConvergenceError
        For steps that throw points out of reach.

    Warns
    -----
    ShortfallWarning
        Where the descent ended before it converged, and where forces err by more than "layout.tolerance", or those of
        one point in ten by more than ten times that.
    ScalemaniWarning
        For a number that has no effect with the others.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, sections 3.2
    to 3.4 and 5.2.

    Examples
    --------
    >>> found = minimize([[0.0, 1.0], [1.0, 0.0]], "t-ee", [[0.0], [1.0]], settings={"layout.strength": 4.0})
    >>> np.ptp(found.embedding, axis=0).round(3), found.stopped  # d^2 is strength - 1
    (array([1.732]), 'converged')
    """
    rows = rows_of_affinities(checked_affinities(W))
    if rows.n_points < 2:
        raise DataError("W must be (N, N) with N of at least 2, got (1, 1)")
    seed = check_seed(random_state)
    given = None if init is None else checked_start(init, rows.n_points, n_components)
    wanted = COMPONENTS if n_components is None else n_components
    n_dims = check_count(wanted, "n_components") if given is None else given.shape[1]
    asked = descent_of(method, direction, settings, rows.n_points, n_dims)
    if given is not None and "layout.start_deviation" in (settings or {}):
        raise ConfigError("layout.start_deviation is that of a random start: leave it out, or scale init")
    start = random_start(seed, rows.n_points, n_dims, asked.start_deviation or 1.0) if given is None else given
    masses = None if sample_weight is None else check_weights(sample_weight, rows.n_points)
    if masses is not None and asked.direction in OF_PAIRS:
        raise ConfigError(f"direction={asked.direction!r} knows no weights: take another")
    return minimum(rows, asked, start, seed, masses)


def checked_start(init: Any, n_points: int, n_components: int | None) -> np.ndarray:
    """Return a copy of given positions as float64, or raise DataError for those that do not fit."""
    start = np.array(check_points(init, "init"), np.float64, order="C")
    n_dims = start.shape[1] if n_components is None else n_components
    if start.shape != (n_points, n_dims):
        raise DataError(f"init must be (N, d) = ({n_points}, {n_dims}), as W and n_components are, got {start.shape}")
    return start


def random_start(seed: int, n_points: int, n_dims: int, deviation: float) -> np.ndarray:
    """Return uniform positions (N, d) float64 of zero mean and a standard deviation, up to the luck of the draw."""
    words = row_words(seed, "minimize", 0, n_points * n_dims).reshape(n_points, n_dims)
    return np.sqrt(3.0) * deviation * (words / 2.0**63 - 1.0)


def descent_of(
    method: str, direction: str, settings: Mapping[str, Any] | None, n_points: int, n_dims: int
) -> LayoutParams:
    """Return the parameters of a descent, resolved as those of a run are; warn of those that have no effect."""
    objective = objective_of(method)
    given = checked_settings(settings)
    for name in given:
        if name not in NUMBERS:
            raise ConfigError(f"settings has no {name!r}: {nearest_name(name, NUMBERS)}")
    asked = Parameters().with_settings({"layout.direction": direction, **given})
    params = asked.resolved(method, n_points)
    layout = params.layout
    repulsion = chosen_method(layout.repulsion, objective.kernel, n_points, n_dims, layout.exact_up_to)
    make_repulsion(repulsion, objective.kernel, layout.tolerance)  # refuses a tolerance that it does not reach
    here = Situation(method, params, asked, n_points, frozenset({"layout"}), False, params.neighbors.method, repulsion)
    used, notes = acting(here, lambda kept: kept.resolved(method, n_points))
    for note in notes:
        warn(note)
    return used.layout


def minimum(
    rows: AffinityRows, asked: LayoutParams, start: np.ndarray, seed: int, masses: np.ndarray | None = None
) -> Minimum:
    """Return where a descent from `start` (N, d) ends, of points of masses (N,); warn of what falls short."""
    objective = objective_of(str(asked.objective))
    n_points, n_dims = start.shape
    method = chosen_method(asked.repulsion, objective.kernel, n_points, n_dims, asked.exact_up_to)
    phases = phases_of(asked, n_points if masses is None else float(masses.sum()))
    with ThreadPoolExecutor(cpu_count()) as pool:
        problem = problem_of(rows, objective, asked.strength or objective.strength, pool.map, masses)
        state, curve = last_state(problem, phases, method, State(start))
        sums, errors = sums_at_end(problem, method, asked.tolerance, state, seed)
        value = problem.value(state.positions, sums)
    converged = has_converged(state, phases)
    if not converged and asked.converged != 0:
        warn(f"minimize: {too_few_iterations(state.iteration)}", ShortfallWarning)
    if errors.least_tolerance > asked.tolerance:
        warn(f"minimize: {coarse_forces(errors, asked.tolerance, FINER)}", ShortfallWarning)
    stopped = "converged" if converged else "max_iterations"
    return Minimum(state.positions, value, curve, state.iteration, stopped, state.gradient_norm, method, *errors)


def last_state(problem: Problem, phases: list[Phase], method: str, state: State) -> tuple[State, Curve]:
    """Return the state after the last phase, and the curve of the iterations that computed the objective."""
    curve = []
    for following in descend(problem, phases, method, state):
        state = following
        if np.isfinite(state.value):
            curve.append((state.iteration, state.value, state.gradient_norm))
    iterations, values, norms = np.array(curve, np.float64).reshape(-1, 3).T
    return state, Curve(iterations.astype(np.int64), values, norms)
