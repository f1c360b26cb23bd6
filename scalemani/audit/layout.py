"""A nonlinear embedding: its objective and the norm of its gradient.

Attraction is summed over all of W. Repulsion is summed on a grid for all points, and exactly for rows that are drawn:
these show how far off the grid is on the mean, which is added. Without a grid they stand for all.

A run stores the approximate forces of all points at the end, and the rows at which it measured their errors. At these
the audit sums anew and has to find the same errors; at rows that it draws itself they must be no larger, so that the
rows of the run stand for all.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from scalemani.audit.findings import STANDARD_ERRORS, Finding, equal, is_number, none_wrong, unchecked, verdict_of
from scalemani.audit.graph import STAGE as GRAPH
from scalemani.audit.graph import read_block
from scalemani.audit.kernel_sums import Field, all_sums, kernel_field, of_kernel
from scalemani.audit.rows import Audit
from scalemani.config.objectives import GIVEN_PAIRS, OBJECTIVES, Objective, objective_of

STAGE = "layout"
LEAST_SUM = 1e-300
LEAST_FORCE = 1e-3  # below which errors of single points are no longer relative to their force
CERTAIN = 2.0  # standard errors by which the quantile of a standard error is higher
# Numbers that are computed twice differ by as much, as a share of them: rounding moves a quantile between points.
OFF, ROUNDING = 1e-3, 1e-10
# By which share errors at rows drawn evenly may be larger: a run draws where points are dense, and where errors are
# large at few points a sample may have met none.
SHARE = 0.5
TARGETS = 500  # rows, at most, at which forces are summed over all points
# The error of an objective over that of forces: errors of points cancel each other, more so where forces are
# interpolated. Of 2,000 to 20,000 points it was 0.0024 at most on a grid, and 0.018 by trees.
OF_OBJECTIVE, BY_OTHERS = {"grid": 0.02, "exact": 0.02}, 0.2
# The record has the norm before the last step, which may be this many times that after it, or as many times less.
STEP = 3.0


class Attraction(NamedTuple):
    """Sums over all entries w of W: of w, of w a(d^2), of w log w; and gradients (N, d) of the second."""

    total: float
    energy: float
    logarithms: float
    gradients: np.ndarray


class Measured(NamedTuple):
    """Relative errors of all forces, and of nine in ten points, with their standard errors."""

    force_error: float
    worst_decile_force_error: float
    force_standard_error: float
    worst_decile_standard_error: float


class Points(NamedTuple):
    """Positions (N, d) of some masses (N,) in work order, and the objective whose forces act on them."""

    objective: Objective
    positions: np.ndarray
    masses: np.ndarray


def check_layout(audit: Audit) -> Iterator[Finding]:
    """Check that positions are finite, errors of forces, and objective and gradient norm at the end of the descent."""
    group = audit.run.groups[STAGE]
    said, dof = group.certificates, float(audit.run.param(STAGE, "dof", 1.0))
    objective = objective_of(audit.run.method, dof) if audit.run.method in OBJECTIVES else None
    positions = group.read("embedding").astype(np.float64)[audit.order]
    yield none_wrong(STAGE, "positions are finite", int((~np.isfinite(positions)).any(axis=1).sum()))
    if objective is None:
        yield unchecked(STAGE, "objective", f"{audit.run.method} is no objective that this audit knows")
        return
    if said.get("repulsion") == GIVEN_PAIRS:
        return  # what adds this repulsion has a check of the rest
    masses = np.ones(audit.run.n_points) if audit.weights is None else audit.weights
    rows = drawn(audit, masses)
    pull = attraction(audit, objective, positions, masses)
    field, kernel = kernel_field(objective.kernel, positions, positions[rows], masses), objective.kernel
    yield from check_forces(audit, Points(objective, positions, masses), rows, field)
    whole = all_sums(lambda squares: of_kernel(kernel, squares)[0], positions, masses, audit.memory // 2)
    if objective.combine == "sum-log" and whole is not None:
        field, whole = of_logarithms(audit, kernel, positions, rows, masses, field, whole)
    strength = float(audit.run.param(STAGE, "strength", objective.strength))
    layout = Layout(audit, objective, positions, masses, rows, pull, field, whole, strength)
    if float(audit.run.param(STAGE, "global_weight", 0.0)) > 0:
        layout = layout._replace(to_reference=(to_reference := layout.pulled(said)))
        found = to_reference.distance
        yield equal(STAGE, "reference_distance", said.get("reference_distance"), found, 1e-6, "over all points")
    yield layout.judge_objective(said)
    yield layout.judge_gradient(said)
    yield from check_curve(audit, said)


def of_logarithms(
    audit: Audit,
    kernel: str | float,
    positions: np.ndarray,
    rows: np.ndarray,
    masses: np.ndarray,
    field: Field,
    whole: Field,
) -> tuple[Field, Field]:
    """Return fields whose gradients are those of half the sum of log S_n of all points, S_n the sums of the kernel.

    A point moves its sum and those of all others: (K'_nm / S_n + K'_nm / S_m) / 2.
    """
    shares = masses / np.maximum(whole.sums, LEAST_SUM)
    others = kernel_field(kernel, positions, positions[rows], shares)
    on_grid = all_sums(lambda squares: of_kernel(kernel, squares)[0], positions, shares, audit.memory // 2)
    assert on_grid is not None
    return tuple(  # type: ignore[return-value]
        one._replace(gradients=(one.gradients / np.maximum(one.sums, LEAST_SUM)[:, np.newaxis] + other.gradients) / 2)
        for one, other in ((field, others), (whole, on_grid))
    )


def drawn(audit: Audit, masses: np.ndarray) -> np.ndarray:
    """Return the rows (m,) at which forces are summed, ascending: of points with weights in proportion to these."""
    n_points, count = audit.run.n_points, min(TARGETS, audit.n_rows, audit.run.n_points)
    if audit.weights is None:
        return np.sort(audit.generator.choice(n_points, count, replace=False))
    return np.sort(audit.generator.choice(n_points, count, p=masses / masses.sum()))


class ToReference(NamedTuple):
    """The pull to a reference: what it adds to the objective, its gradient (N, d), and the distance that is claimed."""

    energy: float
    gradients: np.ndarray
    distance: float


class Layout(NamedTuple):
    """A map and what was summed of it: `field` exactly at the rows drawn, `whole` on a grid at all points."""

    audit: Audit
    objective: Objective
    positions: np.ndarray
    masses: np.ndarray
    rows: np.ndarray
    pull: Attraction
    field: Field
    whole: Field | None
    strength: float
    to_reference: ToReference | None = None

    def pulled(self, said: dict) -> ToReference:
        """Return the pull to the stored reference, w A 2 (a^2 - a c) / (1 + a^2) in the words of the theory."""
        reference, positions = self.audit.run.groups[STAGE].read("reference"), self.positions
        every = said.get("pulled") == len(positions)
        counted = self.masses[:, np.newaxis] * (1.0 if every else (reference != 0).any(axis=1, keepdims=True))
        total, weight = (
            counted.sum(),
            float(self.audit.run.param(STAGE, "global_weight")) * self.scale * self.pull.total,
        )
        centred = positions - (counted * positions).sum(axis=0) / total
        square, along = (counted * centred**2).sum() / total, (reference * centred).sum() / total
        size, wide = np.sqrt(square), 1.0 + square
        of_size = ((2 * size - along) * wide - 2 * size * (square - size * along)) / wide**2
        gradients = 2 * weight * (of_size * counted * centred / size - size / wide * reference) / total
        distance = np.sqrt(
            (counted * (centred / size - reference / np.where(counted > 0, counted, 1)) ** 2).sum() / total
        )
        return ToReference(float(2 * weight * (square - size * along) / wide), gradients, float(distance))

    @property
    def scale(self) -> float:
        """The factor that brings affinities to the total of the objective."""
        totals = {"given": self.pull.total, "one": 1.0, "points": float(self.masses.sum())}
        return totals[self.objective.total] / self.pull.total

    def estimated(self, of_copies: np.ndarray, on_grid: np.ndarray | None = None) -> tuple[float, float]:
        """Return the sum over all copies of all points, of values (m,) of one copy each, with its standard error.

        `on_grid` (N,) are nearly the values of all points: then it is theirs, and their error is what is estimated.
        """
        n_copies, n_drawn = float(self.masses.sum()), len(self.rows)
        left = 1.0 - n_drawn / len(self.positions) if self.audit.weights is None else 1.0
        known = 0.0
        if on_grid is not None and (of_copies - on_grid[self.rows]).std() < of_copies.std():
            known, of_copies = float(self.masses @ on_grid), of_copies - on_grid[self.rows]
        error = of_copies.std(ddof=1) / np.sqrt(n_drawn) if n_drawn > 1 else 0.0
        return known + float(of_copies.mean() * n_copies), float(error * n_copies * np.sqrt(max(0.0, left)))

    @property
    def sums(self) -> tuple[float, float]:
        """The sum of the kernel over all pairs, with its standard error."""
        return self.estimated(self.field.sums, None if self.whole is None else self.whole.sums)

    @property
    def repulsion(self) -> tuple[float, float]:
        """The term E- of the objective over all points, before its strength, with its standard error."""
        if self.objective.combine == "sum-log":
            exact, on_grid = (
                None if field is None else np.log(np.maximum(field.sums, LEAST_SUM))
                for field in (self.field, self.whole)
            )
            assert exact is not None
            return self.estimated(exact, on_grid)
        total, error = self.sums
        if self.objective.combine == "sum":
            return total, error
        return float(np.log(max(total, LEAST_SUM))), error / max(total, LEAST_SUM)

    def judge_objective(self, said: dict) -> Finding:
        """Compare the objective with the claim, within sampling, layout.tolerance and rounding."""
        push, error = self.repulsion
        value = self.scale * self.pull.energy + self.strength * push
        value += 0.0 if self.to_reference is None else self.to_reference.energy
        if self.objective.total != "given":
            total = self.pull.total
            value += self.scale * (self.pull.logarithms + total * np.log(self.scale))
        error, claimed = error * self.strength, said.get("objective")
        if not is_number(claimed):
            return unchecked(STAGE, "objective", "the record does not say it", claimed)
        tolerance = float(self.audit.run.param(STAGE, "tolerance", 1e-3))
        size = 1.0 if self.objective.combine == "log-sum" else abs(push)
        share = OF_OBJECTIVE.get(str(said.get("repulsion")), BY_OTHERS)
        slack = share * tolerance * self.strength * size + 1e-9 * abs(value)
        holds = abs(value - claimed) <= STANDARD_ERRORS * error + slack
        note = f"attraction over all of W, repulsion {self.how}"
        return Finding(STAGE, "objective", claimed, value, error, verdict_of(holds), note)

    @property
    def how(self) -> str:
        """How repulsion was summed, in words for the note of a finding."""
        exact = f"by double sums at {len(self.rows)} rows"
        return exact if self.whole is None else f"on a grid, corrected {exact}"

    def forces(self, field: Field, rows: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of attraction and repulsion (m, d) at some rows, of which the field is."""
        row_masses, factor = self.masses[rows][:, np.newaxis], 2.0 * self.strength
        if self.objective.combine == "log-sum":
            factor /= max(self.sums[0], LEAST_SUM)
        # Gradients of the kernel are by squared distances, and each pair is summed twice.
        exaggeration = float(self.audit.run.param(STAGE, "late_exaggeration", 1.0))
        pull = exaggeration * self.scale * self.pull.gradients[rows]
        if self.to_reference is not None:
            pull += self.to_reference.gradients[rows]
        return pull, factor * row_masses * field.gradients

    def squares(self, field: Field, rows: np.ndarray | slice) -> np.ndarray:
        """Return squared gradients (2, m) of one copy of some points: of all forces, and of repulsion."""
        pull, push = self.forces(field, rows)
        return np.stack([np.square(force).sum(axis=1) / self.masses[rows] for force in (pull + push, push)])

    def judge_gradient(self, said: dict) -> Finding:
        """Compare the norm of the gradient with the one before the last step."""
        name, claimed = "gradient_norm", said.get("gradient_norm")
        param = self.audit.run.param
        if not is_number(claimed):
            return unchecked(STAGE, name, "the record does not say it", claimed)
        if self.objective.combine == "sum-log" and self.whole is None:
            return unchecked(STAGE, name, "forces on a point need the sums of all others, and no grid is fine", claimed)
        if param(STAGE, "freeze") or "started" in said:
            return unchecked(STAGE, name, "frozen points have a gradient, which does not count", claimed)
        if int(said.get("iterations", 0)) <= int(param(STAGE, "exaggerated_iterations", 0)):
            return unchecked(STAGE, name, "the descent ended while attraction was exaggerated", claimed)
        exact = self.squares(self.field, self.rows)
        on_grid = None if self.whole is None else self.squares(self.whole, slice(None))
        (square, error), (of_push, _) = (
            self.estimated(exact[place], None if on_grid is None else on_grid[place]) for place in range(2)
        )
        norm, of_push = float(np.sqrt(max(0.0, square))), float(np.sqrt(max(0.0, of_push)))
        error = float(error / (2 * norm)) if norm > 0 else 0.0
        slack = STANDARD_ERRORS * error + 2 * float(param(STAGE, "tolerance", 1e-3)) * of_push
        holds = norm <= STEP * claimed + slack
        note = f"repulsion {self.how}; at most {STEP:g} times that before the last step"
        return Finding(STAGE, name, claimed, norm, error, verdict_of(holds), note)


def check_curve(audit: Audit, said: dict) -> Iterator[Finding]:
    """Check that the learning curve continues to the end that the record says."""
    curve = audit.run.groups[STAGE].read("curve")
    yield none_wrong(STAGE, "iterations of the curve ascend", int((np.diff(curve[:, 0]) <= 0).sum()))
    if len(curve) and is_number(said.get("iterations")):
        beyond = int((curve[:, 0] > said["iterations"]).sum())
        yield none_wrong(STAGE, "the curve ends by the last iteration", beyond)


def attraction(audit: Audit, objective: Objective, positions: np.ndarray, masses: np.ndarray) -> Attraction:
    """Return the sums over all entries of W, and the gradients, by blocks."""
    student, dof, gradients = objective.attraction == "student", objective.dof, np.zeros(positions.shape)
    total = energy = logarithms = 0.0
    for block, (start, stop) in enumerate(audit.run.blocks):
        matrix = read_block(audit, GRAPH, block)
        sources = np.repeat(np.arange(start, stop), np.diff(matrix.indptr))
        squares = np.square(positions[sources] - positions[matrix.indices]).sum(axis=1)
        weights = matrix.data
        total += float(weights.sum())
        energy += float((weights * (dof * np.log1p(squares / dof) if student else squares)).sum())
        positive = weights > 0
        pairs = masses[sources] * (masses[matrix.indices] - (sources == matrix.indices))
        terms = weights[positive] * np.log(weights[positive] / np.where(pairs > 0, pairs, 1.0)[positive])
        logarithms += float(terms.sum())
        matrix.data = 4.0 * weights / (1.0 + squares / dof) if student else 4.0 * weights
        rows = matrix.sum(axis=1).reshape(-1, 1)
        gradients[start:stop] = np.asarray(rows) * positions[start:stop] - matrix @ positions
    return Attraction(total, energy, logarithms, gradients)


def check_forces(audit: Audit, points: Points, rows: np.ndarray, field: Field) -> Iterator[Finding]:
    """Compare the certified errors with those at the rows of the run, and at rows (m,) drawn, where the sums are known.

    `field` are the exact sums at the rows drawn.
    """
    group = audit.run.groups[STAGE]
    said = group.certificates
    if not group.holds("forces"):
        why = "the run does not hold the approximate forces: it was made by an older version"
        for name in Measured._fields:
            yield unchecked(STAGE, name, why, said.get(name))
        return
    forces, sampled, weights = (group.read(name) for name in ("forces", "force_rows", "force_weights"))
    positions = points.positions
    exact = exact_forces(
        audit, points, sampled, kernel_field(points.objective.kernel, positions, positions[sampled], points.masses)
    )
    every = len(sampled) == len(forces)
    measured = errors_of(forces[sampled], exact, weights, float(np.square(forces).sum()) / len(forces), every)
    for name, value in measured._asdict().items():
        slack = OFF * measured.force_error if "decile" not in name else OFF * measured.worst_decile_force_error
        yield equal(STAGE, name, said.get(name), value, slack + ROUNDING, f"at the {len(sampled)} rows of the run")
    yield at_drawn_rows(said, forces[rows], exact_forces(audit, points, rows, field), 1.0 / points.masses[rows])


def exact_forces(audit: Audit, points: Points, rows: np.ndarray, field: Field) -> np.ndarray:
    """Return the exact forces (m, d) on one copy of each point of rows (m,), whose exact sums are known.

    Of objectives that divide by sums, those of the points that push are taken as the run has them.
    """
    if points.objective.combine != "sum-log":
        return field.gradients
    shares = points.masses / np.maximum(audit.run.groups[STAGE].read("force_sums"), LEAST_SUM)
    others = kernel_field(points.objective.kernel, points.positions, points.positions[rows], shares)
    return np.asarray(field.gradients / np.maximum(field.sums, LEAST_SUM)[:, np.newaxis] + others.gradients)


def errors_of(forces: np.ndarray, exact: np.ndarray, weights: np.ndarray, size: float, every: bool) -> Measured:
    """Return the relative errors of all forces from those (m, d) at some points, whose weights (m,) mean one.

    `size` is the mean square of all forces; of `every` point errors have no standard error. Squares of exact forces
    are estimated by their ratio to those of the approximate ones, which varies less than they do.
    """
    errors, lengths, approximate = (np.linalg.norm(one, axis=1) for one in (forces - exact, exact, forces))
    terms = weights * np.square([errors, lengths, approximate])
    error, length, seen = terms.mean(axis=1)
    total = length * size / seen if seen > 0 else length
    whole = float(np.sqrt(error / total) if total > 0 else np.sqrt(error) / LEAST_FORCE)
    shares = errors / np.maximum(lengths, LEAST_FORCE)
    worst = quantile(shares, weights, 0.9)
    if every:
        return Measured(whole, worst, 0.0, 0.0)
    signed = [
        sign * one / mean for sign, one, mean in zip((1, -1, 1), terms, (error, length, seen), strict=True) if mean > 0
    ]
    variation = float(np.std(np.sum(signed, axis=0), ddof=1)) if signed else 0.0
    spread = float(np.std(weights * ((shares > worst) - 0.1), ddof=1)) / np.sqrt(len(weights))
    most = quantile(shares, weights, 0.9 + CERTAIN * spread)
    return Measured(whole, worst, whole * variation / (2 * np.sqrt(len(weights))), (most - worst) / CERTAIN)


def quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Return a quantile of values (m,) of some weights (m,): with equal ones that of `numpy.quantile`."""
    order = np.argsort(values, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    return float(np.interp(share, before / before[-1], values[order]))


def at_drawn_rows(said: dict, forces: np.ndarray, exact: np.ndarray, weights: np.ndarray) -> Finding:
    """Compare the certified error with that of forces (m, d) at rows that the audit has drawn: it is no larger."""
    name, claimed = "force_error, at rows drawn", said.get("force_error")
    if not is_number(claimed):
        return unchecked(STAGE, name, "the record does not say it", claimed)
    weights = weights / weights.mean()
    measured = errors_of(forces, exact, weights, float((weights * np.square(forces).sum(axis=1)).mean()), False)
    of_run = said.get("force_standard_error")
    error = float(np.hypot(measured.force_standard_error, of_run if is_number(of_run) else 0.0))
    holds = measured.force_error <= (1 + SHARE) * claimed + STANDARD_ERRORS * error + ROUNDING
    note = f"at most, by double sums at {len(forces)} rows"
    return Finding(STAGE, name, claimed, measured.force_error, error, verdict_of(holds), note)
