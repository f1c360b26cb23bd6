"""Bounds that residuals of Ritz pairs allow, computed anew: angles to exact subspaces, and errors of eigenvalues.

With the last leading Ritz value theta_d, residuals R1 of the leading ones, and pairs (theta_k, r_k) that follow, the
sine of the largest principal angle is at most |R1| / G sqrt(1 + sum_k (r_k / (theta_d - theta_k))^2), where
G = theta_d - theta_i - r_i - sum_k r_k^2 / (theta_d - theta_k) > 0 and k are those that follow before i; eigenvalues
err by at most |R1| and |R1|^2 / G. The best i counts. Where vectors are rounded so that products of two of them are not
zero, that over the first gap is added to sines next to other pairs, and to errors of eigenvalues.

Sources: Davis and Kahan 1970, The rotation of eigenvectors by a perturbation III; Nakatsukasa 2020, Sharp error bounds
for Ritz vectors and approximate singular vectors.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from scalemani.audit.findings import Finding, equal, is_number, unchecked, verdict_of

OFF = 1e-4  # by which residuals that are computed twice may differ, as a share of them
ROUNDING = 1e-11  # and besides, as a share of the largest eigenvalue


class Pairs(NamedTuple):
    """Ritz values (m,), descending, with residuals (m,) of unit vectors; the first `n_leading` are an embedding's.

    `scale` is what residuals are stated relative to, `largest` a bound of all eigenvalues, `rounding` what products of
    two different Ritz vectors may be for rounding, relative to `scale`.
    """

    values: np.ndarray
    residuals: np.ndarray
    n_leading: int
    scale: float
    largest: float = np.inf
    rounding: float = 0.0


class Bounds(NamedTuple):
    """What residuals allow: angles in radians, infinite where there is no bound."""

    angle: float
    error: float
    resolved: int
    resolved_angle: float


def sine_and_error(
    values: np.ndarray, residuals: np.ndarray, n_leading: int, rounding: float = 0.0
) -> tuple[float, float]:
    """Return bounds of the sine of the angle and of the error of eigenvalues, of the first `n_leading` pairs."""
    last, length = values[n_leading - 1], float(np.linalg.norm(residuals[:n_leading]))
    following, off = values[n_leading:], residuals[n_leading:]
    beyond = np.flatnonzero(following >= last)
    counted = slice(int(beyond[0]) + 1 if len(beyond) else len(following))
    following, off = following[counted], off[counted]
    away = np.where(following < last, last - following, np.inf)
    lost = np.cumsum(off**2 / away) - off**2 / away
    turned = 1.0 + np.cumsum((off / away) ** 2) - (off / away) ** 2
    gaps, coupled = last - following - off - lost, np.zeros(len(following))
    if rounding:
        coupled[1:] = rounding / away[0] if following[0] < last else np.inf
    open_gaps = gaps > 0
    if not open_gaps.any():
        return np.inf, length
    sines = length / gaps[open_gaps] * np.sqrt(turned[open_gaps]) + coupled[open_gaps]
    return float(sines.min()), min(length, length**2 / float(gaps.max()))


def bounds_of(pairs: Pairs) -> Bounds:
    """Return what residuals allow of the first `n_leading` pairs; the error of eigenvalues in units of `scale`."""
    values, residuals = pairs.values / pairs.scale, pairs.residuals / pairs.scale
    if pairs.n_leading == len(values):  # what follows is not known: it is taken to be as large
        values, residuals = np.append(values, values[-1]), np.append(residuals, residuals.max())
    angles: list[float] = []
    least_error = np.inf
    for count in range(pairs.n_leading, 0, -1):
        sine, error = sine_and_error(values, residuals, count, pairs.rounding)
        if not angles:
            above = max(0.0, pairs.largest / pairs.scale - float(values[count - 1]))
            least_error = min(error, above) + pairs.rounding
        angles.append(float(np.arcsin(sine)) if sine < 1 else np.inf)
        if sine < 1:
            return Bounds(angles[0], least_error, count, angles[-1])
    return Bounds(angles[0], least_error, 0, np.inf)


def judge_pairs(stage: str, said: dict[str, Any], pairs: Pairs) -> Iterator[Finding]:
    """Compare what is certified of leading pairs with what residuals allow, as far as these are known to rounding."""
    off, floor = OFF * pairs.residuals, ROUNDING * pairs.scale
    least = bounds_of(pairs._replace(residuals=np.maximum(pairs.residuals - off - floor, 0.0)))
    most = bounds_of(pairs._replace(residuals=pairs.residuals + off + floor))
    residual = float(pairs.residuals[: pairs.n_leading].max() / pairs.scale)
    yield equal(stage, "residual", said.get("residual"), residual, OFF * residual + ROUNDING, "over all points")
    values = pairs.values
    gap = float(values[pairs.n_leading - 1] - values[min(pairs.n_leading, len(values) - 1)])
    slack = OFF * abs(gap) + ROUNDING * pairs.scale
    yield equal(stage, "eigengap", said.get("eigengap"), gap, slack, "to the next value of the landmarks' problem")
    yield between(stage, "angle_bound", said, least.angle, most.angle)
    yield between(stage, "eigenvalue_error_bound", said, least.error * pairs.scale, most.error * pairs.scale)
    yield between(stage, "resolved_components", said, most.resolved, least.resolved)
    if least.resolved == most.resolved:
        yield between(stage, "resolved_angle_bound", said, least.resolved_angle, most.resolved_angle)


def between(stage: str, name: str, said: dict[str, Any], least: float, most: float) -> Finding:
    """Compare a claim with the least and the most that it may be; one that is left out is infinite."""
    if name not in said:
        return unchecked(stage, name, "the record does not say it")
    value = said[name]
    number = float(value) if is_number(value) else np.inf if value is None else np.nan
    holds = least * (1 - OFF) <= number <= most * (1 + OFF)
    return Finding(stage, name, value, float(least), None, verdict_of(holds), "by residuals over all points")
