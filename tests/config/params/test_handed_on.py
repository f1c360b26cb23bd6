"""What is handed on beside parameters acts: seeds, weights, labels, starts, landmarks, and a model for new points."""

import numpy as np
import pytest

import scalemani as sm
from tests.config.params.effects import MOVED, labels_of, moved_by, points_of_each_kind

POINTS = points_of_each_kind()["plain"]
NEW = POINTS[::9] * np.float32(1.2)
LABELS = labels_of(POINTS)
FEW = {"n_neighbors": 12, "n_landmarks": 40}
TO_THE_END = {"layout.converged": 0.0}
DESCENT = FEW | {"max_iter": 4, "settings": TO_THE_END}
WEIGHTS = 1.0 + np.arange(len(POINTS)) % 4
START = np.random.default_rng(2).normal(size=(len(POINTS), 2))
OTHER_START = np.random.default_rng(3).normal(size=(len(POINTS), 2))
pytestmark = pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")


@pytest.mark.parametrize("estimator", [sm.LaplacianEigenmaps, sm.DiffusionMaps, sm.ElasticEmbedding, sm.TSNE])
def test_weights_of_points_are_those_of_the_result(estimator):
    model = estimator(**(DESCENT if estimator in (sm.ElasticEmbedding, sm.TSNE) else FEW))
    assert moved_by(model.fit(POINTS).embedding_, model.fit(POINTS, sample_weight=WEIGHTS).embedding_) > MOVED


@pytest.mark.parametrize("estimator", [sm.LandmarkLDA, sm.LandmarkKernelLDA])
def test_classes_are_learnt_from(estimator):
    given = {"n_landmarks": 40} if estimator is sm.LandmarkLDA else FEW
    model = estimator(1, **given)
    assert moved_by(model.fit(POINTS, LABELS).embedding_, model.fit(POINTS, LABELS[::-1] // 2).embedding_) > MOVED


def test_classes_weigh_affinities():
    model = sm.LaplacianEigenmaps(settings={"symmetric_affinities.target_weight": 0.5}, **FEW)
    other = np.arange(len(POINTS)) % 4
    assert moved_by(model.fit(POINTS, LABELS).embedding_, model.fit(POINTS, other).embedding_) > MOVED


def test_a_start_is_where_a_descent_begins():
    def ended(start):
        return sm.ElasticEmbedding(init=start, **DESCENT).fit(POINTS).embedding_

    assert moved_by(ended(START), ended(OTHER_START)) > MOVED


@pytest.mark.parametrize("estimator", [sm.LandmarkPCA, sm.LandmarkLLE, sm.LandmarkKernelPCA])
def test_landmarks_that_are_given_are_those_of_the_result(estimator):
    given = {} if estimator is sm.LandmarkPCA else {"n_neighbors": 12}

    def found(rows):
        return estimator(landmarks=POINTS[rows], **given).fit(POINTS).embedding_

    assert moved_by(found(np.arange(0, 180, 6)), found(np.arange(1, 180, 6))) > MOVED


def test_the_seed_of_the_descent_draws_its_random_start():
    def ended(seed):
        return sm.ElasticEmbedding(init="random", random_state=seed, **DESCENT).fit(POINTS).embedding_

    assert moved_by(ended(0), ended(1)) > MOVED


def test_the_seed_of_clustering_draws_its_starts(tmp_path):
    """Of the same landmarks and eigenvectors to rounding: nothing else draws."""

    def labels(seed):
        model = sm.SpectralClustering(
            9,
            settings={"clustering.n_restarts": 1},
            solver="exact",
            landmarks=POINTS[::2],
            n_neighbors=12,
            random_state=seed,
        )
        return model.fit(POINTS).labels_

    found = [labels(seed) for seed in range(3)]
    assert min(sm.measures.adjusted_rand_index(found[0], other) for other in found[1:]) < 1.0


def test_the_seed_of_affinities_draws_the_trees_of_an_ensemble(tmp_path):
    image = points_of_each_kind()["image"]

    def weights(seed):
        model = sm.SpectralClustering(
            3,
            settings={"neighbors.method": "window", "neighbors.window": 3},
            affinity="ensemble",
            n_landmarks=40,
            random_state=seed,
            store=tmp_path / "run",
        )
        return model.fit(image).run_.affinities.tocsr().toarray()

    assert moved_by(weights(0), weights(1)) > MOVED


# Every point stays where it is given, so that the maps are the same and new points alone can tell parameters apart.
FROZEN_SETTINGS = TO_THE_END | {"layout.freeze": True}
TREE = FROZEN_SETTINGS | {"layout.repulsion": "barnes-hut"}
FROZEN = DESCENT | {"init": START, "settings": FROZEN_SETTINGS}


@pytest.mark.parametrize(
    ("changed", "beside"),
    [
        ({"strength": 0.05}, {}),
        ({"perplexity": 3.0}, {"perplexity": 4.0}),
        ({"settings": FROZEN_SETTINGS | {"affinities.n_neighbors": 5}}, {}),
        ({"n_neighbors": 9}, {"perplexity": 2.0}),
        ({"affinity": "gaussian"}, {}),
        ({"settings": FROZEN_SETTINGS | {"affinities.sigma": 2.0}}, {"affinity": "gaussian"}),
        ({"settings": TREE | {"layout.tolerance": 0.4}}, {"settings": TREE}),
        ({"metric": "cosine"}, {}),
    ],
)  # fmt: skip
def test_new_points_are_placed_by_the_parameters_of_the_descent(changed, beside):
    one, other = (sm.TSNE(**FROZEN | beside | given).fit(POINTS) for given in ({}, changed))
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    assert moved_by(one.transform(NEW), other.transform(NEW)) > MOVED


@pytest.mark.parametrize("changed", [{"landmark_weights.regularization": 0.1}, {"landmark_weights.n_neighbors": 3}])
@pytest.mark.parametrize("estimator", [sm.LaplacianEigenmaps, sm.SpectralClustering, sm.DiffusionMaps])
def test_new_points_are_placed_by_the_landmarks_weights_of_the_model(estimator, changed):
    """Of the default solver, whose embedding does not depend on these."""
    one, other = (estimator(3, **FEW, settings=given).fit(POINTS) for given in ({}, changed))
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    assert moved_by(one.transform(NEW), other.transform(NEW)) > MOVED
