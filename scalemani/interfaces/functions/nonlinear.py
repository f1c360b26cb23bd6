"""The nonlinear route on arrays in memory: `repulsion` and `objective`."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from scalemani.config.objectives import objective_of, table_of_objectives
from scalemani.config.validation import check_points
from scalemani.descents.force_errors import CERTIFIED_TARGETS, ROOM, ForceErrors, errors_of
from scalemani.descents.problem import Problem, affinity_scale
from scalemani.descents.repulsion import chosen_method, make_repulsion
from scalemani.descents.shortfalls import coarse_forces
from scalemani.errors import ConfigError, NumericalError, ShortfallWarning, warn
from scalemani.interfaces.functions.repulsion_bounds import gauss_transform
from scalemani.interfaces.functions.validation import check_tolerance, checked_affinities, is_number, rows_of_affinities
from scalemani.io.sources.side_data import check_weights
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.repulsion.exact import ExactSums
from scalemani.kernels.repulsion.pair_sums import PairSums
from scalemani.kernels.repulsion.tree.barnes_hut import BarnesHut

MOST_TRIALS = 4  # of one method, each finer than the one before
LEAST_REFINEMENT = 0.03  # of the tolerance of the trial before: far larger errors do not tell what is needed


class MeasuredField(NamedTuple):
    """Sums, what they give at the points, and the errors that were measured of it."""

    sums: PairSums
    field: tuple[np.ndarray, np.ndarray]
    errors: ForceErrors


def field_within(
    methods: Sequence[str], kernel: str, tolerance: float, positions: np.ndarray, charges: np.ndarray | None = None
) -> MeasuredField:
    """Return sums by the first of the methods whose measured errors are within a tolerance; else by the best of all.

    The tolerance of a method is lowered until its measured errors are within `ROOM` of the requested one, or the method
    goes no finer. Where others follow, the first method is tried once. Raises the first method's error where none can
    be used.
    """
    rows = sample_rows(0, "repulsion", len(positions), CERTIFIED_TARGETS)
    _, exact = ExactSums(kernel).field(positions, positions[rows], charges)
    best, refusal = None, None
    for number, method in enumerate(methods):
        asked = tolerance
        for _ in range(1 if number == 0 and len(methods) > 1 else MOST_TRIALS):
            try:
                sums = make_repulsion(method, kernel, asked)
                field = sums.field(positions, charges=charges)
            except (ConfigError, NumericalError) as error:  # finer than the method goes, or than memory allows
                refusal = refusal or error
                break
            errors = errors_of(field[1][rows], exact)
            if best is None or errors.least_tolerance < best.errors.least_tolerance:
                best = MeasuredField(sums, field, errors)
            if sums.exact or errors.least_tolerance <= ROOM * tolerance:
                return best
            asked *= max(ROOM * tolerance / errors.least_tolerance, LEAST_REFINEMENT) * ROOM
    if best is None:
        assert refusal is not None  # of the first method
        raise refusal
    return best


EXACT_INSTEAD = 20_000  # points, to which "auto" sums exactly where nothing else meets the tolerance: half a second


def repulsion(
    embedding: Any,
    kernel: str = "student",
    method: str = "auto",
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
    kernel : "student", 1 / (1 + d^2); "gaussian", exp(-d^2); or "epanechnikov", max(0, 1 - d^2)
    method : "exact" (any d); "grid", a particle mesh, "barnes-hut" or "fgt" (the fast Gauss transform) for d = 2 and 3;
        "auto" takes exact sums up to 2,000 points; beyond, the mesh, and where that does not meet the tolerance, exact
        sums up to 20,000 points, then trees or a finer mesh
    tolerance : relative error of the gradients over all points. Nine in ten single gradients err by at most ten times
        as much, relative to their own norm, or to 1e-3 where that is less. Both are measured against exact sums at
        1,000 points, and the method made finer until they hold
    theta : size over distance, in [0, 2], below which a cell of "barnes-hut" acts as one point; None: by the tolerance,
        which has no effect where it is given
    order : terms along each axis, 1 to 30, of the expansions of "fgt"; None: by the tolerance, which decides the reach
        alone where it is given. `repulsion_bound` says what the sums can then err by
    sample_weight : (N,) real numbers of at least one, how many equal points each stands for; None: one. A copy of a
        point then meets all copies of the others, and its own others at distance zero; all methods sum masses

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
        measured = measured_field(method, chosen, (kernel, tolerance), positions, masses)
        values, gradient = measured.field
    else:
        values, gradient = sums.field(positions, charges=masses)
    return (values if masses is None else values + (masses - 1.0)), gradient


def sums_of(method: str, kernel: str, tolerance: float, theta: Any, order: Any) -> PairSums | None:
    """Return the sums that a parameter of their own decides, not the tolerance; None where none is given."""
    for name, value, owner in (("theta", theta, "barnes-hut"), ("order", order, "fgt")):
        if value is not None and method != owner:
            raise ConfigError(f"{name} is a parameter of method {owner!r}, got method {method!r}: leave it out")
    if theta is not None:
        if isinstance(theta, bool) or not isinstance(theta, Real):
            raise ConfigError(f"theta must be a number in [0, 2], got {theta!r}")
        return BarnesHut(kernel, float(theta))
    return None if order is None else gauss_transform(order, tolerance)


def measured_field(
    method: str, chosen: str, sums: tuple[str, float], positions: np.ndarray, masses: np.ndarray | None
) -> MeasuredField:
    """Return sums (kernel, tolerance) at positions (N, d) with measured errors; warn where these are too large.

    `chosen` is the resolved `method`.
    """
    kernel, tolerance = sums
    if chosen == "exact":
        exact = ExactSums(kernel)
        return MeasuredField(exact, exact.field(positions, charges=masses), ForceErrors(0.0, 0.0))
    others = ("exact",) if len(positions) <= EXACT_INSTEAD else ("barnes-hut", chosen)
    methods = (chosen, *others) if method == "auto" else (chosen,)
    measured = field_within(methods, kernel, tolerance, positions, masses)
    if measured.errors.least_tolerance > tolerance:
        warn(coarse_forces(measured.errors, tolerance, "take the method 'exact'"), ShortfallWarning)
    return measured


def objective(
    embedding: Any,
    W: Any,
    method: str = "elastic-embedding",
    strength: float | None = None,
    repulsion: str = "auto",
    tolerance: float = 1e-3,
    *,
    sample_weight: Any = None,
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
    asked = objective_of(method)
    strength = asked.strength if strength is None else strength
    if not is_number(strength):
        raise ConfigError(f"strength must be a number above zero, got {strength!r}: without repulsion points collapse")
    chosen = chosen_method(repulsion, asked.kernel, *positions.shape)
    masses = None if sample_weight is None else check_weights(sample_weight, len(positions))
    problem = Problem(rows, asked, affinity_scale(asked, rows, masses), float(strength), masses=masses)
    sums = measured_field(repulsion, chosen, (asked.kernel, check_tolerance(tolerance)), positions, masses).sums
    value, gradient = problem.evaluate(positions, sums)
    return value, gradient


objective.__doc__ = (objective.__doc__ or "").replace("TABLE", table_of_objectives().replace("\n", "\n    "))
