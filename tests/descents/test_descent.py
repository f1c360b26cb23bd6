"""Descents: every direction goes down, every state can be gone on from, and ends are what they should be."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.objectives import OBJECTIVES
from scalemani.descents.descent import MOST_HALVINGS, SUFFICIENT_DECREASE, Backtracking, State, step
from scalemani.descents.phases import Phase, descend, direction_of, line_search_of
from scalemani.descents.problem import Evaluation, Problem, affinity_scale
from scalemani.descents.repulsion import make_repulsion
from scalemani.errors import ConfigError, ConvergenceError
from scalemani.kernels.arrays.workspace import Recycled, Workspace, recycling
from scalemani.kernels.graph.attraction import AffinityRows

SEARCHED = (
    "gradient-descent",
    "fixed-point",
    "diagonal-hessian",
    "conjugate-gradients",
    "l-bfgs",
    "spectral",
    "spectral+l-bfgs",
    "spectral-minus",
)
N_POINTS = 120


@pytest.fixture(scope="module")
def ring():
    """Affinities of points on a closed curve, and a random start."""
    weights = sp.diags_array([np.exp(-(away**2) / 4) * np.ones(N_POINTS) for away in range(1, 6)], offsets=range(1, 6))
    dense = weights.toarray()[:N_POINTS, :N_POINTS]
    for away in range(1, 6):
        for n in range(N_POINTS - away, N_POINTS):
            dense[n, (n + away) % N_POINTS] = np.exp(-(away**2) / 4)
    matrix = sp.csr_matrix(dense + dense.T)
    rows = AffinityRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data)
    return rows, np.random.default_rng(0).normal(size=(N_POINTS, 2))


def problem_of(rows, method, **values):
    objective = OBJECTIVES[method]
    return Problem(rows, objective, affinity_scale(objective, rows), **values)


def states(rows, start, method, phases, strength=1.0):
    return list(descend(problem_of(rows, method, strength=strength), phases, "exact", State(start)))


@pytest.mark.parametrize("direction", SEARCHED)
@pytest.mark.parametrize("method", ["elastic-embedding", "t-sne", "sne"])
def test_line_searches_never_go_up(ring, direction, method):
    found = states(*ring, method, [Phase(direction, 15, kappa=8)])
    values = np.array([state.value for state in found])
    assert np.isfinite(values).all()
    assert (np.diff(values) <= 0).all()
    assert values[-1] < values[0]


@pytest.mark.parametrize("direction", SEARCHED)
def test_steps_that_are_searched_fall_as_armijo_asks_and_shortened_ones_could_not_be_twice_as_long(ring, direction):
    rows, start = ring
    problem, sums = problem_of(rows, "sne", strength=10.0), make_repulsion("exact", "gaussian", 1e-3)
    found = list(descend(problem, [Phase(direction, 12, kappa=8)], "exact", State(5 * start)))
    n_shortened, before = (
        0,
        State(5 * start, evaluations=1),
    )  # the first value is computed once, others are those searched
    for after in found:
        value, gradient = problem.evaluate(before.positions, sums)
        move = after.positions - before.positions
        slope, trials = (gradient * move).sum(), after.evaluations - before.evaluations
        if slope == 0:  # no way down after all halvings: nothing has moved
            assert (trials, after.value, move.any()) == (MOST_HALVINGS + 1, before.value, False)
        else:
            assert slope < 0
            assert after.value <= value + SUFFICIENT_DECREASE * slope + 1e-12 * abs(value)
        if slope < 0 and trials > 1:
            n_shortened += 1
            assert problem.value(before.positions + 2 * move, sums) > value + 2 * SUFFICIENT_DECREASE * slope
        before = after
    assert n_shortened > 0 or direction not in ("gradient-descent", "fixed-point")  # which know no curvature


@pytest.mark.parametrize("length", [1e3, 1e100, 1e290])
def test_a_searched_step_that_leads_far_out_is_shortened(ring, length):
    rows, start = ring
    problem, sums = problem_of(rows, "t-sne"), make_repulsion("exact", "student", 1e-3)
    value, gradient = problem.evaluate(start, sums)
    after = Backtracking().accept(problem, sums, State(start, value=value), gradient, -length * gradient)
    assert np.isfinite(after.positions).all()
    assert after.value < value


@pytest.mark.parametrize("direction", [np.inf, -np.inf, np.nan])
def test_a_searched_step_to_infinity_is_not_taken_after_twenty_halvings(ring, direction):
    rows, start = ring
    problem, sums = problem_of(rows, "t-sne"), make_repulsion("exact", "student", 1e-3)
    value, gradient = problem.evaluate(start, sums)
    chosen = -gradient
    chosen[7, 1] = direction
    after = Backtracking().accept(problem, sums, State(start, value=value), gradient, chosen)
    np.testing.assert_array_equal(after.positions, start)
    assert after.step == 0.0
    assert after.evaluations == MOST_HALVINGS + 1 == 21


@pytest.mark.parametrize("direction", [*SEARCHED, "momentum"])
def test_a_stopped_descent_goes_on_to_the_last_bit(ring, direction):
    length = 50.0 if direction == "momentum" else None
    phases = [
        Phase(direction, 6, exaggeration=2.0, kappa=8, length=length),
        Phase(direction, 14, kappa=8, length=length, converged=1e-7, window=4),
    ]
    rows, start = ring
    whole = states(rows, start, "t-sne", phases)
    for stopped in (1, 5, 6, 7, 13):
        arrays = {name: values.copy() for name, values in whole[stopped - 1].arrays().items()}
        assert all(isinstance(values, np.ndarray) for values in arrays.values())
        resumed = list(descend(problem_of(rows, "t-sne"), phases, "exact", State.of_arrays(arrays)))
        assert len(resumed) == len(whole) - stopped
        for name, values in resumed[-1].arrays().items():
            np.testing.assert_array_equal(values, whole[-1].arrays()[name], err_msg=name)


def test_directions_reach_the_same_minimum(ring):
    rows, start = ring
    circle = 3 * np.column_stack(
        [np.cos(np.arange(N_POINTS) * 2 * np.pi / N_POINTS), np.sin(np.arange(N_POINTS) * 2 * np.pi / N_POINTS)]
    )
    ends = {}
    for direction in ("l-bfgs", "spectral", "spectral+l-bfgs", "spectral-minus"):
        phases = [Phase(direction, 600, kappa=N_POINTS, converged=1e-10, window=5)]
        ends[direction] = states(rows, circle + 0.01 * start, "elastic-embedding", phases, strength=0.1)[-1].value
    assert max(ends.values()) == pytest.approx(min(ends.values()), rel=1e-4), ends


def test_a_phase_ends_when_the_objective_hardly_falls(ring):
    found = states(*ring, "s-sne", [Phase("spectral+l-bfgs", 500, kappa=8, converged=1e-3, window=5)])
    assert len(found) < 500
    assert found[-1].phase == 1
    values = np.array([state.value for state in found])
    assert values[-6] - values[-1] < 1e-3 * abs(values[-6])


def test_homotopy_ends_at_the_plain_objective(ring):
    rows, start = ring
    phases = [Phase("spectral", 200, kappa=8, strength=share, converged=1e-6, window=1) for share in (1e-3, 1e-1, 1.0)]
    end = states(rows, start, "elastic-embedding", phases, strength=5.0)[-1]
    plain = problem_of(rows, "elastic-embedding", strength=5.0)
    sums = make_repulsion("exact", "gaussian", 1e-3)
    assert end.value == pytest.approx(plain.value(end.positions, sums), rel=1e-12)


def test_an_exploding_step_is_stopped_and_the_last_state_is_good(ring):
    rows, start = ring
    descent = descend(
        problem_of(rows, "elastic-embedding"), [Phase("gradient-descent", 500, length=1e3)], "exact", State(start)
    )
    seen = []
    with pytest.raises(ConvergenceError, match="lower the learning rate"):
        seen.extend(descent)
    assert all(np.isfinite(state.positions).all() for state in seen)


def test_momentum_needs_a_learning_rate(ring):
    with pytest.raises(ConfigError, match="takes a learning rate"):
        states(*ring, "t-sne", [Phase("momentum", 5)])


def test_momentum_lowers_the_divergence(ring):
    rows, start = ring
    found = states(rows, 1e-2 * start, "t-sne", [Phase("momentum", 300, length=N_POINTS, window=50, converged=1e-9)])
    sums_end = found[-1].positions
    problem = problem_of(rows, "t-sne")
    sums = make_repulsion("exact", "student", 1e-3)
    assert problem.value(sums_end, sums) < problem.value(1e-2 * start, sums) - 1.0


def test_threads_change_no_bit(ring):
    rows, start = ring
    phases = [Phase("spectral+l-bfgs", 12, kappa=8)]
    alone = list(descend(problem_of(rows, "t-sne"), phases, "exact", State(start)))[-1]
    with ThreadPoolExecutor(3) as pool:
        problem = replace(problem_of(rows, "t-sne"), workspace=recycling(pool.map))
        together = list(descend(problem, phases, "exact", State(start)))[-1]
    np.testing.assert_array_equal(alone.positions, together.positions)


def test_arrays_of_an_iteration_take_the_memory_that_those_before_have_left():
    n_points, made, places = 40_000, Recycled(), []
    near = (np.arange(n_points)[:, np.newaxis] + [-1, 1]) % n_points
    weights = np.ones(2 * n_points, np.float32)
    rows = AffinityRows(np.arange(0, 2 * n_points + 1, 2), near.ravel().astype(np.uint32), weights)

    def empty(shape, dtype):
        values = made.empty(shape, dtype)
        places.append(values.__array_interface__["data"][0])
        return values

    problem = replace(problem_of(rows, "t-sne"), workspace=Workspace(empty=empty))
    start = State(np.random.default_rng(0).normal(size=(n_points, 2)))
    phase = Phase("momentum", 12, length=n_points, tolerance=1e-2)
    n_iterations = sum(1 for _ in descend(problem, [phase], "grid", start))  # no state is kept
    # Positions in whole numbers, the gradient, sums and their gradients, velocities, gains, positions.
    assert len(places) == 7 * n_iterations == 84
    assert len(set(places)) <= 11


@pytest.mark.parametrize("method", ["barnes-hut", "grid"])
def test_a_scheduled_descent_is_one_of_steps_that_are_summed_ever_more_exactly(ring, method):
    rows, start = ring
    phase = Phase("gradient-descent", 6, kappa=8, length=0.01, tolerance=1e-4, schedule=3)
    problem = problem_of(rows, "elastic-embedding", strength=3.0)
    state = State(start)
    for tolerance in (0.1, 0.01, 0.001, 1e-4, 1e-4, 1e-4):  # by equal ratios from 0.1, then as asked
        sums = make_repulsion(method, "gaussian", tolerance)
        state = step(problem, sums, direction_of(phase, problem), line_search_of(phase), state)
    found = list(descend(problem, [phase], method, State(start)))
    np.testing.assert_allclose(found[-1].positions, state.positions, rtol=1e-12)
    unscheduled = list(descend(problem, [replace(phase, schedule=0)], method, State(start)))
    assert np.abs(unscheduled[-1].positions - state.positions).max() > 1e-6


@pytest.mark.parametrize("window", [3, 7, 20])
def test_a_phase_is_judged_by_its_fall_over_a_window(ring, window):
    rows, start = ring
    phase = Phase("fixed-point", 300, window=window)
    values = [state.value for state in states(rows, start, "s-sne", [phase])]
    ends = [
        number
        for number in range(2 * window, 300, window)
        if values[number - window - 1] - values[number - 1] < 1e-3 * abs(values[number - window - 1])
    ]
    found = states(rows, start, "s-sne", [replace(phase, converged=1e-3)])
    assert len(found) == ends[0]
    assert found[-1].ended_after == ends[0]


def test_an_accuracy_schedule_tightens():
    phase = Phase("spectral", 200, tolerance=1e-4, schedule=100)
    tolerances = [phase.tolerance_at(iteration) for iteration in (0, 50, 99, 100, 150)]
    assert tolerances[0] == pytest.approx(0.1)
    assert tolerances[1] == pytest.approx(np.sqrt(0.1 * 1e-4))
    assert np.all(np.diff(tolerances) <= 0)
    assert tolerances[-1] == 1e-4


@pytest.mark.parametrize("direction", SEARCHED)
def test_a_descent_that_finds_no_way_down_ends(ring, direction):
    class Flat(Problem):
        """Values that never fall stand for a minimum within rounding."""

        def evaluate(self, positions, sums, with_value=True):
            return Evaluation(1.0, 1 + positions)

    rows, start = ring
    problem = Flat(**vars(problem_of(rows, "elastic-embedding")))
    found = list(descend(problem, [Phase(direction, 50, kappa=8)], "exact", State(start)))
    assert len(found) <= 2
    assert found[-1].phase == 1
