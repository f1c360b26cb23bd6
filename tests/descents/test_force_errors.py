"""Forces err by no more than was asked for, also on maps that no rule was measured on."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from scalemani.config.objectives import OBJECTIVES
from scalemani.descents.descent import State
from scalemani.descents.force_errors import (
    ADAPT_EVERY,
    LEAST_TARGETS,
    MOST_TARGETS,
    PRECISION,
    SampledForces,
    adapt_tolerance,
    errors_of,
    force_errors,
    measured_gradients,
    numbers_near,
)
from scalemani.descents.phases import Phase, descend
from scalemani.descents.problem import problem_of, repulsive_term
from scalemani.descents.repulsion import make_repulsion
from scalemani.kernels.arrays.workspace import threads
from scalemani.kernels.graph.attraction import AffinityRows

TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def tight_clusters():
    """Points in clusters a hundred times narrower than the mesh's steps, far from each other."""
    draws = np.random.default_rng(0)
    centers = draws.uniform(-150, 150, (300, 2))
    return np.repeat(centers, 20, axis=0) + draws.normal(0, 3e-3, (6000, 2))


def pairs_in_clusters():
    """Affinities of points with the next ones of their cluster."""
    first = np.arange(6000).reshape(300, 20)[:, :-1].ravel()
    half = sp.csr_matrix((np.ones(len(first), np.float32), (first, first + 1)), shape=(6000, 6000))
    matrix = sp.csr_matrix(half + half.T)
    return AffinityRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data)


def measured_errors(*sums_and_positions, **options):
    return measured_gradients(*sums_and_positions, **options).errors


def exact_gradients(positions, rows):
    away = positions[rows, np.newaxis] - positions
    squares = cdist(positions[rows], positions, "sqeuclidean")
    return (-2 * away / (1 + squares[..., np.newaxis]) ** 2).sum(axis=1)


def test_errors_of_few_points_are_those_of_plain_sums(tight_clusters):
    sums, positions = make_repulsion("grid", "student", TOLERANCE), tight_clusters[:MOST_TARGETS]
    exact, found = exact_gradients(positions, np.arange(len(positions))), sums.field(positions)[1]
    measured = measured_errors(sums, "student", positions)
    assert measured.whole == pytest.approx(np.linalg.norm(found - exact) / np.linalg.norm(exact), rel=1e-6)
    assert measured.standard_error == measured.worst_decile_standard_error == 0


def widths_of_clusters(draws):
    """Return points of a map whose errors differ by place: clusters of widths from 0.1 to 5."""
    centers, widths = draws.uniform(-60, 60, (40, 2)), np.geomspace(0.1, 5, 40)
    own = draws.integers(0, 40, 6000)
    return centers[own] + widths[own, np.newaxis] * draws.normal(size=(6000, 2))


def tight_hundredth(draws):
    """Return even points, but for a hundredth of them, which lie in a spot and have most of the error."""
    return np.r_[draws.normal(3.3, 0.02, (60, 2)), draws.uniform(-80, 80, (5940, 2))]


def many_tight_clusters(draws):
    """Return even points, but for a thirtieth, which lie in twenty spots: most of the error, and no larger sums."""
    spots = np.repeat(draws.uniform(-40, 40, (20, 2)), 10, axis=0) + draws.normal(0, 0.003, (200, 2))
    return np.r_[spots, draws.uniform(-40, 40, (5800, 2))]


@pytest.mark.parametrize("kernel", ["student", "gaussian"])
@pytest.mark.parametrize("points", [widths_of_clusters, tight_hundredth, many_tight_clusters])
def test_a_sample_errs_by_the_standard_error_that_it_states(points, kernel):
    positions = points(np.random.default_rng(0))
    _, found = make_repulsion("grid", kernel, TOLERANCE).field(positions)
    away = positions[:, np.newaxis, :] - positions
    squares = cdist(positions, positions, "sqeuclidean")
    slopes = 1 / (1 + squares) ** 2 if kernel == "student" else np.exp(-squares)
    exact = -2 * np.einsum("nm,nmd->nd", slopes, away)
    whole = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    shares = np.linalg.norm(found - exact, axis=1) / np.maximum(np.linalg.norm(exact, axis=1), 1e-3)
    worst, sampled = np.quantile(shares, 0.9), []
    for seed in range(100):
        rows = []
        near = numbers_near(positions)
        forces = SampledForces(lambda some, rows=rows: (rows.extend(some), exact[some])[1], near, seed)
        sampled.append((*forces.errors(found), len(rows)))
    wholes, deciles, errors, decile_errors, sizes = np.transpose(sampled)
    assert np.mean(wholes) == pytest.approx(whole, rel=0.1)
    assert np.std(wholes) == pytest.approx(np.mean(errors), rel=0.5)
    assert np.mean(np.abs(wholes - whole) > 3 * errors) < 0.1
    assert np.mean(np.abs(deciles - worst) > 3 * decile_errors) < 0.1
    assert np.mean(errors) < 1.2 * PRECISION * whole
    assert np.min(sizes) >= LEAST_TARGETS
    assert np.mean(sizes) < MOST_TARGETS / 3


def test_a_sample_grows_until_it_is_precise():
    """Errors that all points have alike are known at once, those of one point in twenty from many points."""
    draws = np.random.default_rng(0)
    exact, looked_at = draws.normal(size=(20000, 2)), []
    for rare in (1, 20):
        errors = np.where(np.arange(20000) % rare == 0, 1e-3, 1e-6)[:, np.newaxis] * draws.normal(size=(20000, 2))
        rows = []
        forces = SampledForces(lambda some, rows=rows: (rows.extend(some), exact[some])[1], np.ones(20000), 0)
        found = forces.errors(exact + errors)
        assert found.are_precise
        assert found.whole == pytest.approx(errors_of(exact + errors, exact).whole, abs=3 * found.standard_error)
        looked_at.append(len(rows))
    assert looked_at[0] == LEAST_TARGETS
    assert looked_at[1] >= 4 * LEAST_TARGETS
    assert forces.errors(exact) == (0, 0, 0, 0)
    assert len(rows) == looked_at[1]  # what was summed exactly serves other sums too


def test_errors_have_the_same_bits_for_any_number_of_threads(tight_clusters):
    sums = make_repulsion("grid", "student", TOLERANCE)
    alone = measured_errors(sums, "student", tight_clusters)
    for count in (2, 5):
        with threads(count) as side_by_side:
            assert measured_errors(sums, "student", tight_clusters, over=side_by_side.over) == alone


def test_sums_that_are_no_numbers_err_without_bound():
    found = np.full((3000, 2), np.nan)
    assert SampledForces(lambda rows: found[rows], found[:, 0], 0).errors(found).least_tolerance == np.inf


def test_forces_that_err_by_more_are_asked_for_a_smaller_share(tight_clusters):
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    sums = make_repulsion("grid", "student", TOLERANCE)
    before = measured_errors(sums, "student", tight_clusters).whole
    assert before > TOLERANCE
    state = State(tight_clusters, value=1.0, reference=2.0, gradient=np.zeros((6000, 2)))
    after = adapt_tolerance(problem, "grid", TOLERANCE, sums, state)
    assert after.tolerance_factor < TOLERANCE / before
    assert np.isnan([after.value, after.reference]).all()
    assert after.gradient is None
    finer = make_repulsion("grid", "student", TOLERANCE * after.tolerance_factor)
    assert measured_errors(finer, "student", tight_clusters).whole <= TOLERANCE


def test_errors_that_are_known_to_grow_are_met_before_they_do(tight_clusters):
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    coarse = make_repulsion("grid", "student", TOLERANCE)
    state = adapt_tolerance(problem, "grid", TOLERANCE, coarse, State(tight_clusters))
    sums = make_repulsion("grid", "student", TOLERANCE * state.tolerance_factor)
    assert adapt_tolerance(problem, "grid", TOLERANCE, sums, state) is state
    growing = adapt_tolerance(problem, "grid", TOLERANCE, sums, state, growth=3.0)
    finer = make_repulsion("grid", "student", TOLERANCE * growing.tolerance_factor)
    assert measured_errors(finer, "student", tight_clusters).whole <= TOLERANCE / 3


def test_forces_that_are_finer_than_asked_are_asked_for_a_larger_share():
    positions = np.random.default_rng(1).normal(0, 40, (6000, 2))
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    state = State(positions, tolerance_factor=0.1)
    after = adapt_tolerance(problem, "grid", TOLERANCE, make_repulsion("grid", "student", 0.1 * TOLERANCE), state)
    assert 0.1 < after.tolerance_factor <= 1.0
    again = make_repulsion("grid", "student", TOLERANCE * after.tolerance_factor)
    assert measured_errors(again, "student", positions).whole <= TOLERANCE
    assert adapt_tolerance(problem, "grid", TOLERANCE, again, after) is after


def test_sums_that_go_no_finer_stay_as_they_are(tight_clusters):
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    sums = make_repulsion("grid", "student", 1e-6)
    state = State(tight_clusters)
    assert measured_errors(sums, "student", tight_clusters).whole > 1e-6
    assert adapt_tolerance(problem, "grid", 1e-6, sums, state) is state


@pytest.mark.parametrize(("value", "reference"), [(2.5, 2.5), (2.5, 3.0), (np.nan, np.nan), (np.nan, 3.0)])
def test_a_window_that_has_just_ended_is_the_first_of_the_new_sums(tight_clusters, value, reference):
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    state = State(tight_clusters, value=value, reference=reference)
    after = adapt_tolerance(problem, "grid", TOLERANCE, make_repulsion("grid", "student", TOLERANCE), state)
    assert after.tolerance_factor < 1
    assert np.isnan(after.value)
    sums = make_repulsion("grid", "student", TOLERANCE * after.tolerance_factor)
    expected = problem.value(tight_clusters, sums) if value == reference else np.nan
    assert after.reference == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_a_descent_keeps_its_forces_within_the_tolerance_and_goes_on_to_the_same_bits(tight_clusters):
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    phases = [Phase("momentum", ADAPT_EVERY + 10, length=1.0, tolerance=1e-2)]
    states = list(descend(problem, phases, "grid", State(tight_clusters)))
    ended = states[-1]
    assert ended.tolerance_factor < 1
    sums = make_repulsion("grid", "student", 1e-2 * ended.tolerance_factor)
    assert measured_errors(sums, "student", ended.positions).least_tolerance <= 1e-2
    for stopped in (ADAPT_EVERY - 1, ADAPT_EVERY, ADAPT_EVERY + 7):
        kept = State.of_arrays(states[stopped - 1].arrays())
        again = list(descend(problem, phases, "grid", kept))[-1]
        np.testing.assert_array_equal(again.positions, ended.positions)


def spread_clusters(n_isolated, seed=0):
    """Return clusters that push hard, and isolated points far from all, which are pushed softly."""
    draws = np.random.default_rng(seed)
    clusters = np.repeat(draws.uniform(-20, 20, (20, 2)), 150, axis=0) + draws.normal(0, 1, (3000, 2))
    return np.r_[clusters, draws.uniform(-150, 150, (n_isolated, 2))]


def test_the_error_that_nine_in_ten_points_do_not_exceed_is_relative_to_their_own_gradient():
    positions = spread_clusters(600)
    sums = make_repulsion("grid", "student", 1e-2)
    exact, found = exact_gradients(positions, np.arange(3600)), sums.field(positions)[1]
    shares = np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)
    measured = errors_of(found, exact)
    assert measured.worst_decile == pytest.approx(np.quantile(shares, 0.9), rel=1e-6)
    assert measured.whole < 1e-2  # which does not show that isolated points err by more than a tenth
    assert measured.worst_decile > 1e-1


def test_where_no_point_is_pushed_errors_are_relative_to_the_least_force_that_counts():
    positions = np.arange(60.0).reshape(-1, 1) * [100.0, 0.0]
    sums = make_repulsion("grid", "gaussian", 1e-3)
    _, found = sums.field(positions)
    errors = np.linalg.norm(found, axis=1)  # Gaussians are zero at such distances
    measured = measured_errors(sums, "gaussian", positions)
    assert measured.worst_decile == pytest.approx(np.quantile(errors, 0.9) / 1e-3, rel=1e-9)
    assert measured.whole == pytest.approx(np.sqrt(np.mean(errors**2)) / 1e-3, rel=1e-9)


def test_a_descent_sums_more_finely_where_single_points_err_by_more_than_ten_tolerances():
    positions = spread_clusters(600)
    rows = AffinityRows(np.arange(3601), np.arange(3600, dtype=np.uint32) ^ 1, np.ones(3600, np.float32))
    problem = problem_of(rows, OBJECTIVES["t-sne"], 1.0)
    sums = make_repulsion("grid", "student", 1e-2)
    before = measured_errors(sums, "student", positions)
    assert before.whole <= 1e-2 < before.worst_decile / 10
    state = State(positions)
    for _ in range(2):  # errors do not quite follow what is asked for
        state = adapt_tolerance(problem, "grid", 1e-2, sums, state)
        sums = make_repulsion("grid", "student", 1e-2 * state.tolerance_factor)
    exact, found = exact_gradients(positions, np.arange(3600)), sums.field(positions)[1]
    assert np.quantile(np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1), 0.9) <= 1e-1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("repulsion", ["grid", "barnes-hut"])
def test_errors_of_sne_are_those_of_forces_that_its_sums_divide(repulsion, weighted):
    draws = np.random.default_rng(0)
    positions = draws.normal(0, 4, (900, 2))
    masses = 1.0 + draws.integers(0, 3, 900) if weighted else None
    copies = np.ones(900) if masses is None else masses
    values = np.exp(-cdist(positions, positions, "sqeuclidean"))
    np.fill_diagonal(values, 0)
    met = values @ copies + copies - 1
    pushes = values * (1 / met[:, np.newaxis] + 1 / met) * copies
    exact = -2 * np.einsum("nm,nmd->nd", pushes, positions[:, np.newaxis] - positions)
    objective = OBJECTIVES["sne"]
    rows = AffinityRows(np.arange(901), np.arange(900, dtype=np.uint32) ^ 1, np.ones(900, np.float32))
    problem = problem_of(rows, objective, 1.0, masses=masses)
    sums = make_repulsion(repulsion, "gaussian", 1e-2)
    push = repulsive_term(objective, positions, sums, masses)
    errors = np.linalg.norm(push.gradients / copies[:, np.newaxis] - exact, axis=1)
    found, of_sums = (
        force_errors(problem, sums, positions),
        measured_errors(sums, "gaussian", positions, charges=masses),
    )
    assert found.whole == pytest.approx(np.linalg.norm(errors) / np.linalg.norm(exact), rel=0.2)
    shares = errors / np.linalg.norm(exact, axis=1)
    assert found.worst_decile == pytest.approx(np.quantile(shares, 0.9), rel=0.2)
    assert abs(np.log(of_sums.whole / found.whole)) > 0.15  # which is no measure of the forces
