"""Runs: the same bits whatever computes them, resumed, appended to, and applied to new points."""

import numpy as np
import pytest
from sklearn.base import clone

import scalemani as sm

pytestmark = pytest.mark.filterwarnings("ignore:.*not converged:UserWarning")  # few iterations suffice for these


@pytest.fixture(scope="module")
def stored(digits, tmp_path_factory):
    """A finished model with a store of its own, and that store."""
    store = tmp_path_factory.mktemp("stored") / "run"
    return sm.LaplacianEigenmaps(2, n_neighbors=15, store=store).fit(digits[0]), store


@pytest.mark.parametrize("resources", [{"workers": 1}, {"workers": 3}, {"memory": "2GB"}])
def test_resources_change_no_bit(digits, stored, resources):
    embedding = sm.LaplacianEigenmaps(2, n_neighbors=15, **resources).fit(digits[0]).embedding_
    np.testing.assert_array_equal(embedding, stored[0].embedding_)


def test_processes_compute_the_bits_of_threads(digits, stored):
    embedding = sm.LaplacianEigenmaps(2, n_neighbors=15, scheduler="processes", workers=1).fit(digits[0]).embedding_
    np.testing.assert_array_equal(embedding, stored[0].embedding_)


def test_dask_arrays_and_files_are_the_same_points(digits, stored, tmp_path):
    import dask.array as da

    np.save(tmp_path / "points.npy", digits[0])
    for points in (da.from_array(digits[0], chunks=(150, 64)), tmp_path / "points.npy"):
        embedding = sm.LaplacianEigenmaps(2, n_neighbors=15).fit(points).embedding_
        np.testing.assert_array_equal(embedding, stored[0].embedding_)


def test_a_seed_gives_the_same_map_and_another_seed_another(digits):
    first, again, other = (
        sm.TSNE(perplexity=10, max_iter=50, init="random", random_state=seed).fit_transform(digits[0][:250])
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_a_store_opens_with_the_embedding_and_its_certificates(stored):
    run = sm.open_run(stored[1])
    embedding = stored[0].embedding_
    np.testing.assert_array_equal(run.embedding, embedding)
    left = embedding[:, 0] < 0
    for rows in (left, [5, 1, 1], 3, slice(2, 9, 3), (slice(None), 1)):
        np.testing.assert_array_equal(run.embedding[rows], embedding[rows])
    assert len(run.embedding) == len(embedding)
    certificates = stored[0].certificates_
    assert {"neighbors", "embedding"} <= set(certificates)
    assert certificates["embedding"]["residual"] <= 1e-2


def test_another_method_reuses_the_graph_of_a_store(digits, stored):
    model = sm.TSNE(n_neighbors=15, perplexity=5, max_iter=20, store=stored[1]).fit(digits[0])
    fresh = sm.TSNE(n_neighbors=15, perplexity=5, max_iter=20).fit(digits[0])
    np.testing.assert_array_equal(model.embedding_, fresh.embedding_)


def test_landmark_models_place_new_points_near_their_own_kind(digits):
    model = sm.LaplacianEigenmaps(3, n_neighbors=15, solver="lll", n_landmarks=300).fit(digits[0][:700])
    placed = model.transform(digits[0][700:])
    assert placed.shape == (100, 3)
    both = np.concatenate([model.embedding_, placed])
    distances = np.linalg.norm(both[700:, None] - both[None, :700], axis=2)
    assert np.mean(digits[1][distances.argmin(axis=1)] == digits[1][700:]) > 0.6


def test_descents_place_training_points_where_they_are(digits):
    model = sm.TSNE(perplexity=10, max_iter=200).fit(digits[0][:500])
    placed = model.transform(digits[0][:20])
    extent = np.ptp(model.embedding_, axis=0).max()
    assert np.median(np.linalg.norm(placed - model.embedding_[:20], axis=1)) < 0.05 * extent


def test_appended_points_join_the_run(digits, tmp_path):
    sm.LaplacianEigenmaps(2, n_neighbors=15, store=tmp_path / "run").fit(digits[0][:700])
    grown = sm.append(tmp_path / "run", digits[0][700:])
    assert grown.run.embedding.shape == (800, 2)
    assert grown.appended == 100


def test_align_finds_the_transform_that_was_applied(stored):
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    moved = 3.0 * stored[0].embedding_ @ rotation + [1.0, -2.0]
    found = sm.align(moved, stored[0].embedding_)
    assert found.relative_residual < 1e-6


def test_estimators_are_scikit_learns(digits):
    model = sm.SpectralClustering(5, n_neighbors=10, random_state=3)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(n_clusters=4).n_clusters == 4


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"perplexity": 1e9}, "perplexity"),
        ({"solver": "sideways"}, "solver"),
        ({"memory": "3 bananas"}, "memory"),
    ],
)
def test_parameters_out_of_range_are_named_before_work_starts(digits, parameters, message):
    with pytest.raises(ValueError, match=message):
        sm.LaplacianEigenmaps(2, **parameters).fit(digits[0])


def test_a_grid_is_tuned_on_one_graph(digits, tmp_path):
    estimator = sm.LaplacianEigenmaps(2, n_neighbors=15, store=tmp_path / "run")
    found = sm.tune(estimator, {"perplexity": [3, 5]}, digits[0][:300], digits[1][:300])
    assert len(found.cells) == 2
    assert found.best_estimator_.perplexity in (3, 5)
