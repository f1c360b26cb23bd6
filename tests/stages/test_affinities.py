"""The stage `affinities`: weights by their formulas, and certificates that tell the truth where it is bad."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.runs.new_points.placements import DescentPlacer
from scalemani.runs.walk import run

K = 12
FLOOR = np.finfo(np.float32).tiny


def affinities_of(points, folder, block_rows=1024, workers=2, progress=None, **values):
    """Return the run, and the stage's group, of points with these parameters of the affinities."""
    asked = {"neighbors": {"n_neighbors": K}, "affinities": {"perplexity": 4, **values}, "embedding": {"solver": "lll"}}
    params = Parameters().with_values({**asked, "landmarks": {"n_landmarks": 60}})
    executor = Executor(workers=workers, progress=progress or Progress())
    finished = run(open_points(points), folder, "laplacian-eigenmaps", params, executor, block_rows)
    return finished, finished.group("affinities")


def squared_distances(finished):
    return finished.group("neighbors").read("round_0/distances").astype(np.float64) ** 2


@pytest.fixture(scope="module")
def points(roll):
    return np.array(roll[:2500])


@pytest.mark.parametrize("sigma", [0.3, 1.6])
def test_gaussian_weights_have_the_sigma_that_was_asked_for(points, tmp_path, sigma):
    finished, group = affinities_of(points, tmp_path / "run", kind="gaussian", sigma=sigma)
    expected = np.exp(-squared_distances(finished) / (2 * sigma**2))
    np.testing.assert_allclose(group.read("values"), np.maximum(expected, FLOOR), rtol=1e-6)


@pytest.mark.parametrize("nth", [1, 3, K])
def test_self_tuning_weights_take_each_points_distance_to_the_neighbour_asked_for(points, tmp_path, nth):
    finished, group = affinities_of(points, tmp_path / "run", kind="self-tuning", bandwidth_neighbor=nth)
    squared = squared_distances(finished)
    expected = np.maximum(np.exp(-squared / (2 * squared[:, nth - 1 : nth])), FLOOR)
    np.testing.assert_allclose(group.read("values"), expected, rtol=1e-6)


@pytest.mark.parametrize("nth", [2, 7])
def test_a_sigma_left_open_is_the_median_distance_to_a_neighbour(points, tmp_path, nth):
    given = {"kind": "gaussian", "bandwidth_neighbor": nth}
    finished, group = affinities_of(points, tmp_path / "run", **given)
    away = np.sort(np.linalg.norm(points[:, np.newaxis].astype(np.float64) - points, axis=2), axis=1)
    sigma = np.median(away[:, nth])  # its own row is the nearest
    assert finished.certificates["affinities"]["sigma"] == pytest.approx(sigma, rel=1e-6)
    expected = np.exp(-squared_distances(finished) / (2 * sigma**2))
    np.testing.assert_allclose(group.read("values"), expected, rtol=1e-5)
    other, _ = affinities_of(points, tmp_path / "other", block_rows=4096, workers=1, **given)
    assert other.certificates["affinities"]["sigma"] == finished.certificates["affinities"]["sigma"]


def test_an_explicit_sigma_gives_the_bits_of_the_same_one_chosen(points, tmp_path):
    chosen, left_open = affinities_of(points, tmp_path / "open", kind="gaussian")
    sigma = chosen.certificates["affinities"]["sigma"]
    _, explicit = affinities_of(points, tmp_path / "explicit", kind="gaussian", sigma=sigma)
    np.testing.assert_array_equal(explicit.read("values"), left_open.read("values"))


def test_points_with_duplicates_for_neighbours_have_a_sigma_too(points, tmp_path):
    finished, group = affinities_of(np.repeat(points[:70], K + 1, axis=0), tmp_path / "run", kind="gaussian")
    assert finished.certificates["affinities"]["sigma"] == 1.0
    np.testing.assert_array_equal(group.read("values"), 1.0)


def test_new_points_get_the_sigma_of_the_run(points, tmp_path):
    values = {"neighbors": {"n_neighbors": K}, "affinities": {"kind": "gaussian"}, "layout": {"max_iterations": 5}}
    finished = run(open_points(points), tmp_path / "run", "t-sne", Parameters().with_values(values), Executor())
    placement = DescentPlacer.read(finished, in_memory=True)
    assert placement.sigma == finished.certificates["affinities"]["sigma"]


def test_uniform_affinities_are_the_connectivities_of_scikit_learn(points, tmp_path):
    finished, group = affinities_of(points, tmp_path / "run", kind="uniform")
    expected = kneighbors_graph(points, K, mode="connectivity")
    expected = 0.5 * (expected + expected.T)
    assert abs(finished.affinities.tocsr() - expected).max() == 0
    np.testing.assert_array_equal(group.read("values"), 1)
    assert finished.certificates["affinities"]["effective_neighbors"] == pytest.approx(K)


def test_a_neighbour_beyond_the_graph_gives_no_sigma(points, tmp_path):
    with pytest.raises(ConfigError, match="bandwidth_neighbor must be at most n_neighbors"):
        affinities_of(points, tmp_path / "run", kind="gaussian", bandwidth_neighbor=K + 1)
    affinities_of(points, tmp_path / "run", kind="gaussian", sigma=1.0, bandwidth_neighbor=K + 1)


@pytest.mark.parametrize(
    ("kind", "sigma"), [("gaussian", 1.0), ("gaussian", 2.0), ("gaussian", None), ("self-tuning", None)]
)
def test_weights_at_the_floor_and_neighbours_that_count_are_those_of_the_stored_weights(
    tmp_path, listening, kind, sigma
):
    digits = load_digits().data.astype(np.float32)
    finished, group = affinities_of(digits, tmp_path / "run", progress=listening, kind=kind, sigma=sigma)
    stored = group.read("values")
    certificates = finished.certificates["affinities"]
    shares = stored / stored.sum(axis=1, dtype=np.float64)[:, np.newaxis]
    effective = np.exp(-(shares * np.log(shares)).sum(axis=1)).mean()
    assert certificates["floor_share"] == np.mean(stored <= FLOOR)
    assert certificates["effective_neighbors"] == pytest.approx(effective, rel=1e-9)
    of_weights = [text for text in listening.warned if text.startswith("affinities:")]  # other stages warn too
    if sigma == 1.0:  # nearly all weights are at the floor: a graph without weights
        assert certificates["floor_share"] > 0.9
        (told,) = of_weights
        assert "affinities.sigma" in told
        assert "100%" in told or "9" in told
    elif sigma is None:
        assert certificates["floor_share"] == 0
        assert not of_weights
        assert 4 < effective < K


@pytest.mark.parametrize("tolerance", [1e-10, 0.05])
def test_the_entropy_residual_is_that_of_what_is_stored(points, tmp_path, tolerance):
    finished, group = affinities_of(points, tmp_path / "run", tolerance=tolerance)
    stored = group.read("values").astype(np.float64)
    shares = stored / stored.sum(axis=1, keepdims=True)
    entropies = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1)
    residual = np.abs(entropies - math.log(4)).max()
    certificates = finished.certificates["affinities"]
    assert certificates["largest_entropy_residual"] == pytest.approx(residual, rel=1e-6, abs=1e-14)
    assert certificates["largest_solver_residual"] == np.abs(group.read("residuals")).max() <= tolerance
    # Float32 moves the entropy further than the solver leaves it; a solver that stops early leaves it further still.
    assert 1e-9 < residual < 1e-6 if tolerance == 1e-10 else residual > 1e-4


@pytest.mark.parametrize(("solver", "most"), [("halley", 4), ("bisection", 60)])
def test_the_mean_of_the_iterations_is_that_of_the_points(points, tmp_path, solver, most):
    finished, group = affinities_of(points, tmp_path / "run", solver=solver)
    iterations = group.read("iterations")
    assert finished.certificates["affinities"]["mean_iterations"] == iterations.mean()
    assert most / 3 < iterations.mean() < most


def test_saturated_and_duplicated_points_are_counted_and_told_of(points, tmp_path, listening):
    repeated = np.concatenate([np.repeat(points[:10], 6, axis=0), np.repeat(points[10:30], 2, axis=0), points[30:500]])
    finished, group = affinities_of(repeated, tmp_path / "run", progress=listening)
    certificates = finished.certificates["affinities"]
    squared = squared_distances(finished)
    saturated = int(((squared == squared[:, :1]).sum(axis=1) >= 4).sum())  # as many as the perplexity
    assert certificates["saturated_points"] == saturated >= 60
    assert certificates["duplicated_points"] == 60 + 40
    assert certificates["largest_entropy_residual"] < 1e-6  # of the points that have a root
    assert any(
        f"{saturated} of 570 points have at least as many equally near neighbours" in told for told in listening.warned
    )
    of_saturated = group.read("values")[group.read("saturated") == 1]
    ties = (squared == squared[:, :1])[group.read("saturated") == 1]
    np.testing.assert_allclose(of_saturated, ties / ties.sum(axis=1, keepdims=True), rtol=1e-6)


def test_a_random_order_is_drawn_by_the_seed_and_changes_the_steps_alone(points, tmp_path):
    found = {}
    for seed in (0, 1):
        values = {"neighbors": {"n_neighbors": K, "method": "exact"}, "seed": seed}
        asked = {**values, "affinities": {"perplexity": 4, "order": "random"}, "landmarks": {"n_landmarks": 60}}
        params = Parameters().with_values({**asked, "embedding": {"solver": "lll"}})
        finished = run(open_points(points), tmp_path / str(seed), "laplacian-eigenmaps", params, Executor(), 4096)
        back = np.argsort(finished.group("work_points").read("input_rows"))
        found[seed] = [finished.group("affinities").read(name)[back] for name in ("iterations", "values")]
    assert (found[0][0] != found[1][0]).any()
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)
