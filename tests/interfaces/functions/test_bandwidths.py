import numpy as np
import pytest

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

K = 12
FLOOR = np.finfo(np.float32).tiny


def distances(n_rows=200, k=K):
    return np.sort(np.random.default_rng(0).gamma(4.0, 1.0, (n_rows, k)), axis=1)


def stored_weights(points, folder, **asked):
    """Return the distances that a run finds, float32, and the weights that it stores of them, float32."""
    values = {"neighbors": {"n_neighbors": K}, "affinities": asked, "embedding": {"solver": "lll"}}
    params = Parameters().with_values({**values, "landmarks": {"n_landmarks": 60}})
    finished = run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(workers=1), 1024)
    found = finished.group("neighbors").read("round_0/distances")
    return found, finished.group("affinities").read("values")


@pytest.mark.parametrize("asked", [{}, {"sigma": 0.8}, {"neighbor": 3}])
def test_gaussian_weights_are_to_the_bit_those_that_a_run_stores(roll, tmp_path, asked):
    of_run = {{"neighbor": "bandwidth_neighbor"}.get(name, name): value for name, value in asked.items()}
    found, stored = stored_weights(np.array(roll[:2500]), tmp_path / "run", kind="gaussian", **of_run)
    np.testing.assert_array_equal(sm.gaussian_affinities(found, **asked).astype(np.float32), stored)


@pytest.mark.parametrize("neighbor", [7, 2])
def test_self_tuning_weights_are_to_the_bit_those_that_a_run_stores(roll, tmp_path, neighbor):
    asked = {"kind": "self-tuning", "bandwidth_neighbor": neighbor}
    found, stored = stored_weights(np.array(roll[:2500]), tmp_path / "run", **asked)
    np.testing.assert_array_equal(sm.self_tuning_affinities(found, neighbor).astype(np.float32), stored)


def test_weights_are_those_of_the_formula():
    away = distances()
    expected = np.maximum(np.exp(-(away**2) / (2 * 1.7**2)), FLOOR)
    np.testing.assert_allclose(sm.gaussian_affinities(away.tolist(), 1.7), expected, rtol=1e-13)
    expected = np.maximum(np.exp(-(away**2) / (2 * np.median(away[:, 6]) ** 2)), FLOOR)
    np.testing.assert_allclose(sm.gaussian_affinities(away), expected, rtol=1e-13)
    expected = np.maximum(np.exp(-(away**2) / (2 * away[:, 3:4] ** 2)), FLOOR)
    np.testing.assert_allclose(sm.self_tuning_affinities(away, neighbor=4), expected, rtol=1e-13)


def test_a_single_neighbour_has_the_weight_that_it_has_beside_others():
    away = distances()
    nearest = away[:, :1]
    np.testing.assert_allclose(
        sm.gaussian_affinities(nearest, 1.7), sm.gaussian_affinities(away, 1.7)[:, :1], rtol=1e-13
    )
    np.testing.assert_allclose(sm.self_tuning_affinities(nearest, neighbor=1), np.exp(-0.5), rtol=1e-13)


def test_sigma_follows_a_sample_of_many_points_by_the_seed():
    away = np.sort(np.random.default_rng(1).gamma(2.0, 1.0, (10_100, 2)), axis=1)
    first, again, other = (sm.gaussian_affinities(away, neighbor=1, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_allclose(first, np.exp(-((away / np.median(away[:, 0])) ** 2) / 2), rtol=0.05, atol=0.01)


def test_edges_far_beyond_sigma_keep_the_least_weight():
    weights = sm.gaussian_affinities([[0.0, 1e100]], sigma=1e-30)
    np.testing.assert_array_equal(weights, [[1.0, FLOOR]])


@pytest.mark.parametrize("sigma", [0.0, -1.0, np.nan, np.inf, True, "wide"])
def test_a_sigma_that_is_no_width_is_refused(sigma):
    with pytest.raises(ConfigError, match=r"^sigma must be"):
        sm.gaussian_affinities(distances(), sigma)


@pytest.mark.parametrize("neighbor", [0, K + 1, 2.5])
@pytest.mark.parametrize("weigh", [sm.gaussian_affinities, sm.self_tuning_affinities])
def test_a_neighbour_that_rows_do_not_have_is_refused(weigh, neighbor):
    with pytest.raises(ConfigError, match="neighbor must be"):
        weigh(distances(), neighbor=neighbor)


@pytest.mark.parametrize("weigh", [sm.gaussian_affinities, sm.self_tuning_affinities])
@pytest.mark.parametrize("bad", [[[2.0, 1.0]], [[-1.0, 1.0]], [[0.0, np.nan]], [[0.0, 1e151]], [1.0, 2.0], [[], []]])
def test_tables_that_are_no_distances_are_refused(weigh, bad):
    with pytest.raises(DataError, match="distances"):
        weigh(bad, neighbor=1)
