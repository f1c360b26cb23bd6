"""The variational Nystrom method as the solver of a run: the method on its own W and landmarks, and new points."""

import numpy as np
import pytest

import scalemani as sm
from scalemani.errors import ConfigError
from scalemani.stages.arrays.landmarks import StoredAffinityWeights
from tests.methods.variational.test_kernels import variational_eigenmaps


def points_of(n_points=2600):
    return np.random.default_rng(7).normal(size=(n_points, 4)) * [3.0, 2.0, 1.0, 0.5]


SETTINGS = {
    "n_components": 3,
    "n_neighbors": 15,
    "perplexity": 5.0,
    "n_landmarks": 120,
    "solver": "variational-nystrom",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    store = tmp_path_factory.mktemp("variational") / "run"
    return sm.LaplacianEigenmaps(**SETTINGS, store=store).fit(points_of())


def test_a_run_is_the_method_on_its_own_affinities_and_landmarks(model):
    run = model.run_
    expected = variational_eigenmaps(run.affinities.tocsr(), run.landmarks.rows, 3)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues, atol=1e-9)
    assert sm.measures.subspace_angle(model.embedding_, expected.embedding) < 1e-5


def test_its_weights_are_stored_by_rows_that_sum_to_one_and_certified(model):
    stored = StoredAffinityWeights(model.run_.group("affinity_weights"))
    weights = stored.shared_matrix(120)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    part = stored.read_matrix(1, 120)
    assert (part != weights[1024:2048]).nnz == 0
    certificates = model.certificates_["affinity_weights"]
    assert certificates["landmarks_a_point"] == weights.nnz / 2600
    assert certificates["points_without_landmark"] > 0
    assert certificates["further_steps"] >= 1


def test_the_result_does_not_depend_on_workers(model, tmp_path):
    again = sm.LaplacianEigenmaps(**SETTINGS, scheduler="processes", workers=2, store=tmp_path / "run").fit(points_of())
    np.testing.assert_array_equal(again.embedding_, model.embedding_)


def test_a_training_point_is_placed_at_its_own_place(model):
    points = points_of()
    np.testing.assert_array_equal(model.transform(points[:50]), model.embedding_[:50])


def placed_by_hand(model, points, new, densities):
    """Return new points at the mean of the landmarks among their 15 neighbours, by affinity over density."""
    squares = np.sum((new[:, None] - points) ** 2, axis=2)
    indices = np.argsort(squares, axis=1)[:, :15]
    distances = np.sqrt(np.take_along_axis(squares, indices, axis=1))
    affinities = sm.entropic_affinities(distances, 5.0).values / densities[indices]
    onto = affinities * np.isin(indices, model.run_.landmarks.rows)
    weights = np.where(onto.any(axis=1, keepdims=True), onto, affinities)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("nk,nkd->nd", weights, model.embedding_[indices])


def test_a_new_point_is_the_mean_of_the_landmarks_among_its_neighbors(model):
    points, new = points_of(), np.random.default_rng(8).normal(size=(40, 4))
    expected = placed_by_hand(model, points, new, np.ones(len(points)))
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-8)


def test_transform_of_a_run_tells_the_recall_of_its_search(model, tmp_path):
    placed = sm.transform(model.run_, np.random.default_rng(8).normal(size=(40, 4)), tmp_path / "placed.npy")
    np.testing.assert_array_equal(
        np.load(tmp_path / "placed.npy"), model.transform(np.random.default_rng(8).normal(size=(40, 4)))
    )
    assert placed.certificates["recall"] == 1.0


def test_density_is_divided_out_of_diffusion_maps_and_of_their_new_points(tmp_path):
    points, new = points_of(900), points_of(900)[:30] + 0.01
    few = {**SETTINGS, "n_landmarks": 300}
    model = sm.DiffusionMaps(**few, alpha=1.0, store=tmp_path / "run").fit(points)
    exact = sm.DiffusionMaps(**{**few, "solver": "exact"}, alpha=1.0).fit(points)
    assert sm.measures.procrustes_error(model.embedding_, exact.embedding_) < 0.2
    degrees = np.asarray(model.run_.affinities.tocsr().sum(axis=1)).ravel()
    np.testing.assert_allclose(model.transform(new), placed_by_hand(model, points, new, degrees), atol=1e-7)


@pytest.mark.parametrize("asked", [{"landmarks": "gp"}, {"landmarks": "kmeans", "settings": {"landmarks.snap": False}}])
def test_landmarks_off_the_data_are_refused(asked):
    with pytest.raises(ConfigError, match="takes landmarks that are points"):
        sm.LaplacianEigenmaps(**SETTINGS, **asked).fit(points_of(600))
