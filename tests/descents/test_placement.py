"""New points among fixed ones: each at a minimum of its own objective, which is written out and looked at around it."""

import numpy as np
import pytest

from scalemani.config.objectives import OBJECTIVES, objective_of
from scalemani.descents import placement
from scalemani.descents.placement import FixedSources, PlacementProblem, place_points, rows_of_lists
from scalemani.descents.repulsion import make_repulsion

N_SOURCES, N_NEW, K = 150, 12, 5
STRENGTHS = {"elastic-embedding": 0.05, "t-ee": 0.05}  # of one new point against all sources
WAYS = np.column_stack([np.cos(np.arange(64) * np.pi / 32), np.sin(np.arange(64) * np.pi / 32)])
KERNELS = {
    "gaussian": lambda squares: np.exp(-squares),
    "student": lambda squares: 1 / (1 + squares),
    "epanechnikov": lambda squares: np.maximum(1 - squares, 0),
    0.5: lambda squares: (1 + 2 * squares) ** -0.5,
}


def problem_of(method, repulsion="exact", strength=None, dof=1.0):
    """Return new points among three clusters of sources, each drawn to sources near one of them, unequally."""
    draws = np.random.default_rng(5)
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    sources = np.concatenate([center + draws.normal(size=(N_SOURCES // 3, 2)) for center in centers])
    chosen = sources[draws.permutation(N_SOURCES)[:N_NEW]]
    neighbors = np.argsort(((chosen[:, np.newaxis] - sources) ** 2).sum(axis=2), axis=1)[:, 1 : K + 1]
    affinities = draws.dirichlet(np.ones(K), size=N_NEW)
    objective = objective_of(method, dof)
    fixed = FixedSources(make_repulsion(repulsion, objective.kernel, 1e-6), sources)
    asked = STRENGTHS.get(method, 1.0) if strength is None else strength
    return PlacementProblem(objective, asked, fixed, sources, rows_of_lists(neighbors, affinities))


def lists_of(problem):
    """Return the neighbours and affinities (N_NEW, K) of the points of a problem."""
    return (part.reshape(N_NEW, K) for part in problem.rows[1:])


def plain_value(problem, row, position):
    """E'(x) = sum p a(d^2) + strength S, or strength log S: eq. (5.9) of the thesis, halved."""
    neighbors, affinities = lists_of(problem)
    drawn = ((position - problem.sources[neighbors[row]]) ** 2).sum(axis=1)
    kernel = KERNELS[problem.objective.kernel]
    pull = drawn if problem.objective.attraction == "quadratic" else -np.log(kernel(drawn))
    push = kernel(((position - problem.sources) ** 2).sum(axis=1)).sum()
    push = push if problem.objective.combine == "sum" else np.log(push)
    return affinities[row] @ pull + problem.strength * push


def slope_at(problem, row, position):
    step = 1e-5 * np.eye(2)
    return (
        np.array([plain_value(problem, row, position + e) - plain_value(problem, row, position - e) for e in step])
        / 2e-5
    )


@pytest.mark.parametrize(
    ("method", "dof"), [*((name, 1.0) for name in OBJECTIVES if name != "epanechnikov-ee"), ("t-sne", 0.5)]
)
@pytest.mark.parametrize("repulsion", ["exact", "grid"])
def test_each_new_point_comes_to_a_minimum_of_its_own_objective(method, dof, repulsion):
    problem = problem_of(method, repulsion, dof=dof)
    placed = place_points(problem).positions
    for row, position in enumerate(placed):
        start = problem.sources[next(lists_of(problem))[row, 0]]
        assert plain_value(problem, row, position) < plain_value(problem, row, start)
        assert np.linalg.norm(slope_at(problem, row, position)) < 0.02 * np.linalg.norm(slope_at(problem, row, start))
        fall = plain_value(problem, row, start) - plain_value(problem, row, position)
        around = [plain_value(problem, row, position + radius * way) for radius in (0.1, 0.3) for way in WAYS]
        assert plain_value(problem, row, position) < min(around) + 1e-3 * fall


def test_without_repulsion_a_new_point_comes_to_the_mean_of_its_neighbours():
    problem = problem_of("elastic-embedding", strength=1e-12)
    neighbors, affinities = lists_of(problem)
    means = np.einsum("mk,mkd->md", affinities, problem.sources[neighbors])
    np.testing.assert_allclose(place_points(problem).positions, means, atol=1e-9)
    pushed = place_points(problem_of("elastic-embedding", strength=1.0)).positions
    assert np.linalg.norm(pushed - means, axis=1).max() > 0.5


def test_a_point_beyond_the_mesh_is_pushed_as_well():
    problem = problem_of("t-sne", "grid")
    far = np.array([[0.0, 0.0], [1e3, 0.0], [-40.0, 25.0]])
    sums, gradients = problem.fixed.field(far)
    for row, place in enumerate(far):
        differences = place - problem.sources
        values = 1 / (1 + (differences**2).sum(axis=1))
        assert sums[row] == pytest.approx(values.sum(), rel=1e-4)
        np.testing.assert_allclose(gradients[row], -2 * (values**2) @ differences, rtol=1e-3)


class Recording(PlacementProblem):
    """A problem that keeps what it is asked and what it answers."""

    def evaluate(self, rows, positions):
        found = super().evaluate(rows, positions)
        self.__dict__.setdefault("asked", []).append((rows.copy(), positions.copy(), list(map(np.copy, found))))
        return found


def test_steps_that_were_shortened_grow_again_to_full_ones():
    """Each step is half the one before where that did not lower the objective, else twice that, and never above one."""
    problem = problem_of("elastic-embedding", strength=3.0)
    problem = Recording(**vars(problem))
    place_points(problem)
    (rows, positions, found), *steps = problem.asked
    known, expected, seen = dict(zip(rows, zip(positions, *found, strict=True), strict=True)), {}, []
    for rows, positions, found in steps:
        for row, trial, value, gradient, curvature in zip(rows, positions, *found, strict=True):
            position, before, slope, height = known[row]
            length = np.linalg.norm(trial - position) / np.linalg.norm(slope / height)
            assert length == pytest.approx(expected.get(row, 1.0), rel=1e-6)
            lower = value <= before - placement.SUFFICIENT_DECREASE * length * (slope @ slope) / height
            expected[row] = min(2 * length, 1.0) if lower else length / 2
            seen.append((length, lower))
            if lower:
                known[row] = trial, value, gradient, curvature
    assert {lower for length, lower in seen if length < 0.9} == {True, False}


@pytest.mark.parametrize("most_steps", [0, 1, 4, 100])
def test_how_many_have_arrived_and_how_far_they_fell_is_what_is_reported(most_steps):
    problem = problem_of("elastic-embedding")
    found = place_points(problem, most_steps)
    for row, position in enumerate(found.positions):
        start = problem.sources[next(lists_of(problem))[row, 0]]
        fall = plain_value(problem, row, start) - plain_value(problem, row, position)
        assert found.falls[row] == pytest.approx(fall, rel=1e-9, abs=1e-12)
        # The full step divides the slope by the curvature of the attraction, 2 sum p = 2.
        still = np.linalg.norm(slope_at(problem, row, position)) / 2 <= placement.SHORTEST_STEP * (1 + 1e-6)
        assert found.arrived[row] == still
    assert found.arrived.mean() == {0: 0.0, 100: 1.0}.get(most_steps, found.arrived.mean())
