"""The nonlinear route on arrays in memory: `repulsion`, `objective` and `minimize`."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scalemani.config.choices import Direction, ObjectiveName, RepulsionMethod, Seed
from scalemani.config.objectives import Kernel, objective_of, table_of_objectives
from scalemani.config.other_names import check_setting
from scalemani.config.params import (
    Parameters,
    ResolvedLayout,
    RunConfiguration,
    checked_settings,
    effective_parameters,
    names_of_parameters,
)
from scalemani.config.params.parameters import COMPONENTS
from scalemani.config.validation import check_count, check_points, check_seed, check_tolerance
from scalemani.descents.descent import State
from scalemani.descents.force_errors import (
    ROOM,
    ForceErrors,
    SampledForces,
    coarse_forces,
    sampled_gradients,
    sums_at_end,
)
from scalemani.descents.parts import Ended, parts_of
from scalemani.descents.phases import OF_PAIRS, Phase, descend, has_converged, phases_of, too_few_iterations
from scalemani.descents.problem import Problem, affinity_scale, problem_of
from scalemani.descents.repulsion import APPROXIMATE, chosen_method, make_repulsion
from scalemani.errors import ConfigError, DataError, NumericalError, ShortfallWarning, warn
from scalemani.interfaces.functions.validation import checked_affinities, checked_values, rows_of_affinities
from scalemani.interfaces.wording import names_arguments
from scalemani.io.sources.side_data import check_weights
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.arrays.workspace import Workspace, threads
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.machine.control_groups import usable_processors
from scalemani.kernels.repulsion.pair_sums import ApproximateSums, ExactSums, PairSums
from scalemani.runs.opened import Curve

MOST_TRIALS = 4  # of one method, each finer than the one before
LEAST_REFINEMENT = 0.03  # of the tolerance of the trial before: far larger errors do not say what is needed


class MeasuredField(NamedTuple):
    """Sums, what they give at the points, and the errors that were measured of it."""

    sums: PairSums
    field: tuple[np.ndarray, np.ndarray]
    errors: ForceErrors


def field_within(
    methods: Sequence[str],
    kernel: str | float,
    tolerance: float,
    positions: np.ndarray,
    charges: np.ndarray | None = None,
    over: Mapper = map,
) -> MeasuredField:
    """Return sums by the first of the methods whose measured errors are within a tolerance; else by the best of all.

    The tolerance of a method is lowered until its measured errors are within `ROOM` of the requested one, or the method
    goes no finer. Where others follow, the first method is tried once. Raises the first method's error where none can
    be used.
    """
    exact: SampledForces | None = None
    best, refusal = None, None
    for number, method in enumerate(methods):
        target = tolerance
        for _ in range(1 if number == 0 and len(methods) > 1 else MOST_TRIALS):
            try:
                sums = make_repulsion(method, kernel, target, Workspace(over))
                field = sums.field(positions, charges=charges)
            except (ConfigError, NumericalError) as error:  # finer than the method goes, or than memory allows
                refusal = refusal or error
                break
            exact = exact or sampled_gradients(kernel, positions, 0, over, charges)
            errors = exact.errors(field[1])
            if best is None or errors.least_tolerance < best.errors.least_tolerance:
                best = MeasuredField(sums, field, errors)
            if sums.exact or errors.least_tolerance <= ROOM * tolerance:
                return best
            target *= max(ROOM * tolerance / errors.least_tolerance, LEAST_REFINEMENT) * ROOM
    if best is None:
        assert refusal is not None  # of the first method
        raise refusal
    return best


EXACT_INSTEAD = 20_000  # points, to which "auto" sums exactly where nothing else meets the tolerance: half a second


def repulsion(
    embedding: Any,
    kernel: Kernel | float = "student",
    method: RepulsionMethod = "auto",
    tolerance: float = 1e-3,
    *,
    theta: float | None = None,
    order: int | None = None,
    sample_weight: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of a kernel over all other points, and their gradients.

    Parameters
    ----------
    embedding : (N, d) array-like of finite numbers
    kernel : "student", 1 / (1 + d^2); "gaussian", exp(-d^2); "epanechnikov", max(0, 1 - d^2); or a number dof, 0.1 to
        100, the degrees of freedom of Student's (1 + d^2 / dof)^-dof
    method : "exact" (any d); "grid", a particle mesh, "barnes-hut" or "fgt" (the fast Gauss transform) for d = 2 and 3;
        "auto" takes exact sums up to 2,000 points; beyond, the mesh, and where that does not meet the tolerance, exact
        sums up to 20,000 points, then trees or a finer mesh
    tolerance : relative error of the gradients over all points. Nine in ten single gradients err by at most ten times
        as much, relative to their norm, or to 1e-3 where that is less. Both are measured against exact sums, at all
        of 1,024 points and at 64 to 1,024 of more, drawn more often where others are near, until the standard error of
        what decides is a tenth of it; the method is made finer until they hold
    theta : size over distance, in [0, 2], below which a cell of "barnes-hut" acts as one point; None: by the tolerance,
        which has no effect where theta is passed
    order : terms along each axis, 1 to 30, of the expansions of "fgt"; None: by the tolerance, which decides the reach
        alone where order is passed. `repulsion_bound` says what the sums can then err by
    sample_weight : (N,) real numbers of at least one, how many equal points each stands for; None: one. A copy of a
        point then meets all copies of the others, and its other copies at distance zero; all methods sum masses

    Returns
    -------
    sums : (N,) float64, S_n = sum over m != n of K(|x_n - x_m|^2); with weights, of a copy of each point
    gradient : (N, d) float64, of S at each point

    Raises
    ------
    ConfigError
        For an unknown kernel or method, for a tolerance or dimension that the method does not reach, and for `theta`
        or `order` of another method.
    DataError
        For an embedding that is not a table of finite numbers, and weights that are not one finite number of at least
        one a point.
    NumericalError
        For points so far apart that the requested mesh does not fit in memory.

    Warns
    -----
    ShortfallWarning
        With the measured errors, where the method goes no finer and they exceed what was requested.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, sections 5.2
    and 5.3.

    Examples
    --------
    >>> sums, gradient = repulsion([[0.0, 0.0], [1.0, 0.0]], kernel="student")
    >>> sums, gradient[0]
    (array([0.5, 0.5]), array([0.5, 0. ]))
    """
    positions = np.ascontiguousarray(check_points(embedding, "embedding"), np.float64)
    chosen = chosen_method(method, kernel, *positions.shape)
    check_tolerance(tolerance)
    masses = None if sample_weight is None else check_weights(sample_weight, len(positions))
    sums = sums_of(chosen, kernel, tolerance, theta, order)
    if sums is None:
        with threads(usable_processors()) as side_by_side:
            measured = measured_field(method, chosen, (kernel, tolerance), positions, masses, side_by_side.over)
        values, gradient = measured.field
    else:
        values, gradient = sums.field(positions, charges=masses)
    return (values if masses is None else values + (masses - 1.0)), gradient


def sums_of(method: str, kernel: str | float, tolerance: float, theta: Any, order: Any) -> PairSums | None:
    """Return the sums that theta or order decides, not the tolerance; None where neither is passed."""
    requested = {name: value for name, value in (("theta", theta), ("order", order)) if value is not None}
    for owner, extension in APPROXIMATE.items():
        if extension.argument in requested and method != owner:
            raise ConfigError(
                f"{extension.argument} is a parameter of method {owner!r}, got method {method!r}: leave it out"
            )
    if not requested:
        return None
    sums: type[ApproximateSums] = APPROXIMATE[method].load()
    return sums.by_number(kernel, requested[APPROXIMATE[method].argument], tolerance)


def measured_field(
    method: str,
    chosen: str,
    sums: tuple[str | float, float],
    positions: np.ndarray,
    masses: np.ndarray | None,
    over: Mapper = map,
) -> MeasuredField:
    """Return sums (kernel, tolerance) at positions (N, d) with measured errors; warn where these are too large.

    `chosen` is the resolved `method`.
    """
    kernel, tolerance = sums
    if chosen == "exact":
        exact = ExactSums(kernel, over)
        return MeasuredField(exact, exact.field(positions, charges=masses), ForceErrors(0.0, 0.0))
    finer = (name for name, extension in APPROXIMATE.items() if extension.finer and kernel in extension.kernels)
    others = ("exact",) if len(positions) <= EXACT_INSTEAD else (*finer, chosen)
    methods = (chosen, *others) if method == "auto" else (chosen,)
    measured = field_within(methods, kernel, tolerance, positions, masses, over)
    if measured.errors.least_tolerance > tolerance:
        warn(coarse_forces(measured.errors, tolerance, "take the method 'exact'"), ShortfallWarning)
    return measured


@names_arguments()
def objective(  # noqa: PLR0913 - what an objective is made of, and how it is summed
    embedding: Any,
    W: Any,
    method: ObjectiveName = "elastic-embedding",
    strength: float | None = None,
    repulsion: RepulsionMethod = "auto",
    tolerance: float = 1e-3,
    *,
    sample_weight: Any = None,
    dof: float = 1.0,
) -> tuple[float, np.ndarray]:
    """Return the objective of a nonlinear embedding, E = E+ + strength E-, and its gradient.

    TABLE

    Sums run over all ordered pairs of different points; d is the distance in the embedding.

    Parameters
    ----------
    embedding : (N, d) array-like of finite numbers
    W : (N, N) sparse, symmetric affinities w (`symmetric_affinities`). p is w divided by its sum for "s-sne" and
        "t-sne", and by its sum over N for "sne", where it stands for (p_n|m + p_m|n) / 2
    method : one of the table
    strength : weight of E-, above zero; None: that of a run, 1, or 1e-4 where E- is a plain sum
    repulsion, tolerance : how the sums of E- are summed and how far they may err, as in `repulsion`
    sample_weight : (N,) real numbers of at least one, how many equal points each stands for; None: one. W is then that
        of `symmetric_affinities` with the same weights, and value and gradient are those of the repeated points, where
        the copies of one share a place
    dof : degrees of freedom of Student's kernel, 0.1 to 100: 1 / (1 + d^2) of the table is then (1 + d^2 / dof)^-dof,
        and log(1 + d^2) is dof log(1 + d^2 / dof)

    Returns
    -------
    value : float; the Kullback-Leibler divergence of t-SNE and s-SNE is value + sum p log p at strength 1
    gradient : (N, d) float64

    Raises
    ------
    ConfigError
        For an unknown method, a strength that is not above zero, and what `repulsion` refuses.
    DataError
        For an embedding or affinities that are not finite, negative or asymmetric affinities, shapes that differ, and
        weights that are not one finite number of at least one a point.
    DisconnectedGraphError
        For a point without any affinity.

    Warns
    -----
    ShortfallWarning
        Where the sums err by more than was requested, as `repulsion` does.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 3.2.

    Examples
    --------
    >>> value, gradient = objective([[0.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]], "t-ee", strength=1.0)
    >>> round(value, 6), gradient.ravel()
    (2.386294, array([-1.,  1.]))
    """
    positions = np.ascontiguousarray(check_points(embedding, "embedding"), np.float64)
    rows = rows_of_affinities(checked_affinities(W, len(positions), "rows of the embedding"))
    row = objective_of(method, dof)
    strength = row.strength if strength is None else strength
    checked_values(layout__strength=strength, layout__dof=dof)
    chosen = chosen_method(repulsion, row.kernel, *positions.shape)
    masses = None if sample_weight is None else check_weights(sample_weight, len(positions))
    problem = Problem(rows, row, affinity_scale(row, rows, masses), float(strength), masses=masses)
    requested = row.kernel, check_tolerance(tolerance)
    with threads(usable_processors()) as side_by_side:
        sums = measured_field(repulsion, chosen, requested, positions, masses, side_by_side.over).sums
        value, gradient = problem.evaluate(positions, sums)
    return value, gradient


objective.__doc__ = (objective.__doc__ or "").replace("TABLE", table_of_objectives().replace("\n", "\n    "))


# Arguments, what prepares the start of a run or its reference, and what a run stores on its way.
PREPARED = ("objective", "direction", "init", "freeze", "jitter", "snapshots", "global_weight", "reference")
NOT_TUNED = {f"layout.{name}" for name in PREPARED}
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
    worst_decile_force_error : that of a single point's force, relative to its norm, at the 90th percentile
    force_standard_error, worst_decile_standard_error : of the two, which are measured on a sample; 0 on all points
    certificates : further ones by name, of settings that a run has certificates of
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
    force_standard_error: float
    worst_decile_standard_error: float
    certificates: Mapping[str, Any]


@names_arguments(direction="layout.direction")
def minimize(  # noqa: PLR0913 - what a run takes of a descent, and affinities in memory
    W: Any,
    method: ObjectiveName = "elastic-embedding",
    init: Any = None,
    n_components: int | None = None,
    *,
    direction: Direction = "auto",
    settings: Mapping[str, Any] | None = None,
    random_state: Seed = 0,
    sample_weight: Any = None,
) -> Minimum:
    """Minimize the objective of a nonlinear embedding over affinities in memory, by the descent of a run.

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
        For an unknown method, direction or number, numbers out of range or at odds with each other, a deviation
        where `init` has the start, and a repulsion that does not serve the method or the dimensions.
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
    >>> result = minimize([[0.0, 1.0], [1.0, 0.0]], "t-ee", [[0.0], [1.0]], settings={"layout.strength": 4.0})
    >>> np.ptp(result.embedding, axis=0).round(3), result.stopped  # d^2 is strength - 1
    (array([1.732]), 'converged')
    """
    rows = rows_of_affinities(checked_affinities(W))
    if rows.n_points < 2:
        raise DataError("W must be (N, N) with N of at least 2, got (1, 1)")
    seed = check_seed(random_state)
    positions = None if init is None else checked_start(init, rows.n_points, n_components)
    wanted = COMPONENTS if n_components is None else n_components
    n_dims = check_count(wanted, "n_components") if positions is None else positions.shape[1]
    layout = descent_of(method, direction, settings, rows.n_points, n_dims)
    if positions is not None and "layout.start_deviation" in (settings or {}):
        raise ConfigError("layout.start_deviation is that of a random start: leave it out, or scale init")
    start = random_start(seed, rows.n_points, n_dims, layout.start_deviation or 1.0) if positions is None else positions
    masses = None if sample_weight is None else check_weights(sample_weight, rows.n_points)
    if masses is not None and layout.direction in OF_PAIRS:
        raise ConfigError(f"direction={layout.direction!r} knows no weights: take another")
    for part in parts_of(layout):
        part.check_parameters(layout, rows.n_points, masses is not None)
    return minimum(rows, layout, start, seed, masses)


def checked_start(init: Any, n_points: int, n_components: int | None) -> np.ndarray:
    """Return a copy of positions as float64, or raise DataError for those that do not fit."""
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
) -> ResolvedLayout:
    """Return the parameters of a descent, resolved as those of a run are; warn of those that have no effect."""
    objective_of(method)  # refuses an unknown one
    numbers = checked_settings(settings)
    for name in numbers:
        check_setting(name, NUMBERS, f"settings has no {name!r}")
    requested = Parameters().with_values({"layout.direction": direction, **numbers})
    params = requested.decided(method, n_points)
    layout, kernel = params.layout, objective_of(method, params.layout.dof).kernel
    repulsion = chosen_method(layout.repulsion, kernel, n_points, n_dims, layout.exact_up_to)
    make_repulsion(repulsion, kernel, layout.tolerance)  # refuses a tolerance that it does not reach
    here = RunConfiguration(method, params, requested, frozenset({"layout"}), {"layout.repulsion": repulsion})
    used, notes = effective_parameters(here, lambda request: request.decided(method, n_points))
    for note in notes:
        warn(note)
    return used.as_resolved(method).descent


def minimum(
    rows: AffinityRows, layout: ResolvedLayout, start: np.ndarray, seed: int, masses: np.ndarray | None = None
) -> Minimum:
    """Return where a descent from `start` (N, d) ends, of points of masses (N,); warn of what falls short."""
    objective = objective_of(layout.objective, layout.dof)
    n_points, n_dims = start.shape
    method = chosen_method(layout.repulsion, objective.kernel, n_points, n_dims, layout.exact_up_to)
    phases = phases_of(layout, n_points if masses is None else float(masses.sum()))
    with ThreadPoolExecutor(usable_processors()) as pool:
        problem = problem_of(rows, objective, layout.strength, pool.map, masses)
        for part in parts_of(layout):
            problem = part.prepared(problem, layout, None)
        state, curve = last_state(problem, phases, method, State(start))
        sums, forces = sums_at_end(problem, method, layout.tolerance, state, seed)
        value = problem.value(state.positions, sums)
        ended = Ended(problem, layout, state, sums, np.column_stack(curve))
        more = {name: one for part in parts_of(layout) for name, one in part.certificates(ended).items()}
    converged, errors = has_converged(state, phases), forces.errors
    if not converged and layout.converged != 0:
        warn(f"minimize: {too_few_iterations(state.iteration)}", ShortfallWarning)
    if errors.least_tolerance > layout.tolerance:
        warn(f"minimize: {coarse_forces(errors, layout.tolerance)}", ShortfallWarning)
    stopped = "converged" if converged else "max_iterations"
    return Minimum(state.positions, value, curve, state.iteration, stopped, state.gradient_norm, method, *errors, more)


def last_state(problem: Problem, phases: list[Phase], method: str, state: State) -> tuple[State, Curve]:
    """Return the state after the last phase, and the curve of the iterations that computed the objective."""
    curve = []
    for following in descend(problem, phases, method, state):
        state = following
        if np.isfinite(state.value):
            curve.append((state.iteration, state.value, state.gradient_norm))
    iterations, values, norms = np.array(curve, np.float64).reshape(-1, 3).T
    return state, Curve(iterations.astype(np.int64), values, norms)
