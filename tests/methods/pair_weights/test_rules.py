"""Weights of repelling pairs against dense double sums by NumPy, in functions, runs, commands and estimators."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist
from typer.testing import CliRunner

import scalemani as sm
from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.interfaces.cli.commands import app
from scalemani.methods.pair_weights.parameters import named_by_content

KERNELS = {
    "elastic-embedding": (lambda s: s, lambda s: np.exp(-s)),
    "t-ee": (np.log1p, lambda s: 1 / (1 + s)),
    "epanechnikov-ee": (lambda s: s, lambda s: np.maximum(0, 1 - s)),
}
N_POINTS = 60
DRAWS = np.random.default_rng(5)
POINTS = DRAWS.normal(size=(N_POINTS, 4))
SETTINGS = {
    "layout.strength": 0.5,
    "layout.max_iterations": 12,
    "layout.converged": 0.0,
    "neighbors.n_neighbors": 10,
    "landmarks.n_landmarks": 20,
    "affinities.perplexity": 4.0,
}


def symmetric(density, seed=0):
    draws = np.random.default_rng(seed)
    weights = draws.random((N_POINTS, N_POINTS)) * (draws.random((N_POINTS, N_POINTS)) < density)
    return weights + weights.T


def dense_value(positions, affinities, pairs, method, strength):
    """E of a dense W+ and W-, by definition; diagonals are left out."""
    attraction, kernel = KERNELS[method]
    squares, apart = cdist(positions, positions, "sqeuclidean"), 1 - np.eye(len(positions))
    return float((apart * (affinities * attraction(squares) + strength * pairs * kernel(squares))).sum())


@pytest.mark.parametrize("method", KERNELS)
@pytest.mark.parametrize("density", [0.2, 2.0])
@pytest.mark.parametrize("n_dims", [1, 2, 4])
def test_value_and_gradient_are_those_of_double_sums(method, density, n_dims):
    affinities, pairs = symmetric(0.3, 1), symmetric(density)
    np.fill_diagonal(affinities, 0)  # the diagonal of the pairs stays: it is to be left out
    positions = np.random.default_rng(2).normal(size=(N_POINTS, n_dims)) * 0.7
    expected = dense_value(positions, affinities, pairs, method, 0.8)
    slopes = approx_fprime(
        positions.ravel(), lambda x: dense_value(x.reshape(positions.shape), affinities, pairs, method, 0.8), 1e-7
    )
    for matrix in (pairs, sp.csr_matrix(pairs), sp.coo_array(pairs)):
        value, gradient = sm.objective_of_pairs(positions, sp.csr_matrix(affinities), matrix, method, 0.8)
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_allclose(gradient.ravel(), slopes, atol=2e-4 * np.abs(slopes).max())


@pytest.mark.parametrize("method", KERNELS)
def test_ones_for_all_pairs_are_no_weights(method):
    affinities = symmetric(0.3, 1)
    np.fill_diagonal(affinities, 0)
    positions, ones = POINTS[:, :2], np.ones((N_POINTS, N_POINTS))
    value, gradient = sm.objective_of_pairs(positions, sp.csr_matrix(affinities), ones, method, 0.8)
    all_pairs = sm.objective(positions, sp.csr_matrix(affinities), method, 0.8, repulsion="exact")
    assert value == pytest.approx(all_pairs[0], rel=1e-13)
    np.testing.assert_allclose(gradient, all_pairs[1], rtol=1e-12, atol=1e-13)


def stored(folder, name="pairs.npz", density=0.4):
    path, pairs = folder / name, symmetric(density)
    np.fill_diagonal(pairs, 0)
    if path.suffix == ".npz":
        sp.save_npz(path, sp.csr_matrix(pairs))
    else:
        np.save(path, pairs)
    return path, pairs


@pytest.mark.parametrize("name", ["pairs.npz", "pairs.npy"])
def test_an_estimator_reaches_a_minimum_of_these_pairs(tmp_path, name):
    path, pairs = stored(tmp_path, name)
    long = {**SETTINGS, "layout.max_iterations": 400, "layout.pair_weights": path, "layout.converged": 1e-12}
    model = sm.ElasticEmbedding(settings=long, store=tmp_path / "run").fit(POINTS)
    affinities = sm.open_run(tmp_path / "run").affinities.tocsr().toarray().astype(np.float64)

    def value(x):
        return dense_value(x.reshape(-1, 2), affinities, pairs, "elastic-embedding", 0.5)

    at_end = model.embedding_.ravel()
    assert model.certificates_["layout"]["objective"] == pytest.approx(value(at_end), rel=1e-6)
    assert model.certificates_["layout"]["pairs"] == np.count_nonzero(np.triu(pairs))
    assert model.certificates_["layout"]["force_error"] == 0
    slope = np.abs(approx_fprime(at_end, value, 1e-6))
    without = sm.ElasticEmbedding(settings={**long, "layout.pair_weights": None}, store=tmp_path / "plain")
    without = without.fit(POINTS).embedding_.ravel()
    plain = sm.open_run(tmp_path / "plain").verify()
    assert "repulsion is over the pairs of the parameters" not in [one.claim for one in plain.findings]
    assert slope.max() < 1e-2 < 0.1 * np.abs(approx_fprime(without, value, 1e-6)).max()
    findings = sm.open_run(tmp_path / "run").verify()
    assert not findings.failed
    assert {"objective", "gradient_norm", "pairs"} <= {one.claim for one in findings.findings if one.verdict == "holds"}
    with pytest.raises(ConfigError, match="new points have no weights of pairs"):
        model.transform(POINTS[:3])


def test_the_command_line_and_minimize_have_the_map_of_the_estimator(tmp_path):
    path, _ = stored(tmp_path)
    np.save(tmp_path / "points.npy", POINTS)
    model = sm.ElasticEmbedding(settings={**SETTINGS, "layout.pair_weights": path}).fit(POINTS)
    named = {**SETTINGS, "layout.pair_weights": path}
    options = [part for name, value in named.items() for part in ("--set", f"{name}={value}")]
    call = ["embed", str(tmp_path / "points.npy"), str(tmp_path / "run"), "--method", "elastic-embedding", *options]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    run = sm.open_run(tmp_path / "run")
    np.testing.assert_array_equal(run.embedding[...], model.embedding_)
    descent = {name: value for name, value in SETTINGS.items() if name.startswith("layout.")}
    found = sm.minimize(
        run.affinities.tocsr(),
        "elastic-embedding",
        POINTS[:, :2],
        settings=descent | {"layout.pair_weights": str(path)},
    )
    value, _ = sm.objective_of_pairs(found.embedding, run.affinities.tocsr(), sp.load_npz(path), strength=0.5)
    assert found.objective == pytest.approx(value, rel=1e-12)


WRONG = [
    (lambda pairs: pairs[:-1, :-1], {}, DataError, r"must be \(60, 60\)"),
    (lambda pairs: -pairs, {}, DataError, "not negative"),
    (lambda pairs: np.triu(pairs), {}, DataError, "must be symmetric"),
    (lambda pairs: 0 * pairs, {}, DataError, "no pair with a weight"),
    (lambda pairs: pairs, {"layout.repulsion": "grid"}, ConfigError, "layout.repulsion is exact"),
    (lambda pairs: pairs, {"layout.repulsion": "fgt"}, ConfigError, "layout.repulsion is exact"),
    (lambda pairs: pairs, {"layout.direction": "spectral-minus"}, ConfigError, "layout.direction is other than"),
    (lambda pairs: pairs, {"doubt.measured": True}, ConfigError, "doubt.measured is False"),
]


@pytest.mark.parametrize(("change", "settings", "error", "words"), WRONG)
def test_what_does_not_fit_is_refused_before_work_starts(tmp_path, change, settings, error, words):
    np.save(tmp_path / "pairs.npy", change(stored(tmp_path)[1]))
    named = {**SETTINGS, "layout.pair_weights": str(tmp_path / "pairs.npy"), **settings}
    with pytest.raises(error, match=words):
        sm.ElasticEmbedding(settings=named, store=tmp_path / "run").fit(POINTS)
    assert not list((tmp_path / "run").glob("**/zarr.json"))


def test_files_that_are_none_and_that_change_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="must be the path of a file"):
        sm.ElasticEmbedding(settings={"layout.pair_weights": "nowhere.npz"}).fit(POINTS)
    path, pairs = stored(tmp_path)
    name = named_by_content(str(path))
    sp.save_npz(path, sp.csr_matrix(2 * pairs))
    assert named_by_content(str(path)) != name
    with pytest.raises(StoreError, match="other content"):
        sm.ElasticEmbedding(settings={**SETTINGS, "layout.pair_weights": name}).fit(POINTS)


@pytest.mark.parametrize("options", [{"sample_weight": np.full(N_POINTS, 2.0)}])
def test_points_that_stand_for_several_are_refused(tmp_path, options):
    path, _ = stored(tmp_path)
    with pytest.raises(ConfigError, match="stand for several"):
        sm.ElasticEmbedding(settings={**SETTINGS, "layout.pair_weights": path}).fit(POINTS, **options)


@pytest.mark.parametrize("method", [sm.TSNE, sm.SymmetricSNE, sm.SNE])
def test_objectives_with_logarithms_refuse_them(tmp_path, method):
    path, _ = stored(tmp_path)
    with pytest.raises(ConfigError, match="elastic-embedding or t-ee or epanechnikov-ee; here it is"):
        method(settings={**SETTINGS, "layout.pair_weights": path}).fit(POINTS)
