"""Parameters by the names of other libraries: taken where they mean the same, explained where they do not."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import scalemani as sm
from scalemani.estimators.parameters import DIFFERENT, OTHER_NAMES

ROWS = np.random.default_rng(0).random((150, 3))


def test_names_of_the_same_meaning_are_taken_for_ours():
    given = {"n_jobs": 2, "early_exaggeration": 4.0, "early_exaggeration_iter": 5, "initialization": "random"}
    model = sm.TSNE(perplexity=5, max_iter=12, learning_rate="auto", callbacks_every_iters=3, **given)
    own = {"workers": 2, "exaggeration": 4.0, "exaggerated_iterations": 5, "init": "random", "callbacks_every": 3}
    found = model.get_params()
    assert {name: found[name] for name in own} == own
    assert not set(OTHER_NAMES) & set(found)
    assert found["learning_rate"] == "auto"
    expected = sm.TSNE(perplexity=5, max_iter=12, exaggeration=4.0, exaggerated_iterations=5, init="random").fit(ROWS)
    for same in (model, clone(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.fit(ROWS).embedding_, expected.embedding_)


def test_divergences_have_the_name_they_have_in_scikit_learn():
    """Of P in the place of affinities, and Q of all pairs."""
    weights = np.random.default_rng(1).random((40, 40))
    weights += weights.T
    np.fill_diagonal(weights, 0)
    few = {"affinity": "precomputed", "init": "random", "max_iter": 5, "converged": 0}
    model = sm.TSNE(**few).fit(weights)
    kernel = 1 / (1 + np.square(model.embedding_[:, None] - model.embedding_).sum(axis=2))
    np.fill_diagonal(kernel, 0)
    p, q = weights / weights.sum(), kernel / kernel.sum()
    apart = ~np.eye(40, dtype=bool)
    assert model.kl_divergence_ == pytest.approx((p[apart] * np.log(p[apart] / q[apart])).sum(), rel=1e-6)
    assert model.kl_divergence_ == model.objective_
    assert sm.SymmetricSNE(**few).fit(weights).kl_divergence_ > 0
    for other in (sm.TSNE(**few), sm.TSNE(**few, strength=2).fit(weights), sm.ElasticEmbedding(**few).fit(weights)):
        assert not hasattr(other, "kl_divergence_")


@pytest.mark.parametrize(("n_jobs", "workers"), [(None, None), (-1, None), (3, 3), (-10_000, 1)])
def test_jobs_are_counted_as_joblib_does(n_jobs, workers):
    assert sm.KNeighborsTransformer(n_jobs=n_jobs).workers == workers


def test_automatic_exaggeration_is_the_default():
    assert sm.TSNE(early_exaggeration="auto").exaggeration is None


@pytest.mark.parametrize(
    ("estimator", "given", "words"),
    [
        ("TSNE", {"perplexty": 3}, r"^TSNE\(\) got .* argument 'perplexty': did you mean 'perplexity'"),
        ("TSNE", {"n_iter": 500}, r"'n_iter': max_iter counts all iterations"),
        ("LandmarkPCA", {"n_iter": 5}, r"^LandmarkPCA\(\) .*'n_iter': .*allowed: "),
        ("LandmarkPCA", {"early_exaggeration": 5}, r"'early_exaggeration': .*allowed: "),
        ("TSNE", {"workers": 2, "n_jobs": 2}, "got workers under two names, 'workers' and 'n_jobs': give one of them"),
        ("SpectralClustering", {"assign_labels": "kmeans"}, "labels are those of k-means"),
        ("LandmarkFeatures", {"metod": "gp"}, "did you mean 'method'"),
    ],
)  # fmt: skip
def test_names_of_another_meaning_are_explained(estimator, given, words):
    with pytest.raises(TypeError, match=words):
        getattr(sm, estimator)(**given)


def test_signatures_and_explanations_name_parameters_that_there_are():
    names = {name for one in (sm.TSNE, sm.KNeighborsTransformer, sm.SpectralClustering)
             for name in inspect.signature(one).parameters}  # fmt: skip
    assert {"perplexity", "workers", "n_restarts"} <= names
    assert {ours for ours, _ in OTHER_NAMES.values()} <= names
    assert {ours for ours, _ in DIFFERENT.values()} <= names
    assert not (set(OTHER_NAMES) | set(DIFFERENT)) & names
