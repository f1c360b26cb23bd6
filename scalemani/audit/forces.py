"""The errors of the approximate forces at the end of a descent, against double sums over all points.

A run stores the approximate forces of all points, and the rows at which it measured their errors. At these rows the
audit sums anew and has to find the same errors; at rows that it draws itself they must be no larger, so that the rows
of the run stand for all.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from scalemani.audit.findings import STANDARD_ERRORS, Finding, equal, is_number, unchecked, verdict_of
from scalemani.audit.kernel_sums import Field, kernel_field
from scalemani.audit.rows import Audit
from scalemani.config.objectives import Objective

STAGE = "layout"
LEAST_SUM = 1e-300
LEAST_FORCE = 1e-3  # below which errors of single points are no longer relative to their force
CERTAIN = 2.0  # standard errors by which the quantile of a standard error is higher
# Numbers that are computed twice differ by as much, as a share of them: rounding moves a quantile between points.
OFF, ROUNDING = 1e-3, 1e-10
# By which share errors at rows drawn evenly may be larger: a run draws where points are dense, and where errors are
# large at few points a sample may have met none.
SHARE = 0.5


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
