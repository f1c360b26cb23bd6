"""Every root finder against algorithm 1 of the thesis written out, with the step of its own formula."""

import math

import numpy as np
import pytest

from scalemani.kernels.affinities.entropic import entropic_affinities
from scalemani.kernels.affinities.entropy import bracket, differences_from_nearest, entropy_problem, padded_length
from scalemani.kernels.affinities.root_finders import SOLVERS, derivative_step

PERPLEXITY, K = 8.0, 30


def newton_step(value, slope, curvature):
    return -value / slope


def halley_step(value, slope, curvature):
    """Erratum of thesis section 2.3.3, which writes 2 F'^2 + F F'': the sign is that of Halley's own formula."""
    return -2 * value * slope / (2 * slope**2 - value * curvature)


def euler_step(value, slope, curvature):
    """The root, nearer to zero, of F + F' s + F'' s^2 / 2; Newton's step where it is complex."""
    square = slope**2 - 2 * value * curvature
    if square < 0:
        return newton_step(value, slope, curvature)
    roots = np.roots([curvature / 2, slope, value]).real
    return roots[np.argmin(np.abs(roots))]


STEPS = {"newton": newton_step, "halley": halley_step, "euler": euler_step}


def rows_of(n_rows, seed=0):
    draws = np.random.default_rng(seed)
    return np.sort(draws.gamma(3.0, 10.0, (n_rows, 1)) * (1.0 + draws.gamma(2.0, 0.3, (n_rows, K))), axis=1)


def excess(squared, alpha):
    """F = H - log K and its first two derivatives in alpha = log beta, from moments of d^2 (thesis section 2.3.1)."""
    beta, differences = math.exp(alpha), squared - squared[0]
    p = np.exp(-beta * differences)
    total = p.sum()
    p /= total
    m1, m2, m3 = (p @ differences**power for power in (1, 2, 3))
    value = beta * m1 + math.log(total) - math.log(PERPLEXITY)
    slope = beta**2 * (m1**2 - m2)
    return value, slope, 2 * slope + beta**3 * (m3 - 3 * m1 * m2 + 2 * m1**3)


def plain_search(squared, step, tolerance):
    """Return the number of steps of algorithm 1 from the middle of the bracket."""
    differences = np.empty(padded_length(K))
    n_ties = differences_from_nearest(squared, differences)
    lower, upper = map(math.log, bracket(differences, n_ties, entropy_problem(K, PERPLEXITY, tolerance)))
    alpha, since_bisection = (lower + upper) / 2, 0
    for number in range(200):
        value, slope, curvature = excess(squared, alpha)
        if abs(value) <= tolerance:
            return number
        lower, upper = (alpha, upper) if value > 0 else (lower, alpha)
        following = alpha + step(value, slope, curvature) if step and since_bisection < 20 else math.nan
        since_bisection += 1
        if not lower < following < upper:
            following, since_bisection = (lower + upper) / 2, 0
        alpha = following
    raise AssertionError("no root")


@pytest.mark.parametrize("solver", STEPS)
def test_a_step_is_that_of_its_formula(solver):
    draws = np.random.default_rng(1)
    for value, slope, curvature in zip(
        draws.normal(size=200), -draws.gamma(2.0, size=200), draws.normal(size=200), strict=True
    ):
        expected = STEPS[solver](value, slope, curvature)
        assert derivative_step(SOLVERS[solver], value, slope, curvature) == pytest.approx(expected, rel=1e-9)


def test_newton_halley_and_euler_step_apart():
    steps = [derivative_step(SOLVERS[solver], 0.5, -2.0, 1.0) for solver in STEPS]
    assert steps == pytest.approx([0.25, 0.5 * 2 / (4 - 0.25), 2 * 0.25 / (1 + math.sqrt(0.75))])
    assert len(set(steps)) == 3


def test_erratum_halleys_step_subtracts_the_curvature_that_the_thesis_adds():
    """With the sign as printed an error of 0.05 is left larger than Newton leaves it, with Halley's own far smaller."""

    def printed(value, slope, curvature):
        return -2 * value * slope / (2 * slope**2 + value * curvature)

    squared = rows_of(40)
    roots = np.log(entropic_affinities(squared, PERPLEXITY, tol=1e-14).beta)
    away = [excess(row, root + 0.05) for row, root in zip(squared, roots, strict=True)]
    own, newton = (
        np.array([abs(0.05 + derivative_step(SOLVERS[solver], *values)) for values in away])
        for solver in ("halley", "newton")
    )
    as_printed = np.array([abs(0.05 + printed(*values)) for values in away])
    assert np.median(own) < 0.5 * np.median(newton)
    assert (as_printed > newton).mean() > 0.9


@pytest.mark.parametrize("solver", [*STEPS, "bisection"])
def test_a_search_takes_the_steps_of_algorithm_1(solver):
    squared = rows_of(60)
    found = entropic_affinities(squared, PERPLEXITY, solver=solver, order="bounds", tol=1e-9)
    expected = [plain_search(row, STEPS.get(solver), 1e-9) for row in squared]
    # A value at the tolerance itself may fall to either side of it.
    assert np.mean(found.iterations == expected) > 0.95
    assert np.abs(found.iterations - expected).max() <= 1


@pytest.mark.parametrize("perplexity", [2.0, PERPLEXITY, 25.0])
def test_all_root_finders_agree_and_newton_takes_ten_steps_at_most_for_most_rows(perplexity):
    squared = rows_of(400, seed=2)
    found = {
        solver: entropic_affinities(squared, perplexity, solver=solver, order="bounds", tol=1e-12) for solver in SOLVERS
    }
    alphas = {solver: np.log(one.beta) for solver, one in found.items()}
    slopes = [excess(row, alpha)[1] for row, alpha in zip(squared, alphas["bisection"], strict=True)]
    known = np.maximum(1e-10, 2e-12 / np.abs(slopes))  # where the entropy hardly changes, beta is known less well
    assert np.median(known) == 1e-10
    for solver, alpha in alphas.items():
        assert (np.abs(alpha - alphas["bisection"]) <= known).all(), solver
    assert np.median(found["newton"].iterations) <= 10
    assert found["bisection"].iterations.max() <= 60


def test_newton_squares_the_error_and_halley_and_euler_cube_it_each_its_own_way():
    squared = rows_of(40)
    roots = np.log(entropic_affinities(squared, PERPLEXITY, tol=1e-14).beta)
    errors = {
        solver: np.array(
            [
                [abs(away + derivative_step(SOLVERS[solver], *excess(row, root + away))) for away in (0.05, 0.025)]
                for row, root in zip(squared, roots, strict=True)
            ]
        )
        for solver in STEPS
    }
    orders = {solver: np.median(np.log2(missed[:, 0] / missed[:, 1])) for solver, missed in errors.items()}
    assert orders["newton"] == pytest.approx(2, abs=0.15)
    assert orders["halley"] == pytest.approx(3, abs=0.15)
    assert orders["euler"] == pytest.approx(3, abs=0.15)
    assert np.median(np.abs(errors["halley"] / errors["euler"] - 1)) > 0.05
