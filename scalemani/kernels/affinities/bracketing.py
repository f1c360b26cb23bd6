"""Root finders without derivatives for H(beta) = log K of one row: Ridder's and Brent's. Source: [EA] 2.3.3."""

import math

from scalemani.kernels.affinities.row_problem import MAX_STEPS, Root, Row, value_at
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
    best, best_value : log beta and F of the point nearest to the root so far
    counter, counter_value : of the other end of the bracket
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
