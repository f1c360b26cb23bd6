"""A nonlinear embedding: its objective and the norm of its gradient.

Attraction is summed over all of W. Repulsion is summed on a grid for all points, and exactly for rows that are drawn:
these show how far off the grid is on the mean, which is added. Without a grid they stand for all.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from scalemani.audit.findings import STANDARD_ERRORS, Finding, is_number, none_wrong, unchecked, verdict_of
from scalemani.audit.forces import Points, check_forces
from scalemani.audit.graph import STAGE as GRAPH
from scalemani.audit.graph import read_block
from scalemani.audit.kernel_sums import Field, all_sums, kernel_field, of_kernel
from scalemani.audit.rows import Audit
from scalemani.config.objectives import OBJECTIVES, Objective

STAGE = "layout"
TARGETS = 500  # rows, at most, at which forces are summed over all points
LEAST_SUM = 1e-300
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


def check_layout(audit: Audit) -> Iterator[Finding]:
    """Check that positions are finite, errors of forces, and objective and gradient norm at the end of the descent."""
    group = audit.run.groups[STAGE]
    said, objective = group.certificates, OBJECTIVES.get(audit.run.method)
    positions = group.read("embedding").astype(np.float64)[audit.order]
    yield none_wrong(STAGE, "positions are finite", int((~np.isfinite(positions)).any(axis=1).sum()))
    if objective is None:
        yield unchecked(STAGE, "objective", f"{audit.run.method} is no objective that this audit knows")
        return
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
    yield layout.judge_objective(said)
    yield layout.judge_gradient(said)
    yield from check_curve(audit, said)


def of_logarithms(
    audit: Audit,
    kernel: str,
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
        return self.scale * self.pull.gradients[rows], factor * row_masses * field.gradients

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
    student, gradients = objective.attraction == "student", np.zeros(positions.shape)
    total = energy = logarithms = 0.0
    for block, (start, stop) in enumerate(audit.run.blocks):
        matrix = read_block(audit, GRAPH, block)
        sources = np.repeat(np.arange(start, stop), np.diff(matrix.indptr))
        squares = np.square(positions[sources] - positions[matrix.indices]).sum(axis=1)
        weights = matrix.data
        total += float(weights.sum())
        energy += float((weights * (np.log1p(squares) if student else squares)).sum())
        positive = weights > 0
        pairs = masses[sources] * (masses[matrix.indices] - (sources == matrix.indices))
        terms = weights[positive] * np.log(weights[positive] / np.where(pairs > 0, pairs, 1.0)[positive])
        logarithms += float(terms.sum())
        matrix.data = 4.0 * weights / (1.0 + squares) if student else 4.0 * weights
        rows = matrix.sum(axis=1).reshape(-1, 1)
        gradients[start:stop] = np.asarray(rows) * positions[start:stop] - matrix @ positions
    return Attraction(total, energy, logarithms, gradients)
