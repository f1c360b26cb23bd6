"""Runs of points with weights equal those of the points repeated; without weights nothing is another than it was."""

import numpy as np
import pytest
from typer.testing import CliRunner

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.cli.commands import app
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_weights
from scalemani.runs.new_points import read_placement
from scalemani.runs.opened import open_run
from scalemani.runs.walk import plan_run, run
from scalemani.stages.arrays.embeddings import StoredPlacement

N_POINTS = 150
RANDOM = np.random.default_rng(0)
# Three bands, which the first eigenvectors tell apart: no two eigenvalues are close.
POINTS = RANDOM.normal(size=(N_POINTS, 4)) * [4.0, 2.0, 1.0, 0.5]
WEIGHTS = RANDOM.integers(1, 10, N_POINTS)
ROWS = np.repeat(np.arange(N_POINTS), WEIGHTS)
SPECTRAL = {"affinities": {"perplexity": 40.0}, "embedding": {"solver": "exact"}}
T_SNE = {
    "affinities": {"perplexity": 40.0},
    "embedding": {"solver": "exact"},
    "layout": {"max_iterations": 60, "exaggerated_iterations": 30, "jitter": 1e-9, "converged": 0.0},
}


def computed(points, folder, method, values):
    """Return the run over the complete graph of points."""
    complete = {"neighbors": {"n_neighbors": points.shape[0] - 1}}
    return run(points, folder, method, Parameters().with_values({**values, **complete}), Executor(workers=1))


FEW = {"affinities": {"perplexity": 200.0}, "neighbors": {"n_neighbors": 30}}


def weighted_points(weights=WEIGHTS, points=POINTS):
    return with_weights(open_points(points), weights)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module")
def spectral(folder):
    given = computed(weighted_points(), folder / "weighted", "laplacian-eigenmaps", SPECTRAL)
    return given, computed(open_points(POINTS[ROWS]), folder / "repeated", "laplacian-eigenmaps", SPECTRAL)


@pytest.fixture(scope="module")
def t_sne(folder, spectral):
    given = computed(weighted_points(), folder / "weighted", "t-sne", T_SNE)
    return given, computed(open_points(POINTS[ROWS]), folder / "repeated", "t-sne", T_SNE)


def test_the_spectral_embedding_of_a_run_is_that_of_the_repeated_points(spectral):
    found, expected = spectral
    np.testing.assert_allclose(found.eigenvalues, expected.eigenvalues, rtol=0, atol=1e-6)
    scale = np.abs(expected.embedding[...]).max()
    np.testing.assert_allclose(found.embedding[...][ROWS], expected.embedding[...], rtol=0, atol=1e-5 * scale)


def test_refinement_reaches_the_same_vectors(folder, spectral):
    values = {"affinities": {"perplexity": 40.0}, "embedding": {"residual": 1e-6}}
    found = computed(weighted_points(), folder / "weighted", "laplacian-eigenmaps", values)
    expected = spectral[0].embedding[...]
    assert np.abs(found.embedding[...] - expected).max() < 1e-3 * np.abs(expected).max()
    assert found.certificates["embedding"]["residual"] <= 1e-6


def test_certificates_of_affinities_count_copies(spectral):
    found, expected = (opened.certificates["affinities"] for opened in spectral)
    assert found["largest_entropy_residual"] < 1e-5
    assert found["saturated_points"] == expected["saturated_points"] == 0
    stored = spectral[0].certificates["weights"]
    assert (stored["total_weight"], stored["largest_weight"]) == (len(ROWS), 9)


def test_the_affinities_of_a_run_sum_those_of_all_copies(spectral):
    found, expected = (opened.affinities.tocsr().toarray().astype(np.float64) for opened in spectral)
    sums = np.zeros((N_POINTS, len(ROWS)))
    np.add.at(sums, ROWS, expected)
    both = np.zeros((N_POINTS, N_POINTS))
    np.add.at(both, ROWS, sums.T)
    np.testing.assert_allclose(found, both, rtol=1e-5, atol=1e-7)


def test_a_descent_goes_the_way_of_the_repeated_points(t_sne):
    found, expected = t_sne
    assert found.certificates["layout"]["objective"] == pytest.approx(
        expected.certificates["layout"]["objective"], rel=1e-3
    )
    positions, others = found.embedding[...][ROWS], expected.embedding[...]
    positions, others = positions - positions.mean(axis=0), others - others.mean(axis=0)
    assert np.linalg.norm(positions - others) < 0.05 * np.linalg.norm(others)


def test_new_points_are_placed_as_among_the_repeated_points(folder, t_sne):
    new = POINTS[:40] + 0.05
    found, expected = (read_placement(opened).place(new)[StoredPlacement.coordinates] for opened in t_sne)
    for opened, placed in ((t_sne[0], found), (t_sne[1], expected)):
        placed -= np.asarray(opened.embedding[...]).mean(axis=0)
    middle = np.average(t_sne[0].embedding[...], axis=0, weights=WEIGHTS) - t_sne[0].embedding[...].mean(axis=0)
    assert np.median(np.linalg.norm(found - middle - expected, axis=1)) < 0.1 * np.abs(expected).max()


def test_diffusion_divides_by_the_density_of_copies(folder):
    values = {**SPECTRAL, "normalized_affinities": {"alpha": 1.0}}
    found = computed(weighted_points(), folder / "weighted", "diffusion-maps", values)
    expected = computed(open_points(POINTS[ROWS]), folder / "repeated", "diffusion-maps", values)
    scale = np.abs(expected.embedding[...]).max()
    np.testing.assert_allclose(found.embedding[...][ROWS], expected.embedding[...], rtol=0, atol=1e-5 * scale)


def keys(points, method="t-sne", **values):
    plan = plan_run(
        points, "unused", method, Parameters().with_values(values), Executor(workers=1, progress=Progress())
    )
    return {planned.stage.name: planned.key for planned in plan.stages}


def test_weights_are_in_the_keys_of_what_follows_from_them_alone():
    plain, given = keys(open_points(POINTS)), keys(weighted_points())
    other = keys(weighted_points(WEIGHTS[::-1]))
    graph = ("points", "partition", "work_points", "neighbors", "landmarks")
    assert "weights" not in plain
    for name, key in given.items():
        assert (key == plain.get(name)) == (name in graph), name
        assert (key == other[name]) == (name in graph), name
    assert keys(weighted_points()) == given


@pytest.mark.parametrize(
    ("weights", "method", "values", "error", "message"),
    [
        (WEIGHTS, "spectral-clustering", {}, ConfigError, "spectral-clustering takes no weights"),
        (WEIGHTS, "t-sne", {"affinities": {"kind": "gaussian"}}, ConfigError, "kind must be entropic for points with"),
        (WEIGHTS, "t-sne", FEW, ConfigError, r"must be below 46, the sum of the 30 smallest weights"),
        (WEIGHTS, "s-sne", {"layout": {"direction": "spectral-minus"}}, ConfigError, "spectral-minus knows no weights"),
        (WEIGHTS, "t-sne", {"embedding": {"solver": "variational-nystrom"}}, ConfigError, "knows no weights"),
        (WEIGHTS[1:], "t-sne", {}, DataError, "weights has 149 weights for 150 points"),
        (np.r_[0, WEIGHTS[1:]], "t-sne", {}, DataError, r"in row\(s\) 0; the first is 0"),
        (np.r_[WEIGHTS[1:], -2], "t-sne", {}, DataError, r"1 are not, in row\(s\) 149; the first is -2"),
    ],
)  # fmt: skip
def test_what_weights_cannot_have_is_refused_before_work(weights, method, values, error, message):
    with pytest.raises(error, match=message):
        keys(weighted_points(weights), method, **values)


def test_the_command_line_and_estimators_take_the_same_weights(folder, spectral):
    np.save(folder / "points.npy", POINTS)
    (folder / "weights.txt").write_text("\n".join(map(str, WEIGHTS)))
    sets = ["--set=affinities.perplexity=40", "--set=embedding.solver=exact", "--set=neighbors.n_neighbors=149"]
    given = [str(folder / "points.npy"), str(folder / "by-command"), "--weights", str(folder / "weights.txt"), *sets]
    done = CliRunner().invoke(app, ["embed", *given], catch_exceptions=False)
    assert done.exit_code == 0
    expected = spectral[0].embedding[...]
    assert np.array_equal(open_run(folder / "by-command").embedding[...], expected)
    model = sm.LaplacianEigenmaps(perplexity=40, solver="exact", n_neighbors=149)
    assert np.array_equal(model.fit_transform(POINTS, sample_weight=WEIGHTS), expected)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weights'"):
        model.fit(POINTS, sample_weights=WEIGHTS)
    (folder / "weights.txt").write_text("\n".join(map(str, [-1, *WEIGHTS[1:]])))
    refused = CliRunner().invoke(app, ["embed", *given])
    assert isinstance(refused.exception, DataError)
    assert "the first is -1" in str(refused.exception)


def test_the_largest_component_keeps_its_weights(folder):
    far = np.concatenate([POINTS, POINTS[:30] + 1000.0])
    weights = np.concatenate([WEIGHTS, WEIGHTS[:30]])
    values = {"components": {"disconnected": "largest"}, "affinities": {"perplexity": 20.0}}
    values |= {"neighbors": {"n_neighbors": 25}, "embedding": {"solver": "exact"}}
    params = Parameters().with_values(values)
    kept = run(weighted_points(weights, far), folder / "largest", "laplacian-eigenmaps", params, Executor(workers=1))
    alone = run(weighted_points(), folder / "alone", "laplacian-eigenmaps", params, Executor(workers=1))
    assert kept.certificates["weights"]["total_weight"] == WEIGHTS.sum()
    np.testing.assert_allclose(kept.eigenvalues, alone.eigenvalues, rtol=1e-5)


def test_points_of_many_copies_are_joined_by_bridges(folder):
    weights = np.full(N_POINTS, 60)
    values = {"affinities": {"perplexity": 40.0}, "neighbors": {"n_neighbors": 25}, "embedding": {"solver": "exact"}}
    params = Parameters().with_values(values)
    found = run(weighted_points(weights), folder / "many", "laplacian-eigenmaps", params, Executor(workers=1))
    assert found.certificates["affinities"]["saturated_points"] == N_POINTS
    assert found.certificates["components"]["bridges"] == N_POINTS - 1
    assert np.isfinite(found.embedding[...]).all()


@pytest.mark.parametrize("largest", [1.1e18, 1e38, np.inf])
def test_weights_whose_sums_leave_float32_are_refused_before_work_and_large_ones_change_no_scale(largest, tmp_path):
    points = np.random.default_rng(0).normal(size=(80, 3)) + 40.0 * (np.arange(80) % 2)[:, np.newaxis]
    weights = np.ones(80)
    weights[7] = largest
    with pytest.raises(DataError, match=r"at most 1e\+18.* 1 are not, in row\(s\) 7; the first is"):
        sm.LaplacianEigenmaps(perplexity=5, store=tmp_path / "run").fit(points, sample_weight=weights)
    assert not (tmp_path / "run").exists()
    model = sm.LaplacianEigenmaps(perplexity=5)
    found = model.fit(points, sample_weight=np.full(80, 1e18)).embedding_
    assert np.isfinite(found).all()
