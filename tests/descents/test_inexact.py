"""Theorem 5.4.1 of the thesis: where descents with inexact forces end, E* + mu / (1 - r), against Hessians by NumPy."""

from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from scalemani.config.objectives import OBJECTIVES
from scalemani.descents.descent import FixedStep, State, step
from scalemani.descents.directions import preconditioned
from scalemani.descents.problem import Problem
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.repulsion.pair_sums import ExactSums, PairSums

N_POINTS, STRENGTH, ITERATIONS, SETTLING = 8, 1.5, 12_000, 500


class NoisySums(PairSums):
    """Exact sums of a Gaussian whose gradients err by normal draws of a deviation."""

    exact: ClassVar[bool] = True

    def __init__(self, deviation):
        self.kernel, self.deviation, self.draws = "gaussian", deviation, np.random.default_rng(7)

    def field(self, sources, targets=None, charges=None):
        sums, gradients = ExactSums("gaussian").field(sources, targets, charges)
        return sums, gradients + self.deviation * self.draws.normal(size=gradients.shape)


def plain_gradient(x, affinities):
    """The gradient of the elastic embedding, by its definition."""
    positions = x.reshape(N_POINTS, 2)
    apart = positions[:, np.newaxis] - positions
    weights = affinities - STRENGTH * np.exp(-(apart**2).sum(axis=2)) * (1 - np.eye(N_POINTS))
    return 4 * (weights[:, :, np.newaxis] * apart).sum(axis=1).ravel()


def plain_value(x, affinities):
    positions = x.reshape(N_POINTS, 2)
    squares = ((positions[:, np.newaxis] - positions) ** 2).sum(axis=2)
    return (affinities * squares + STRENGTH * np.exp(-squares) * (1 - np.eye(N_POINTS))).sum()


@pytest.fixture(scope="module")
def minimum():
    """Dense affinities, a minimum of the elastic embedding by SciPy, and the eigenvalues of the Hessian there."""
    draws = np.random.default_rng(2)
    affinities = 0.3 + draws.random((N_POINTS, N_POINTS))
    affinities = (affinities + affinities.T) * (1 - np.eye(N_POINTS)) / 2
    start = draws.normal(size=2 * N_POINTS)
    found = minimize(plain_value, start, (affinities,), "BFGS", plain_gradient, options={"gtol": 1e-10}).x
    columns = [
        (plain_gradient(found + 1e-5 * unit, affinities) - plain_gradient(found - 1e-5 * unit, affinities)) / 2e-5
        for unit in np.eye(found.size)
    ]
    curvatures = np.linalg.eigvalsh((np.array(columns) + np.array(columns).T) / 2)
    assert curvatures[0] > -1e-4
    assert (curvatures[3:] > 1e-2).all()  # two shifts and a turn leave the value as it is
    return affinities, found.reshape(N_POINTS, 2), curvatures[3:]


def ended(minimum, length, deviation):
    """The mean of E - E* after each of many steps with inexact forces, and its standard error."""
    affinities, positions, _ = minimum
    matrix = sp.csr_matrix(affinities)
    rows = AffinityRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data)
    problem = Problem(rows, OBJECTIVES["elastic-embedding"], 1.0, STRENGTH)
    state, sums, gaps = State(positions), NoisySums(deviation), []
    for _ in range(ITERATIONS):
        state = step(problem, sums, preconditioned(np.copy), FixedStep(length), state)
        gaps.append(plain_value(state.positions.ravel(), affinities))
    settled = np.array(gaps[SETTLING:]) - plain_value(positions.ravel(), affinities)
    parts = settled.reshape(20, -1).mean(axis=1)
    return parts.mean(), parts.std(ddof=1) / np.sqrt(len(parts))


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_a_descent_ends_above_the_minimum_as_the_theorem_has_it(minimum, share):
    """Each mode of the Hessian has a rate: their ends add up, and the slowest rate for all is above."""
    curvatures = minimum[2]
    length = share / curvatures[-1]
    deviation = 2e-3 / length / (2 * STRENGTH)  # of gradients of sums, that a step errs by xi = 2e-3 in each coordinate
    gap, error = ended(minimum, length, deviation)
    rates = (1 - length * curvatures) ** 2  # of E - E* an iteration
    by_modes = (0.5 * 2e-3**2 * curvatures / (1 - rates)).sum()
    mu = 0.5 * 2e-3**2 * curvatures.sum()
    assert gap == pytest.approx(by_modes, abs=4 * error + 0.05 * by_modes)
    assert mu < mu / (1 - rates.min()) < gap < mu / (1 - rates.max())
    assert error < 0.1 * by_modes


def test_the_end_goes_with_the_square_of_the_error(minimum):
    length = 0.4 / minimum[2][-1]
    gaps = [ended(minimum, length, xi / length / (2 * STRENGTH))[0] for xi in (1e-3, 4e-3)]
    assert gaps[1] / gaps[0] == pytest.approx(16, rel=0.1)


def test_exact_forces_stay_at_the_minimum(minimum):
    assert abs(ended(minimum, 0.4 / minimum[2][-1], 0.0)[0]) < 1e-12
