"""Points of a map placed anew: beside the whole objective with one point moved, and the formulas of neMDBD.

The oracle is that of Liu, Ma and Zhong (arXiv 2410.16608): the leave-one-out loss of t-SNE, its Hessian, and its
minimum by SciPy, in dense NumPy.
"""

import functools

import numpy as np
import pytest
from scipy.optimize import minimize

from scalemani.config.objectives import OBJECTIVES
from scalemani.descents.placement import FixedSources, PlacementProblem, place_points, rows_of_lists
from scalemani.descents.repulsion import make_repulsion

N = 1000
METHODS = ("t-sne", "s-sne", "elastic-embedding", "t-ee")
STRENGTH = {"t-sne": 1.0, "s-sne": 1.0, "elastic-embedding": 1e-3, "t-ee": 1e-3}
KERNELS = {"gaussian": lambda squares: np.exp(-squares), "student": lambda squares: 1 / (1 + squares)}


@functools.cache
def drawn():
    """Return positions (N, 2) of four clusters, and symmetric affinities of a total of one."""
    draws = np.random.default_rng(3)
    positions = 3.0 * draws.integers(0, 2, size=(N, 2)) + 0.6 * draws.normal(size=(N, 2))
    away = ((positions[:, np.newaxis] - positions) ** 2).sum(axis=2) + draws.uniform(0, 6.0, size=(N, N))
    near = np.argsort(away + 1e9 * np.eye(N), axis=1)[:, :20]
    affinities = np.zeros((N, N))
    np.put_along_axis(affinities, near, draws.uniform(0.2, 1.0, size=near.shape), axis=1)
    affinities += affinities.T
    return positions, affinities / affinities.sum()


def own_problem(method, own, repulsion="exact"):
    """Return the problem of rows of the map, in the terms of the module."""
    positions, affinities = drawn()
    objective = OBJECTIVES[method]
    fixed = FixedSources(make_repulsion(repulsion, objective.kernel, 1e-5), positions)
    squares = ((positions[:, np.newaxis] - positions) ** 2).sum(axis=2)
    sums = KERNELS[objective.kernel](squares).sum(axis=1) - 1.0
    of_sum = objective.combine == "sum"
    return PlacementProblem(
        objective,
        STRENGTH[method],
        fixed,
        positions,
        rows_of_lists(np.tile(np.arange(N), (len(own), 1)), affinities[own] * (1.0 if of_sum else 2.0)),
        own,
        None if of_sum else 0.5 * sums.sum() - sums[own],
    )


def whole_objective(method, row, place):
    """Return E of the whole map with one point moved, from all pairs."""
    positions, affinities = drawn()
    moved, objective = positions.copy(), OBJECTIVES[method]
    moved[row] = place
    squares = ((moved[:, np.newaxis] - moved) ** 2).sum(axis=2)
    pulls = squares if objective.attraction == "quadratic" else np.log1p(squares)
    pushes = KERNELS[objective.kernel](squares)
    np.fill_diagonal(pushes, 0.0)
    total = pushes.sum() if objective.combine == "sum" else np.log(pushes.sum())
    return (affinities * pulls).sum() + STRENGTH[method] * total


def neighbors_loss(row, place, total):
    """Return neMDBD's leave-one-out loss of t-SNE at a place, its gradient and its Hessian."""
    positions, affinities = drawn()
    others = np.arange(N) != row
    away, p = place - positions[others], affinities[row, others]
    w = 1.0 / (1.0 + (away**2).sum(axis=1))
    outer = away[:, :, np.newaxis] * away[:, np.newaxis]
    z, eye = total + 2.0 * w.sum(), np.eye(2)
    slope = -4.0 * (w[:, np.newaxis] ** 2 * away).sum(axis=0)
    curve = 2.0 * (8.0 * (w**3)[:, np.newaxis, np.newaxis] * outer).sum(axis=0) - 4.0 * (w**2).sum() * eye
    value = 2.0 * (p @ -np.log(w)) + np.log(z)
    gradient = 4.0 * ((p * w) @ away) + slope / z
    pull = 4.0 * (p @ w) * eye - 8.0 * ((p * w**2)[:, np.newaxis, np.newaxis] * outer).sum(axis=0)
    return value, gradient, pull + curve / z - np.outer(slope, slope) / z**2


def total_of_others(row):
    """Return the sum of Student's kernel over ordered pairs of other points."""
    positions, _ = drawn()
    rest = np.delete(positions, row, axis=0)
    squares = ((rest[:, np.newaxis] - rest) ** 2).sum(axis=2)
    return (1.0 / (1.0 + squares)).sum() - len(rest)


@pytest.mark.parametrize("method", METHODS)
def test_a_point_meets_its_part_of_the_whole_objective(method):
    positions, _ = drawn()
    own = np.array([4, 700])
    problem = own_problem(method, own)
    places = positions[own] + [[0.7, -0.2], [-1.5, 2.0]]
    before, after = (problem.evaluate(np.arange(2), one).values for one in (positions[own], places))
    half = 2.0 if problem.offsets is None else 1.0  # of a sum, half of what the point adds to both of its pairs
    for place, row, fall in zip(places, own, half * (after - before), strict=True):
        whole = whole_objective(method, row, place) - whole_objective(method, row, positions[row])
        np.testing.assert_allclose(fall, whole, rtol=1e-6, atol=1e-11)


def test_hessians_and_losses_are_those_of_the_paper():
    positions, _ = drawn()
    own = np.arange(0, N, 97)
    problem = own_problem("t-sne", own)
    hessians = problem.hessians(positions[own], 1e-4)
    found = problem.evaluate(np.arange(len(own)), positions[own])
    for place, row in enumerate(own):
        _, gradient, hessian = neighbors_loss(row, positions[row], total_of_others(row))
        np.testing.assert_allclose(found.gradients[place], gradient, atol=1e-6 * np.abs(gradient).max())
        np.testing.assert_allclose(hessians[place], hessian, atol=1e-6 * np.abs(hessian).max())
        scores = (np.linalg.eigvalsh(one)[0] for one in (hessians[place], hessian))
        np.testing.assert_allclose(*scores, atol=1e-6 * np.abs(hessian).max())


@pytest.mark.parametrize("repulsion", ["exact", "grid"])
def test_a_point_comes_to_the_minimum_that_scipy_finds_from_there(repulsion):
    positions, _ = drawn()
    own = np.arange(0, N, 97)
    placed = place_points(own_problem("t-sne", own, repulsion), starts=positions[own])
    assert placed.arrived.all()
    for place, row in enumerate(own):
        total = total_of_others(row)
        found = minimize(
            lambda at, row=row, total=total: neighbors_loss(row, at, total)[:2],
            positions[row],
            jac=True,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-9},
        )
        assert np.linalg.norm(placed.positions[place] - found.x) < 0.05
