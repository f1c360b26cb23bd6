"""The start of a descent: what one step that is too small to be seen leaves of it."""

import numpy as np
import pytest
from scipy.stats import kstest

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.config.routes import EIGENVECTOR_STAGES
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, StoreError
from scalemani.io.sources import open_points
from scalemani.runs.walk import plan_run, run

DEVIATION = 0.5
JITTER = 1e-6
ONE_TINY_STEP = {"direction": "gradient-descent", "learning_rate": 1e-12, "max_iterations": 1, "converged": 0.0}


def values(init, **layout):
    asked = {"init": init, "start_deviation": DEVIATION, "jitter": JITTER, **ONE_TINY_STEP, **layout}
    return {"neighbors": {"n_neighbors": 12}, "affinities": {"perplexity": 4}, "layout": asked}


@pytest.fixture(scope="module")
def points():
    """2,500 points in a flat box of five dimensions, of which two are long, far off the origin."""
    lengths = np.array([1.0, 9.0, 2.0, 5.0, 0.5])
    return 30.0 + np.random.default_rng(0).uniform(-1, 1, (2500, 5)) * lengths


@pytest.fixture(scope="module")
def started(points, tmp_path_factory):
    folder = tmp_path_factory.mktemp("starts") / "run"

    def embedded(init, block_rows=1024, where=folder, **layout):
        asked = Parameters().with_values(values(init, **layout))
        return run(open_points(points), where, "t-sne", asked, Executor(workers=1), block_rows)

    return embedded


def standardized(columns):
    return DEVIATION * (columns - columns.mean(axis=0)) / columns.std(axis=0)


def test_principal_components_are_those_of_a_singular_value_decomposition(points, started):
    axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:2]
    axes *= np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])[:, np.newaxis]
    expected = standardized(points @ axes.T)
    np.testing.assert_allclose(started("pca").embedding[...], expected, rtol=0, atol=1e-4)


def test_random_starts_are_normal_draws_of_the_seed_without_correlation(started):
    found = np.asarray(started("random").embedding[...])
    for column in found.T:
        assert kstest(column / DEVIATION, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(found.T)[0, 1]) < 0.1
    np.testing.assert_allclose(found.std(axis=0), DEVIATION, rtol=1e-3)


@pytest.mark.parametrize("init", ["pca", "random"])
def test_blocks_leave_no_trace_in_a_start(started, tmp_path, init):
    other = started(init, block_rows=2048, where=tmp_path / "run")
    np.testing.assert_array_equal(other.embedding[...], started(init).embedding[...])


@pytest.mark.parametrize("init", ["pca", "random"])
def test_other_starts_run_no_stage_of_the_spectral_embedding(started, init):
    finished = started(init)
    assert {stage.name for stage in EIGENVECTOR_STAGES} & set(finished.keys) == {"landmarks"}
    with pytest.raises(StoreError):
        _ = finished.eigenvalues


def test_the_spectral_start_has_the_keys_of_parameters_without_a_start(points, tmp_path):
    assert "init" not in Parameters().of_stage("layout")
    assert Parameters().with_values({"layout": {"init": "pca"}}).of_stage("layout")["init"] == "pca"
    plan = plan_run(open_points(points), tmp_path / "run", "t-sne", Parameters(), Executor(workers=1))
    assert [planned.stage.name for planned in plan.stages][-1] == "layout"
    assert {"coarse_graphs", "embedding"} <= {planned.stage.name for planned in plan.stages}


def test_a_start_is_no_parameter_of_methods_without_a_descent():
    asked = Parameters().with_values({"layout": {"init": "random"}})
    for method in ("laplacian-eigenmaps", "diffusion-maps", "spectral-clustering"):
        assert asked.route(method) == Parameters().route(method)
        assert "layout" not in [stage.name for stage in asked.route(method)]


@pytest.mark.parametrize(
    ("init", "others", "words"),
    [
        ("pca", {"landmark_embedding": {"n_components": 6}}, "has 5 principal components, of 5 features"),
        (
            "pca",
            {"partition": {"sketch_dimensions": 1}},
            "has 1 principal components, .*sketch_dimensions=1, .*n_components=2 asks for more",
        ),
        ("middle", {}, "layout.init"),
    ],
)
def test_a_start_that_cannot_be_is_refused_before_anything_is_written(points, tmp_path, init, others, words):
    def asked_for():
        asked = Parameters().with_values({**values(init), **others})
        run(open_points(points), tmp_path / "run", "t-sne", asked, Executor(workers=1))

    with pytest.raises(ConfigError, match=words):
        asked_for()
    assert not (tmp_path / "run").exists()


def test_neighbours_alone_have_random_starts_and_no_principal_components(points):
    lists = sm.knn_graph(points[:400], 12)
    asked = {"metric": "precomputed", "perplexity": 4, "max_iter": 5}
    assert sm.TSNE(init="random", **asked).fit_transform(lists).shape == (400, 2)
    with pytest.raises(ConfigError, match=r"init='pca' needs points"):
        sm.TSNE(init="pca", **asked).fit(lists)


def test_new_points_are_placed_where_the_descent_came_from_another_start(points):
    model = sm.TSNE(init="pca", perplexity=10, max_iter=50).fit(points[:500])
    np.testing.assert_array_equal(model.transform(points[:5]), model.embedding_[:5])
    assert np.isfinite(model.transform(points[500:510])).all()
