import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import scalemani as sm
from scalemani.config.objectives import OBJECTIVES, objective_of
from scalemani.config.params import Parameters
from scalemani.descents.problem import problem_of
from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, DisconnectedGraphError, ScalemaniWarning, ShortfallWarning
from scalemani.interfaces.functions.nonlinear import NUMBERS
from scalemani.io.sources import open_points
from scalemani.runs.walk import run
from scalemani.stages import layout
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from tests.config.params.effects import stored_pairs


def random_affinities(n_points=40, seed=0):
    draws = np.triu(np.random.default_rng(seed).random((n_points, n_points)), 1)
    return sp.csr_matrix(draws + draws.T)


@pytest.mark.parametrize(
    ("method", "n_rows", "numbers"),
    [
        ("t-sne", 2500, {"max_iterations": 40, "exaggerated_iterations": 15}),
        ("t-sne", 1200, {"max_iterations": 30, "learning_rate": 50.0, "tolerance": 1e-2}),
        ("elastic-embedding", 1200, {"max_iterations": 25, "strength": 0.01}),
        ("sne", 1200, {"max_iterations": 10, "direction": "l-bfgs", "pairs": 5}),
        ("s-sne", 1200, {"homotopy": 3, "max_iterations": 5}),
    ],
)
@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
def test_from_the_affinities_and_the_start_of_a_run_the_minimum_is_the_runs_to_the_bit(
    roll, tmp_path, method, n_rows, numbers
):
    values = {"neighbors": {"n_neighbors": 12}, "landmarks": {"n_landmarks": 100}, "layout": numbers}
    points = open_points(np.array(roll[:n_rows]))
    finished = run(points, tmp_path / "run", method, Parameters().with_values(values), Executor(workers=1), 1024)
    rows = StoredSymmetricAffinities(finished.group("symmetric_affinities")).read_all_rows(-(-n_rows // 1024))
    W = sp.csr_matrix((rows.values, rows.indices.astype(np.int32), rows.indptr), shape=(n_rows, n_rows))
    settings = {f"layout.{name}": value for name, value in numbers.items() if name != "direction"}
    inputs = {stage: finished.group(stage) for stage in finished.keys if stage != "layout"}
    task = StageTask("layout", finished.dimensions, finished.params, inputs, finished.group("layout"), 0)
    objective, strength = objective_of(method), finished.params.descent.strength
    problem = problem_of(rows, objective, strength)
    repulsion = finished.certificates["layout"]["repulsion"]
    start = layout.start_positions(StageContext(task, Executor(workers=1), 1), problem, repulsion)
    found = sm.minimize(W, method, start, direction=numbers.get("direction", "auto"), settings=settings)
    input_rows = finished.group("work_points").read("input_rows")
    np.testing.assert_array_equal(found.embedding, finished.embedding[...][input_rows])
    for ours, theirs in zip(found.curve, finished.curve, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    stored = finished.certificates["layout"]
    for name in (
        "objective",
        "iterations",
        "stopped",
        "gradient_norm",
        "repulsion",
        "force_error",
        "worst_decile_force_error",
    ):
        assert getattr(found, name) == stored[name], name


def dense_gradient(positions, weights, strength):
    """Return the gradient of the elastic embedding, and that of its attraction alone, over all pairs."""
    differences = positions[:, None] - positions[None]
    kernel = np.exp(-(differences**2).sum(axis=2))
    pull = 4 * np.einsum("nm,nmd->nd", weights, differences)
    return pull - 4 * strength * np.einsum("nm,nmd->nd", kernel, differences), pull


@pytest.mark.parametrize("direction", ["auto", "l-bfgs", "spectral", "conjugate-gradients"])
def test_the_gradient_vanishes_where_a_descent_has_converged(direction):
    W = random_affinities()
    settings = {"layout.strength": 50.0, "layout.converged": 1e-13, "layout.max_iterations": 5000}
    found = sm.minimize(W, direction=direction, settings=settings)
    gradient, pull = dense_gradient(found.embedding, W.toarray(), 50.0)
    assert found.stopped == "converged"
    assert np.linalg.norm(gradient) < 1e-4 * np.linalg.norm(pull)
    assert np.linalg.norm(pull) > 1
    assert np.all(np.diff(found.curve.objective) <= 0)
    value, _ = sm.objective(found.embedding, W, strength=50.0)
    assert found.objective == pytest.approx(value, rel=1e-12)


def test_two_points_end_where_their_forces_cancel():
    found = sm.minimize(np.ones((2, 2)) - np.eye(2), init=[[0.0], [0.3]], settings={"layout.strength": 7.0})
    assert np.ptp(found.embedding) == pytest.approx(np.sqrt(np.log(7.0)), rel=1e-2)  # w = strength exp(-d^2)


def test_a_random_start_follows_the_seed_and_has_the_dimensions_asked_for():
    W = random_affinities()
    settings = {"layout.strength": 50.0}
    first, again, other = (sm.minimize(W, settings=settings, n_components=3, random_state=seed) for seed in (1, 1, 2))
    assert first.embedding.shape == (40, 3)
    np.testing.assert_array_equal(first.embedding, again.embedding)
    assert not np.array_equal(first.embedding, other.embedding)


def test_a_start_is_left_as_it_was():
    start = np.random.default_rng(0).normal(size=(40, 2))
    before = start.copy()
    sm.minimize(random_affinities(), init=start, settings={"layout.strength": 50.0})
    np.testing.assert_array_equal(start, before)


def test_a_descent_that_runs_out_of_iterations_says_so_unless_it_was_to_go_to_the_end():
    few = {"layout.strength": 50.0, "layout.max_iterations": 3}
    with pytest.warns(ShortfallWarning, match="not converged after 3 iterations: raise layout.max_iterations"):
        found = sm.minimize(random_affinities(), settings=few)
    assert (found.stopped, found.iterations) == ("max_iterations", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sm.minimize(random_affinities(), settings={**few, "layout.converged": 0}).iterations == 3


def test_a_number_that_cannot_act_is_told_of():
    with pytest.warns(
        ScalemaniWarning, match="layout.momentum=0.5 has no effect: it acts only where direction is momentum"
    ):
        sm.minimize(random_affinities(), settings={"layout.momentum": 0.5})


# Values that no default is; repulsion by trees unless it is what changes, since exact sums have no tolerance.
CHANGED = {
    "strength": 0.5, "learning_rate": 0.02, "momentum": 0.5, "exaggerated_momentum": 0.6, "early_exaggeration": 3.0,
    "exaggerated_iterations": 7, "start_deviation": 0.3, "homotopy": 2, "max_iterations": 3, "converged": 1e-9,
    "window": 7, "repulsion": "exact", "tolerance": 1e-2, "schedule": 6, "kappa": 2, "pairs": 1, "doubled_for": 0.5,
    "late_exaggeration": 2.0, "dof": 0.5, "renewal": 3, "measured_rate": True, "pair_weights": stored_pairs(60),
}  # fmt: skip
ALL_PARAMETERS = {f"layout.{name}": value for name, value in CHANGED.items()}
# Curvature is negative where a descent of SNE starts, so that L-BFGS learns from no step; what has exact sums alone has
# them as "auto" too; trees refuse other degrees of freedom than one.
UNSEEN = {
    "sne": {"layout.pairs"},
    "epanechnikov-ee": {"layout.repulsion"},
    "t-sne": {"layout.dof"},
    "t-ee": {"layout.dof"},
}


@pytest.mark.parametrize("direction", ["auto", "momentum"])
@pytest.mark.parametrize("method", OBJECTIVES)
def test_each_number_of_a_descent_changes_its_result_or_is_told_of_or_refused(method, direction):
    W = random_affinities(60)
    trees = method != "epanechnikov-ee"
    base = {"layout.max_iterations": 24, "layout.strength": 1.0, "layout.converged": 0.5, "layout.window": 3}
    base |= {"layout.repulsion": "barnes-hut"} if trees else {}
    base |= {"layout.learning_rate": 0.01} if direction == "momentum" else {}
    base |= {"layout.exaggerated_iterations": 2} if method == "t-sne" else {}

    def descended(name=None):
        changed = {} if name is None else {name: ALL_PARAMETERS[name]}
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            try:
                found = sm.minimize(W, method, direction=direction, settings=base | changed)
            except ConfigError as error:
                return None, [str(error)]
        return found, [str(one.message) for one in given]

    plain, _ = descended()
    assert set(ALL_PARAMETERS) == set(NUMBERS)
    changed, idle = set(), set()
    for name in NUMBERS:
        found, told = descended(name)
        if any(f"{name}={ALL_PARAMETERS[name]} has no effect: it acts only where " in words for words in told):
            idle.add(name)
        if found is not None and not np.array_equal(found.embedding, plain.embedding):
            changed.add(name)
    assert not changed & idle
    assert set(NUMBERS) - changed - idle <= UNSEEN.get(method, set())


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"W": np.ones((3, 2))}, DataError, r"W must be \(N, N\)"),
        ({"W": [[0.0, 1.0], [2.0, 0.0]]}, DataError, "symmetric"),
        ({"W": np.zeros((3, 3))}, DisconnectedGraphError, "3 points"),
        ({"method": "t-snee"}, ConfigError, "t-sne"),
        ({"direction": "uphill"}, ConfigError, "direction"),
        ({"init": np.zeros((39, 2))}, DataError, r"init must be \(N, d\) = \(40, 2\)"),
        ({"init": np.zeros((40, 3)), "n_components": 2}, DataError, "init must be"),
        ({"init": np.full((40, 2), np.nan)}, DataError, "init"),
        ({"n_components": 0}, ConfigError, "n_components must be"),
        ({"settings": {"layout.strenth": 1.0}}, ConfigError, "did you mean 'layout.strength'"),
        ({"settings": {"layout.snapshots": 1}}, ConfigError, "settings has no 'layout.snapshots'"),
        ({"settings": {"layout.init": "pca"}}, ConfigError, "settings has no 'layout.init'"),
        ({"settings": {"layout.strength": -1.0}}, ConfigError, "layout.strength"),
        ({"settings": [1.0]}, ConfigError, "settings takes values by the names of --set"),
        ({"settings": {"layout.early_exaggeration": 4.0}}, ConfigError, "layout.early_exaggeration=4.0 has no effect"),
        ({"settings": {"layout.repulsion": "grid"}, "n_components": 4}, ConfigError, "in 2 or 3 dimensions"),
        (
            {"init": np.eye(40, 2), "settings": {"layout.start_deviation": 2.0}},
            ConfigError,
            "start_deviation is that of",
        ),
        ({"random_state": -1}, ConfigError, "random_state"),
    ],
)
def test_what_cannot_be_minimized_is_refused(changed, error, message):
    with pytest.raises(error, match=message):
        sm.minimize(**{"W": random_affinities(), **changed})


def test_clusters_narrower_than_any_rule_was_measured_on_are_summed_as_finely_as_was_asked():
    draws = np.random.default_rng(0)
    start = np.repeat(draws.uniform(-150, 150, (300, 2)), 20, axis=0) + draws.normal(0, 3e-3, (6000, 2))
    first = np.arange(6000).reshape(300, 20)[:, :-1].ravel()
    half = sp.csr_matrix((np.ones(len(first)), (first, first + 1)), shape=(6000, 6000))
    numbers = {"learning_rate": 1.0, "early_exaggeration": 1.0, "converged": 0.0, "tolerance": 1e-2}
    errors = []
    for iterations in (49, 60):  # errors are looked at after 50
        settings = {f"layout.{name}": value for name, value in {**numbers, "max_iterations": iterations}.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShortfallWarning)
            found = sm.minimize(half + half.T, "t-sne", start, settings=settings)
        assert found.repulsion == "grid"
        errors.append((found.force_error, found.worst_decile_force_error))
    assert errors[1][0] <= 1e-2 < errors[0][0]
    assert errors[1][1] <= 1e-1 < errors[0][1]
