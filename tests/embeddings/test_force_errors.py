"""Forces err by no more than was asked for, also on maps that no rule was measured on."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from scalemani.embeddings.descent import State
from scalemani.embeddings.force_errors import CERTIFIED_TARGETS, WATCHED_EVERY, measured_error, watched
from scalemani.embeddings.phases import Phase, descend
from scalemani.embeddings.problem import problem_of
from scalemani.embeddings.repulsion import make_repulsion
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.objectives import OBJECTIVES

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


def exact_gradients(positions, rows):
    away = positions[rows, np.newaxis] - positions
    squares = cdist(positions[rows], positions, "sqeuclidean")
    return (-2 * away / (1 + squares[..., np.newaxis]) ** 2).sum(axis=1)


def test_errors_are_those_of_plain_sums(tight_clusters):
    sums = make_repulsion("grid", "student", TOLERANCE)
    rows = sample_rows(0, "repulsion", len(tight_clusters), CERTIFIED_TARGETS)
    exact, found = exact_gradients(tight_clusters, rows), sums.field(tight_clusters)[1][rows]
    expected = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert measured_error(sums, "student", tight_clusters) == pytest.approx(expected, rel=1e-6)


def test_forces_that_err_by_more_are_asked_for_a_smaller_share(tight_clusters):
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    sums = make_repulsion("grid", "student", TOLERANCE)
    before = measured_error(sums, "student", tight_clusters)
    assert before > TOLERANCE
    state = State(tight_clusters, value=1.0, reference=2.0, gradient=np.zeros((6000, 2)))
    after = watched(problem, "grid", TOLERANCE, sums, state)
    assert after.share < TOLERANCE / before
    assert np.isnan([after.value, after.reference]).all()
    assert after.gradient is None
    finer = make_repulsion("grid", "student", TOLERANCE * after.share)
    assert measured_error(finer, "student", tight_clusters) <= TOLERANCE


def test_errors_that_are_known_to_grow_are_met_before_they_do(tight_clusters):
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    coarse = make_repulsion("grid", "student", TOLERANCE)
    state = watched(problem, "grid", TOLERANCE, coarse, State(tight_clusters))
    sums = make_repulsion("grid", "student", TOLERANCE * state.share)
    assert watched(problem, "grid", TOLERANCE, sums, state) is state
    growing = watched(problem, "grid", TOLERANCE, sums, state, growth=3.0)
    finer = make_repulsion("grid", "student", TOLERANCE * growing.share)
    assert measured_error(finer, "student", tight_clusters) <= TOLERANCE / 3


def test_forces_that_are_finer_than_asked_are_asked_for_a_larger_share():
    positions = np.random.default_rng(1).normal(0, 40, (6000, 2))
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    state = State(positions, share=0.1)
    after = watched(problem, "grid", TOLERANCE, make_repulsion("grid", "student", 0.1 * TOLERANCE), state)
    assert 0.1 < after.share <= 1.0
    again = make_repulsion("grid", "student", TOLERANCE * after.share)
    assert measured_error(again, "student", positions) <= TOLERANCE
    assert watched(problem, "grid", TOLERANCE, again, after) is after


def test_sums_that_go_no_finer_stay_as_they_are(tight_clusters):
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    sums = make_repulsion("grid", "student", 1e-6)
    state = State(tight_clusters)
    assert measured_error(sums, "student", tight_clusters) > 1e-6
    assert watched(problem, "grid", 1e-6, sums, state) is state


@pytest.mark.parametrize(("value", "reference"), [(2.5, 2.5), (2.5, 3.0), (np.nan, np.nan), (np.nan, 3.0)])
def test_a_window_that_has_just_ended_is_the_first_of_the_new_sums(tight_clusters, value, reference):
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    state = State(tight_clusters, value=value, reference=reference)
    after = watched(problem, "grid", TOLERANCE, make_repulsion("grid", "student", TOLERANCE), state)
    assert after.share < 1
    assert np.isnan(after.value)
    sums = make_repulsion("grid", "student", TOLERANCE * after.share)
    expected = problem.value(tight_clusters, sums) if value == reference else np.nan
    assert after.reference == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_a_descent_keeps_its_forces_within_the_tolerance_and_goes_on_to_the_same_bits(tight_clusters):
    problem = problem_of(pairs_in_clusters(), OBJECTIVES["t-sne"], 1.0)
    phases = [Phase("momentum", 2 * WATCHED_EVERY + 10, length=1.0, tolerance=TOLERANCE)]
    states = list(descend(problem, phases, "grid", State(tight_clusters)))
    ended = states[-1]
    assert ended.share < 1
    sums = make_repulsion("grid", "student", TOLERANCE * ended.share)
    assert measured_error(sums, "student", ended.positions) <= TOLERANCE
    for stopped in (WATCHED_EVERY - 1, WATCHED_EVERY, WATCHED_EVERY + 7):
        kept = State.of_arrays(states[stopped - 1].arrays())
        again = list(descend(problem, phases, "grid", kept))[-1]
        np.testing.assert_array_equal(again.positions, ended.positions)
