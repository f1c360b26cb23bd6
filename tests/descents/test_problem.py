"""Values and gradients of every objective, against sums written out pair by pair."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import scalemani as sm
from scalemani.config.objectives import OBJECTIVES
from scalemani.descents.problem import Problem, entropy_term, problem_of, repulsive_term
from scalemani.descents.repulsion import make_repulsion
from scalemani.errors import ConfigError, DataError, DisconnectedGraphError
from scalemani.kernels.arrays.workspace import Recycled
from scalemani.kernels.graph.attraction import AffinityRows, attraction_gradient, rounded_attraction_gradient

STEP = 1e-30  # of the complex step, which loses no digit however short it is


def affinities(n_points, seed=0):
    """Return dense symmetric affinities without isolated points."""
    draws = np.random.default_rng(seed)
    dense = draws.random((n_points, n_points)) * (draws.random((n_points, n_points)) < 0.3)
    dense[np.arange(n_points), np.roll(np.arange(n_points), 1)] = 0.5
    np.fill_diagonal(dense, 0)
    return dense + dense.T


def by_pairs(positions, weights, method, strength):
    """Return E over all pairs, as the table of the module writes it; of complex positions too."""
    n_points = len(positions)
    squares = ((positions[:, np.newaxis] - positions) ** 2).sum(axis=2)
    others = ~np.eye(n_points, dtype=bool)
    scale = {"s-sne": 1 / weights.sum(), "t-sne": 1 / weights.sum(), "sne": n_points / weights.sum()}.get(method, 1.0)
    weights = weights * scale
    gaussian, student = np.exp(-squares) * others, others / (1 + squares)
    if method == "elastic-embedding":
        return (weights * squares).sum() + strength * gaussian.sum()
    if method == "s-sne":
        return (weights * squares).sum() + strength * np.log(gaussian.sum())
    if method == "t-sne":
        return (weights * np.log(1 + squares)).sum() + strength * np.log(student.sum())
    if method == "sne":
        return (weights * squares).sum() + strength * np.log(gaussian.sum(axis=1)).sum()
    if method == "t-ee":
        return (weights * np.log(1 + squares)).sum() + strength * student.sum()
    return (weights * squares).sum() + strength * ((1 - squares) * (squares.real < 1) * others).sum()


@pytest.mark.parametrize("method", OBJECTIVES)
@pytest.mark.parametrize("n_dims", [1, 2, 3, 5])
def test_values_are_the_sums_over_pairs(method, n_dims):
    positions, weights = np.random.default_rng(1).normal(size=(40, n_dims)), affinities(40)
    value, _ = sm.objective(positions, sp.csr_matrix(weights), method, strength=2.5, repulsion="exact")
    assert value == pytest.approx(by_pairs(positions, weights, method, 2.5), rel=1e-12)


def test_erratum_s_sne_repels_by_the_log_of_the_sum_and_not_by_the_sum_of_logs_of_the_thesis():
    positions, weights = np.random.default_rng(1).normal(size=(40, 2)), affinities(40)
    values = [sm.objective(positions, weights, "s-sne", strength, "exact")[0] for strength in (1.0, 2.0)]
    push = values[1] - values[0]
    kernel = np.exp(-((positions[:, np.newaxis] - positions) ** 2).sum(axis=2)) * ~np.eye(40, dtype=bool)
    assert push == pytest.approx(np.log(kernel.sum()), rel=1e-10)
    assert abs(push - np.log(kernel.sum(axis=1)).sum()) > 10


@pytest.mark.parametrize("method", OBJECTIVES)
@pytest.mark.parametrize("n_dims", [1, 2, 3, 4])
def test_gradients_are_the_complex_step(method, n_dims):
    draws = np.random.default_rng(2)
    positions, weights = draws.normal(size=(30, n_dims)), affinities(30)
    _, gradient = sm.objective(positions, weights, method, strength=3.0, repulsion="exact")
    for _ in range(5):
        along = draws.normal(size=positions.shape)
        slope = by_pairs(positions + 1j * STEP * along, weights, method, 3.0).imag / STEP
        assert (gradient * along).sum() == pytest.approx(slope, rel=1e-12, abs=1e-12 * np.abs(gradient * along).sum())


@pytest.mark.parametrize("method", OBJECTIVES)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_points=st.integers(4, 30),
    angle=st.floats(0, 6),
    shift=st.floats(-100, 100),
    mirrored=st.booleans(),
)
def test_objectives_see_shapes_only(method, seed, n_points, angle, shift, mirrored):
    draws = np.random.default_rng(seed)
    positions, weights = draws.normal(size=(n_points, 2)), affinities(n_points, seed)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turn[1] *= -1 if mirrored else 1
    value, gradient = sm.objective(positions, weights, method, repulsion="exact")
    moved, turned = sm.objective(positions @ turn.T + shift, weights, method, repulsion="exact")
    order = draws.permutation(n_points)
    reordered, followed = sm.objective(positions[order], weights[np.ix_(order, order)], method, repulsion="exact")
    assert [moved, reordered] == pytest.approx([value, value], rel=1e-12, abs=1e-12)
    size = np.abs(gradient).max()
    np.testing.assert_allclose(turned, gradient @ turn.T, atol=1e-8 * max(size, 1))
    np.testing.assert_allclose(followed, gradient[order], atol=1e-12 * max(size, 1))
    np.testing.assert_allclose(gradient.sum(axis=0), 0, atol=1e-10 * max(size, 1))


def force_and_torque(positions, gradient):
    """Return the sum of the forces (2,), and of their torques about the origin."""
    return gradient.sum(axis=0), (positions[:, 0] * gradient[:, 1] - positions[:, 1] * gradient[:, 0]).sum()


@pytest.mark.parametrize("method", OBJECTIVES)
def test_exact_forces_and_their_torques_cancel(method):
    positions, weights = np.random.default_rng(7).normal(size=(200, 2)), affinities(200)
    _, gradient = sm.objective(positions, weights, method, strength=3.0, repulsion="exact")
    force, torque = force_and_torque(positions, gradient)
    assert np.abs(force).max() <= 1e-12 * np.abs(gradient).sum()
    assert abs(torque) <= 1e-12 * np.abs(positions * gradient).sum()


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
@pytest.mark.parametrize(
    ("method", "repulsion"),
    [("t-sne", "barnes-hut"), ("t-sne", "grid"), ("sne", "grid"), ("elastic-embedding", "fgt"), ("t-ee", "barnes-hut")],
)
def test_approximate_forces_and_their_torques_cancel_up_to_the_tolerance(method, repulsion, tolerance):
    positions, weights = 3 * np.random.default_rng(8).normal(size=(800, 2)), affinities(800)
    _, gradient = sm.objective(positions, weights, method, 1e3, repulsion, tolerance)
    _, pull = sm.objective(positions, weights, method, 1e-12, "exact")
    error = 3 * tolerance * np.linalg.norm(gradient - pull)  # of all gradients together, as the next test has it
    force, torque = force_and_torque(positions, gradient)
    assert np.linalg.norm(force) <= np.sqrt(800) * error
    assert abs(torque) <= np.linalg.norm(positions) * error


@pytest.mark.parametrize("method", ["elastic-embedding", "t-sne", "sne"])
@pytest.mark.parametrize("repulsion", ["barnes-hut", "grid"])
def test_approximate_sums_keep_to_their_tolerance(method, repulsion):
    draws = np.random.default_rng(3)
    positions, weights = 5 * draws.normal(size=(1500, 2)), affinities(1500)
    value, gradient = sm.objective(positions, weights, method, repulsion="exact")
    found, slope = sm.objective(positions, weights, method, repulsion=repulsion, tolerance=1e-3)
    pull = sm.objective(positions, weights, method, strength=1e-12, repulsion="exact")[1]
    assert np.linalg.norm(slope - gradient) <= 3e-3 * np.linalg.norm(gradient - pull)
    assert found == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("largest_weight", [None, 1, 3])
@pytest.mark.parametrize("repulsion", ["barnes-hut", "grid", "fgt"])
def test_points_on_their_own_are_pushed_as_exact_sums_push_them(repulsion, largest_weight):
    """Their sums lie below the error of the approximation, and sne divides by them."""
    draws = np.random.default_rng(6)
    copies = None if largest_weight is None else 1 + np.arange(1200) % largest_weight
    positions, weights = draws.normal(size=(1200, 2)), affinities(1200)
    positions[:4] = [[7.0, 0.0], [0.0, 7.5], [-8.0, 0.0], [5.0, -6.0]]
    _, wanted = sm.objective(positions, weights, "sne", 1e3, repulsion="exact", sample_weight=copies)
    _, gradient = sm.objective(positions, weights, "sne", 1e3, repulsion, tolerance=1e-3, sample_weight=copies)
    # What several copies of a point push each other with is no small sum: there the tolerance counts, times 1e3.
    np.testing.assert_allclose(gradient[:4], wanted[:4], rtol=1e-2, atol=1.0 if largest_weight == 3 else 0.0)
    rest = np.linalg.norm(gradient[4:] - wanted[4:]) / np.linalg.norm(wanted[4:])
    assert rest < 1e-2


@pytest.mark.parametrize("repulsion", ["exact", "barnes-hut", "grid"])
def test_points_on_their_own_meet_the_copies_of_others_and_their_own(repulsion):
    """Weights need not be whole: copies of a point on its own are then pushed by less than one of themselves."""
    draws = np.random.default_rng(6)
    positions, masses = draws.normal(size=(400, 2)), draws.uniform(1, 6, 400)
    positions[:4] = [[8.0, 0.0], [0.0, 8.0], [-8.0, 0.0], [0.0, -8.0]]
    positions[4:8] = positions[:4] * 1.25  # a point two away from each of these
    masses[:4], masses[4:8] = 1.05, 1.5
    masses[0] = 1.0

    def pushed(places):
        squares = ((places[:, np.newaxis] - places) ** 2).sum(axis=2)
        values = np.exp(-squares) * ~np.eye(400, dtype=bool)
        return masses @ np.log(values @ masses + masses - 1.0)

    push = repulsive_term(OBJECTIVES["sne"], positions, make_repulsion(repulsion, "gaussian", 1e-3), masses)
    assert push.value == pytest.approx(pushed(positions), rel=1e-4)
    for row in range(8):
        for column in range(2):
            moved = positions.astype(complex)
            moved[row, column] += 1j * STEP
            slope = pushed(moved).imag / STEP
            assert push.factor * push.gradients[row, column] == pytest.approx(slope, rel=1e-2, abs=2e-2)


def test_coincident_and_far_points_are_finite():
    weights = affinities(20)
    for positions in (np.zeros((20, 2)), 1e3 * np.random.default_rng(4).normal(size=(20, 2))):
        for method in OBJECTIVES:
            value, gradient = sm.objective(positions, weights, method)
            assert np.isfinite(value)
            assert np.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"embedding": np.full((20, 2), np.nan)}, DataError, "finite"),
        ({"W": -affinities(20)}, DataError, "must not be negative"),
        ({"W": np.triu(affinities(20))}, DataError, "symmetric"),
        ({"W": affinities(19)}, DataError, r"\(N, N\) with N = 20"),
        ({"W": np.where(affinities(20) > 0, np.nan, 0)}, DataError, "finite"),
        ({"method": "tsne"}, ConfigError, "did you mean 't-sne'"),
        ({"strength": 0}, ConfigError, "strength must be"),
        ({"strength": np.nan}, ConfigError, "strength must be"),
        ({"strength": "1"}, ConfigError, "strength must be"),
        ({"method": None}, ConfigError, "unknown objective None"),
        ({"repulsion": None}, ConfigError, "unknown repulsion None"),
        ({"repulsion": "fft"}, ConfigError, "unknown repulsion"),
        ({"tolerance": 0.0}, ConfigError, "tolerance"),
        ({"embedding": np.zeros((20, 5)), "repulsion": "grid"}, ConfigError, "use 'exact'"),
        ({"method": "t-sne", "repulsion": "fgt"}, ConfigError, "sums the kernel gaussian"),
        ({"method": "epanechnikov-ee", "repulsion": "grid"}, ConfigError, "use 'exact'"),
    ],
)
def test_bad_input_is_refused(change, error, words):
    given_values = {"embedding": np.random.default_rng(5).normal(size=(20, 2)), "W": affinities(20), **change}
    with pytest.raises(error, match=words):
        sm.objective(**given_values)


def test_isolated_points_are_named():
    weights = affinities(20)
    weights[7], weights[:, 7] = 0, 0
    with pytest.raises(DisconnectedGraphError, match="row 7"):
        sm.objective(np.zeros((20, 2)), weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_entropies_of_many_affinities_take_little_memory_beside_these(weighted):
    n_points, degree = 30_000, 40
    draws = np.random.default_rng(0)
    indptr = degree * np.arange(n_points + 1, dtype=np.int64)
    sources = np.repeat(np.arange(n_points), degree)
    indices = ((sources + draws.integers(1, n_points, indptr[-1])) % n_points).astype(np.uint32)
    values = (draws.random(indptr[-1]) * (draws.random(indptr[-1]) < 0.9)).astype(np.float32)
    masses = 1.0 + draws.integers(0, 3, n_points) if weighted else None
    tracemalloc.start()
    found = entropy_term(AffinityRows(indptr, indices, values), 0.5, masses)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(values) * (2 if weighted else 1)
    scaled = 0.5 * values.astype(np.float64)
    pairs = masses[sources] * masses[indices] if weighted else np.ones(len(values))
    kept = scaled > 0
    expected = (scaled[kept] * np.log(scaled[kept] / pairs[kept])).sum()
    assert found == pytest.approx(expected, rel=1e-12)


def test_arrays_of_iterations_take_each_others_memory_on_the_threads_that_were_given():
    rows = AffinityRows(np.array([0, 1, 2]), np.array([1, 0], np.uint32), np.ones(2))
    with ThreadPoolExecutor(2) as pool:
        threaded = problem_of(rows, OBJECTIVES["t-sne"], 1.0, pool.map)
        assert threaded.workspace.over == pool.map
    for problem in (threaded, Problem(rows, OBJECTIVES["t-sne"], 1.0)):
        assert isinstance(problem.workspace.empty.__self__, Recycled)


def test_attraction_is_rounded_beside_sums_that_err_by_more_and_there_alone():
    positions, weights = np.random.default_rng(1).normal(size=(3000, 2)), sp.random(3000, 3000, 0.01, "csr", rng=0)
    weights = sp.csr_matrix(weights + weights.T)
    rows = AffinityRows(weights.indptr.astype(np.int64), weights.indices.astype(np.uint32), weights.data)
    problem = problem_of(rows, OBJECTIVES["t-sne"], 1.0)
    for method, attraction in [("exact", attraction_gradient), ("grid", rounded_attraction_gradient)]:
        sums = make_repulsion(method, "student", 1e-3)
        found = problem.evaluate(positions, sums, with_value=False).gradient
        push = repulsive_term(problem.objective, positions, sums)
        pull = attraction(rows, positions, "student", np.empty_like(positions))
        np.testing.assert_allclose(found, problem.scale * pull + push.factor * push.gradients, rtol=1e-11, atol=1e-14)
