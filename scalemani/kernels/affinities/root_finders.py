"""Root finders for H(beta) = log K of one row: derivative steps inside a bracket, and three without derivatives.

All of them take the row, a start, and a bracket [lower, upper] with H(lower) >= log K >= H(upper), all in units of
1 / squared distance; they leave the exponentials of the root in the row. Source: [EA] 2.3.3.
"""

import math

import numpy as np

from scalemani.kernels.affinities.bracketing import brent_root, ridder_root
from scalemani.kernels.affinities.entropy import entropy_and_derivatives
from scalemani.kernels.affinities.row_problem import MAX_STEPS, Root, Row
from scalemani.kernels.machine.compile import compiled

NEWTON, HALLEY, EULER, BISECTION, BRENT, RIDDER = range(6)
SOLVERS = {
    "newton": NEWTON,
    "halley": HALLEY,
    "euler": EULER,
    "bisection": BISECTION,
    "brent": BRENT,
    "ridder": RIDDER,
}
MAX_DERIVATIVE_STEPS = 20  # of algorithm 1: a bisection follows


@compiled
def derivative_step(solver: int, value: float, slope: float, curvature: float) -> float:
    """Return the step in log beta of Newton, Halley or Euler: -F/F' h(t), t = F F'' / F'^2, after Gander.

    *Erratum of the thesis.* Halley's step has h = 1 / (1 - t/2), which is -2 F F' / (2 F'^2 - F F''): section 2.3.3,
    equation (2.14), adds F F'' where it is to be subtracted. Where Euler's roots are complex the step is Newton's.

    Parameters
    ----------
    solver : NEWTON, HALLEY or EULER
    value, slope, curvature : F and its first two derivatives in log beta
    """
    newton = -value / slope
    if solver == HALLEY:
        return newton / (1.0 - 0.5 * value * curvature / (slope * slope))
    if solver == EULER:
        discriminant = 1.0 - 2.0 * value * curvature / (slope * slope)
        if discriminant >= 0.0:
            return 2.0 * newton / (1.0 + math.sqrt(discriminant))
    return newton


@compiled
def safeguarded_root(row: Row, start: float, lower: float, upper: float, solver: int) -> Root:
    """Solve by derivative steps, and by bisection in log beta when one leaves the bracket: [EA] algorithm 1.

    Parameters
    ----------
    row, start, lower, upper, solver : those of `root`; without derivative steps for `BISECTION`
    """
    beta = start
    steps = derivative_steps = 0
    while True:
        total, entropy, slope, curvature = entropy_and_derivatives(row.differences, row.exponentials, row.masses, beta)
        value = entropy - row.log_perplexity
        if abs(value) <= row.tolerance or steps == MAX_STEPS:
            break
        if value > 0.0:
            lower = beta
        else:
            upper = beta
        candidate = np.nan
        if solver != BISECTION and derivative_steps < MAX_DERIVATIVE_STEPS:
            candidate = beta * math.exp(derivative_step(solver, value, slope, curvature))
            derivative_steps += 1
        if not lower < candidate < upper:
            candidate = math.sqrt(lower) * math.sqrt(upper)
            derivative_steps = 0
            if not lower < candidate < upper:
                break
        beta = candidate
        steps += 1
    return Root(beta, total, value, steps)


@compiled
def root(row: Row, start: float, lower: float, upper: float, solver: int) -> Root:
    """Solve one row.

    Parameters
    ----------
    row : its problem; the exponentials of the root are left in it
    start : beta; one outside the bracket is replaced by the bracket's middle in log beta
    lower, upper : the bracket, H(lower) >= log K >= H(upper)
    solver : a value of `SOLVERS`
    """
    if not lower < start < upper:
        start = math.sqrt(lower) * math.sqrt(upper)
    if solver == BRENT:
        return brent_root(row, start, lower, upper)
    if solver == RIDDER:
        return ridder_root(row, start, lower, upper)
    return safeguarded_root(row, start, lower, upper, solver)
