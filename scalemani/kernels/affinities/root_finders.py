"""Root finders for H(beta) = log K of one row: derivative steps inside a bracket, and three without derivatives.

All of them take the row, a start, and a bracket [lower, upper] with H(lower) >= log K >= H(upper), all in units of
1 / squared distance; they leave the exponentials of the root in the row. Source: [EA] 2.3.3.
"""

import math

import numpy as np

from scalemani.kernels.affinities.entropy import MAX_STEPS, Root, Row, entropy_and_derivatives, value_at
from scalemani.kernels.machine.compile import compiled


@compiled
def ridder_root(row: Row, start: float, lower: float, upper: float) -> Root:
    """Solve by Ridder's method in log beta: the start, then in turn the middle of the bracket and Ridder's point.

    Parameters
    ----------
    row, start, lower, upper : those of `root`

    References
    ----------
    Ridders, A new algorithm for computing a single root of a real continuous function, 1979.
    """
    low, high = math.log(lower), math.log(upper)
    _, low_value = value_at(row, lower)
    total, value = value_at(row, upper)
    high_value, beta = value, upper
    point = math.log(start)
    from_middle = False  # the formula holds from the middle of the bracket only
    steps = 1
    while abs(value) > row.tolerance and steps < MAX_STEPS:
        if not low < point < high:
            point, from_middle = 0.5 * (low + high), True
            if not low < point < high:
                break
        beta = math.exp(point)
        total, value = value_at(row, beta)
        steps += 1
        following = 0.5 * (low + high)
        if from_middle:
            following += (point - low) * value / math.sqrt(value * value - low_value * high_value)
        if value > 0.0:
            low, low_value = point, value
        else:
            high, high_value = point, value
        point = following if from_middle else 0.5 * (low + high)
        from_middle = not from_middle
    return Root(beta, total, value, steps)


@compiled
def brent_point(
    best: float, best_value: float, counter: float, counter_value: float, former: float, former_value: float
) -> float:
    """Return the secant or inverse quadratic step from `best`.

    Parameters
    ----------
    former, former_value : of the best point before; the step is the secant's where it is the other end

    References
    ----------
    Brent, Algorithms for minimization without derivatives, 1973, chapter 4.
    """
    ratio = best_value / former_value
    if former == counter:
        return (counter - best) * ratio / (ratio - 1.0)
    q = former_value / counter_value
    r = best_value / counter_value
    numerator = ratio * ((counter - best) * q * (q - r) - (best - former) * (r - 1.0))
    return -numerator / ((q - 1.0) * (r - 1.0) * (ratio - 1.0))


@compiled
def brent_root(row: Row, start: float, lower: float, upper: float) -> Root:
    """Solve by Brent's method in log beta from the bracket cut at `start`.

    The root lies between `best`, the smaller value, and `counter`; `former` is the best before.

    Parameters
    ----------
    row, start, lower, upper : those of `root`
    """
    counter, former, best = math.log(upper), math.log(lower), math.log(start)
    # an end within tolerance is an answer, and may have lost its sign to rounding
    total, counter_value = value_at(row, upper)
    if abs(counter_value) <= row.tolerance:
        return Root(upper, total, counter_value, 0)
    total, former_value = value_at(row, lower)
    if abs(former_value) <= row.tolerance:
        return Root(lower, total, former_value, 1)
    total, value = value_at(row, start)
    beta, best_value = start, value
    previous_step = step = counter - former
    steps = 2
    while abs(value) > row.tolerance and steps < MAX_STEPS:
        if (best_value > 0.0) == (counter_value > 0.0):
            counter, counter_value = former, former_value
            previous_step = step = best - former
        if abs(counter_value) < abs(best_value):
            former, former_value = best, best_value
            best, best_value = counter, counter_value
            counter, counter_value = former, former_value
        half = 0.5 * (counter - best)
        attempt = brent_point(best, best_value, counter, counter_value, former, former_value)
        if attempt * half > 0.0 and abs(attempt) < min(1.5 * abs(half), 0.5 * abs(previous_step)):
            previous_step, step = step, attempt
        else:
            previous_step = step = half
        following = best + step
        if following in (best, counter):
            break
        former, former_value = best, best_value
        beta = math.exp(following)
        total, value = value_at(row, beta)
        best, best_value = following, value
        steps += 1
    return Root(beta, total, value, steps)


NEWTON, HALLEY, EULER, BISECTION, BRENT, RIDDER = range(6)
SOLVERS = {
    "newton": NEWTON,
    "halley": HALLEY,
    "euler": EULER,
    "bisection": BISECTION,
    "brent": BRENT,
    "ridder": RIDDER,
}
WITHOUT_SLOPES = ("brent", "ridder")
MAX_DERIVATIVE_STEPS = 20  # of algorithm 1: a bisection follows


@compiled
def derivative_step(solver: int, value: float, slope: float, curvature: float) -> float:
    """Return the step in log beta of Newton, Halley or Euler: -F/F' h(t), t = F F'' / F'^2, after Gander.

    *Erratum of the thesis.* Halley's step has h = 1 / (1 - t/2), which is -2 F F' / (2 F'^2 - F F''): section 2.3.3,
    equation (2.14), adds F F'' where it is to be subtracted. Where Euler's roots are complex the step is Newton's.
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
        value = entropy - row.target
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
def root(row: Row, start: float, lower: float, upper: float, solver: int, without_slopes: bool | None) -> Root:
    """Solve one row.

    Parameters
    ----------
    start : beta; one outside the bracket is replaced by the bracket's middle in log beta
    lower, upper : the bracket, H(lower) >= log K >= H(upper)
    solver : a value of `SOLVERS`
    without_slopes : True for those of `WITHOUT_SLOPES`, else None: their code is then left out
    """
    if not lower < start < upper:
        start = math.sqrt(lower) * math.sqrt(upper)
    if without_slopes is not None:
        if solver == BRENT:
            return brent_root(row, start, lower, upper)
        return ridder_root(row, start, lower, upper)
    return safeguarded_root(row, start, lower, upper, solver)
