"""The error of approximate forces, measured at the positions of a descent, and what keeps it within a tolerance.

The step of a mesh follows from the requested error by rules that were measured on other maps. The clusters of many
points are narrower than those of any of these, and forces among them err by more: a descent measures the error, and
requests less where that is needed.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scalemani.config.limits import SINGLE_POINTS
from scalemani.descents.descent import State
from scalemani.descents.problem import Problem, correct_isolated, field_of_copies, repulsive_term
from scalemani.errors import ConfigError, NumericalError
from scalemani.kernels.arrays.coordinates import cell_sums
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.arrays.tiles import Mapper
from scalemani.kernels.repulsion.pair_sums import LEAST_SUM, ExactSums, PairSums

# Points at which exact sums are taken: all of few, of others a sample that is doubled until it is precise enough.
LEAST_TARGETS, MOST_TARGETS = 64, 1024
DESCENT_TARGETS = 256  # at least: a sixteenth of what sums on a mesh take until the next measurement
NEAR = 0.5  # side of the cells whose points are near each other; the kernels' width is one
PRECISION = 0.1  # the standard error of a measured error, relative to it
CERTAIN = 2.0  # standard errors
ADAPT_EVERY = 50  # iterations of a phase: windows of as many end where errors are measured
ADAPTATION_SEED = 2**32  # no usual seed: other points than those of a run's certificate
FINER = "set a smaller layout.tolerance, or layout.repulsion to exact"
ROOM = 0.8  # of the tolerance: what sums are set to err by, since clusters narrow until the next measurement
LOOSE = 0.4  # of the tolerance: sums that err by less cost more than they need to
LEAST_FACTOR = 0.05
# Of the gradient of a point, below which errors are no longer relative to it: the pair that pushes hardest has 0.65 by
# Student's kernel and 0.86 by the Gaussian, whose sums vanish at isolated points.
LEAST_FORCE = 1e-3
NINE_IN_TEN = 0.9


class ForceErrors(NamedTuple):
    """Relative errors of gradients that were summed approximately, and their standard errors as estimates.

    `whole` is the norm of all errors over that of all gradients, or of as many of `LEAST_FORCE` where these vanish.
    Nine in ten points err by `worst_decile` at most, each relative to the norm of its gradient, or to `LEAST_FORCE`
    where that is more.
    """

    whole: float
    worst_decile: float
    standard_error: float = 0.0
    worst_decile_standard_error: float = 0.0

    @property
    def least_tolerance(self) -> float:
        """The smallest tolerance that holds these errors."""
        return max(self.whole, self.worst_decile / SINGLE_POINTS)

    @property
    def certain_tolerance(self) -> float:
        """The smallest tolerance that holds them where each is more than was estimated, by `CERTAIN` of its errors."""
        return max(
            self.whole + CERTAIN * self.standard_error,
            (self.worst_decile + CERTAIN * self.worst_decile_standard_error) / SINGLE_POINTS,
        )

    @property
    def are_precise(self) -> bool:
        """Whether both are known to within `PRECISION` of the tolerance that they need, or need less for certain."""
        needed = self.least_tolerance
        estimates = (
            (self.whole, self.standard_error),
            (self.worst_decile / SINGLE_POINTS, self.worst_decile_standard_error / SINGLE_POINTS),
        )
        return all(error <= PRECISION * needed or value + CERTAIN * error <= needed for value, error in estimates)


class MeasuredForces(NamedTuple):
    """Approximate forces and their errors, with what these were measured by.

    `forces` (N, d) are those of the sums on one copy of each point, before any factor that points share. Exact ones
    were summed at `rows` (m,), whose `weights` (m,) mean one. `sums` (N,) are what forces were divided by, of
    objectives that divide by the sum of each point, else None.
    """

    errors: ForceErrors
    forces: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    sums: np.ndarray | None = None


class SampledForces:
    """Exact forces at a sample of the points, which grows until it measures errors precisely.

    Forces err where points are dense: by the root of how many are near, and in clusters narrower than the step of a
    mesh by all of them. Hence a point is drawn with a chance of which half is constant, and a quarter each goes with
    the number S of points that are near it, and with S^2. Errors over their chances vary little, and tight clusters of
    a hundredth of the points are seen, be they few or many. Estimates are unbiased for any S. Standard errors are
    those of the points drawn: they are too small where large errors are at points that no density shows, and that none
    of 64 draws met, as one in a hundred. Source: Hansen and Hurwitz, Ann. Math. Stat. 14 (1943), 333.

    Parameters
    ----------
    exact : returns the exact forces (n, d) float64 at rows (n,) of the points
    densities : S (N,) of all points, finite and not negative, as of `numbers_near`
    seed : of the draws, one for each number of a point in the sample
    least : points to begin with
    """

    def __init__(
        self,
        exact: Callable[[np.ndarray], np.ndarray],
        densities: np.ndarray,
        seed: int,
        least: int = LEAST_TARGETS,
    ) -> None:
        self._exact, self._seed, self._least = exact, seed, least
        squares = densities * densities
        self._chances = (
            2.0 + densities / (densities.mean() or 1.0) + squares / (squares.mean() or 1.0)
        )  # up to a factor
        self._forces = np.empty((0, 0))
        self.rows, self.weights = np.empty(0, np.int64), np.empty(0)  # of the sample that the last errors are of

    def measured(self, forces: np.ndarray, sums: np.ndarray | None = None) -> MeasuredForces:
        """Return the relative errors of all forces (N, d) with the sample that they were measured at."""
        errors = self.errors(forces)
        return MeasuredForces(errors, forces, self.rows, self.weights, sums)

    def errors(self, forces: np.ndarray) -> ForceErrors:
        """Return the relative errors of all forces (N, d): of a sample, or of all points where these are few."""
        n_points = len(forces)
        if not np.isfinite(forces).all():
            return ForceErrors(np.inf, np.inf)
        if n_points <= MOST_TARGETS:
            self._add(np.arange(len(self.rows), n_points))
            self.weights = np.ones(n_points)
            return errors_of(forces, self._forces)
        ends, size = np.cumsum(self._chances), float(np.vdot(forces, forces)) / n_points
        n_targets = max(self._least, len(self.rows))
        while True:
            shares = row_words(self._seed, "repulsion", len(self.rows), n_targets) / 2.0**64
            self._add(np.minimum(np.searchsorted(ends, shares * ends[-1], "right"), n_points - 1))
            self.weights = ends[-1] / (n_points * self._chances[self.rows])
            estimates = estimated_errors(forces[self.rows], self._forces, self.weights, size)
            if estimates.are_precise or n_targets >= MOST_TARGETS:
                return estimates
            n_targets = min(2 * n_targets, MOST_TARGETS)

    def _add(self, rows: np.ndarray) -> None:
        if len(rows):
            exact = self._exact(rows)
            self._forces = np.concatenate([self._forces, exact]) if len(self.rows) else exact
            self.rows = np.concatenate([self.rows, rows])


def errors_of(forces: np.ndarray, exact: np.ndarray) -> ForceErrors:
    """Return the relative errors of all forces (N, d), compared with exact ones; inf where one is no number."""
    errors, lengths = np.linalg.norm(forces - exact, axis=1), np.linalg.norm(exact, axis=1)
    if not np.isfinite(errors).all():
        return ForceErrors(np.inf, np.inf)
    whole = np.linalg.norm(errors) / (np.linalg.norm(lengths) or LEAST_FORCE * np.sqrt(len(errors)))
    return ForceErrors(float(whole), float(np.quantile(errors / np.maximum(lengths, LEAST_FORCE), NINE_IN_TEN)))


def estimated_errors(forces: np.ndarray, exact: np.ndarray, weights: np.ndarray, size: float) -> ForceErrors:
    """Return the relative errors of all forces from those (n, d) at sampled points, whose weights (n,) mean one.

    `size` is the mean square of the forces over all points. Times the ratio of the squares of exact and other forces in
    the sample it is that of the exact ones, and varies less than theirs.
    """
    errors, lengths = np.linalg.norm(forces - exact, axis=1), np.linalg.norm(exact, axis=1)
    terms = weights * np.square([errors, lengths, np.linalg.norm(forces, axis=1)])
    error, length, seen = terms.mean(axis=1)
    exact_size = length * size / seen if seen > 0 else length
    whole = np.sqrt(error / exact_size) if exact_size > 0 else np.sqrt(error) / LEAST_FORCE
    # The logarithm of whole^2 = error seen / (length size) varies as its parts do, relative to their means.
    parts = [
        each / mean for each, mean in zip(terms * [[1], [-1], [1]], (error, length, seen), strict=True) if mean > 0
    ]
    variation = np.std(np.sum(parts, axis=0), ddof=1) if parts else 0.0
    shares = errors / np.maximum(lengths, LEAST_FORCE)
    (worst,) = weighted_quantiles(shares, weights, np.array([NINE_IN_TEN]))
    spread = np.std(weights * ((shares > worst) - (1.0 - NINE_IN_TEN)), ddof=1) / np.sqrt(len(weights))
    (most,) = weighted_quantiles(shares, weights, np.array([NINE_IN_TEN + CERTAIN * spread]))
    standard_error = 0.5 * whole * variation / np.sqrt(len(weights))
    return ForceErrors(float(whole), float(worst), float(standard_error), float(most - worst) / CERTAIN)


def weighted_quantiles(values: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the quantiles (q,) of values (n,) of weights (n,): those of `np.quantile` where all weigh the same."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) - weights[order]
    return np.interp(shares, below / below[-1], values[order])


def measured_gradients(
    sums: PairSums,
    kernel: str | float,
    positions: np.ndarray,
    seed: int = 0,
    over: Mapper = map,
    charges: np.ndarray | None = None,
    least: int = LEAST_TARGETS,
) -> MeasuredForces:
    """Return the gradient of the sums with its relative errors, against exact sums at some of the points (N, d).

    `charges` (N,) float64 are one by default; `least` points are looked at first.
    """
    gradients = sums.field(positions, charges=charges)[1]
    return sampled_gradients(kernel, positions, seed, over, charges, least).measured(gradients)


def sampled_gradients(
    kernel: str | float,
    positions: np.ndarray,
    seed: int,
    over: Mapper = map,
    charges: np.ndarray | None = None,
    least: int = LEAST_TARGETS,
) -> SampledForces:
    """Return the exact gradients of a kernel's sums over all positions (N, d) at a sample of them."""
    exact, densities = ExactSums(kernel, over), numbers_near(positions, charges)
    return SampledForces(lambda rows: exact.field(positions, charges=charges, rows=rows)[1], densities, seed, least)


def numbers_near(positions: np.ndarray, charges: np.ndarray | None = None) -> np.ndarray:
    """Return how many points, or charges (N,) of them, lie in the cell of each of the positions: (N,) float64."""
    points = np.ascontiguousarray(positions, np.float64)
    return cell_sums(points, NEAR, np.ones(1) if charges is None else np.abs(charges, dtype=np.float64))


def force_errors(problem: Problem, sums: PairSums, positions: np.ndarray, seed: int = 0) -> ForceErrors:
    """Return the relative errors of an objective's repulsive forces at a sample of the positions."""
    return measured_forces(problem, sums, positions, seed).errors


def measured_forces(problem: Problem, sums: PairSums, positions: np.ndarray, seed: int = 0) -> MeasuredForces:
    """Return an objective's repulsive forces with their errors at a sample of the positions, against exact sums.

    They are those of the gradients of the sums, but for objectives that divide by the sums (SNE): there the sums of the
    sampled points err as well. Those of the points that push them are taken as they are: all would be all pairs.
    """
    kernel, over, masses = problem.objective.kernel, problem.workspace.over, problem.masses
    if problem.pairs is not None:
        forces = sums.field(positions)[1]  # which are exact
        return SampledForces(lambda rows: forces[rows], numbers_near(positions), seed, DESCENT_TARGETS).measured(forces)
    if problem.objective.combine != "sum-log":
        return measured_gradients(sums, kernel, positions, seed, over, masses, DESCENT_TARGETS)
    copies = np.ones(len(positions)) if masses is None else masses
    approximate = repulsive_term(problem.objective, positions, sums, masses).gradients / copies[:, np.newaxis]
    exact, field = ExactSums(kernel, over), field_of_copies(sums, positions, copies)
    correct_isolated(sums, positions, field, copies)
    bounded = np.maximum(field[0], LEAST_SUM)
    charges = copies / bounded

    def exact_forces(rows: np.ndarray) -> np.ndarray:
        sums_at, gradients = exact.field(positions, positions[rows], copies)
        others = exact.field(positions, positions[rows], charges)[1]
        return gradients / np.maximum(sums_at - 1.0, LEAST_SUM)[:, np.newaxis] + others

    sample = SampledForces(exact_forces, numbers_near(positions, masses), seed, DESCENT_TARGETS)
    return sample.measured(approximate, bounded)


def sums_at_end(
    problem: Problem, method: str, tolerance: float, state: State, seed: int
) -> tuple[PairSums, MeasuredForces]:
    """Return the sums of the last state of a descent, whose forces were to err by `tolerance`, and their forces."""
    sums = problem.repulsion(method, tolerance * state.tolerance_factor)
    return sums, measured_forces(problem, sums, state.positions, seed)


def coarse_forces(errors: ForceErrors, tolerance: float, remedy: str = FINER) -> str:
    """Return the warning of forces that err by more than was requested."""
    return (
        f"forces err by {errors.whole:.1e} of all and those of one point in ten by {errors.worst_decile:.1e} or more "
        f"of its force; requested were {tolerance:.1e} and {SINGLE_POINTS * tolerance:.1e}: {remedy}"
    )


def adapt_tolerance(
    problem: Problem, method: str, tolerance: float, sums: PairSums, state: State, growth: float = 1.0
) -> State:
    """Return the state with the factor on the tolerance that its sums are to have from here on.

    The factor stays where the measured error, with its standard errors and times `growth`, is within the tolerance of
    the forces and not far below it. Elsewhere it is set so that the error becomes `ROOM` of the tolerance, as errors
    are proportional to what is requested; values and gradients of the earlier sums are then forgotten. Where a window
    of the descent ends here, the next one starts from the value by the new sums.
    """
    errors = force_errors(problem, sums, state.positions, ADAPTATION_SEED)
    error, before = growth * errors.certain_tolerance, state.tolerance_factor
    factor = float(np.clip(before * ROOM * tolerance / max(error, LEAST_FACTOR * tolerance), LEAST_FACTOR, 1.0))
    fits = error <= tolerance and (error >= LOOSE * tolerance or before == 1.0)
    if fits or factor == before:
        return state
    try:
        others = problem.repulsion(method, tolerance * factor)
        others.field(state.positions)
    except (ConfigError, NumericalError):  # finer than the method goes, or than memory allows
        return state
    window_ended = state.reference == state.value
    reference = problem.value(state.positions, others) if window_ended else np.nan
    return replace(state, tolerance_factor=factor, value=np.nan, reference=reference, gradient=None)
