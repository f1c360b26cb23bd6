"""Arguments of estimators, and what is said of names that are none."""

import inspect
import pickle
from typing import get_args

import numpy as np
import pytest
from sklearn.base import clone

import scalemani as sm
from scalemani.config.metrics import METRIC_NAMES, WORDS, MappedMetric
from scalemani.config.params.by_stage import PointsParams
from scalemani.config.stages import PRECOMPUTED
from scalemani.interfaces.estimators.parameters import ENTRY
from scalemani.kernels.landmarks.selection import LANDMARK_METHODS
from scalemani.kernels.repulsion.pair_sums import KERNELS

ROWS = np.random.default_rng(0).random((150, 3))
ESTIMATORS = [one for name in sm.__all__ if inspect.isclass(one := getattr(sm, name)) and hasattr(one, "get_params")]


def test_settings_are_kept_as_given_and_travel_with_the_estimator():
    settings = {"layout.exaggerated_iterations": 5}
    numbers = {"early_exaggeration": 4.0, "exaggeration": 1, "learning_rate": "auto"}
    model = sm.TSNE(perplexity=5, max_iter=12, settings=settings, **numbers)
    assert model.get_params()["settings"] is settings
    assert model.learning_rate == "auto"
    expected = sm.TSNE(perplexity=5, max_iter=12, early_exaggeration=4.0, settings=settings).fit(ROWS)
    for same in (model, clone(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.fit(ROWS).embedding_, expected.embedding_)
    assert settings == {"layout.exaggerated_iterations": 5}


@pytest.mark.parametrize(
    ("documented", "argument", "names"),
    [
        (sm.LaplacianEigenmaps, "metric", METRIC_NAMES),
        *((one, "metric", METRIC_NAMES) for one in (sm.knn_graph, sm.KNeighborsTransformer)),
        (sm.select_landmarks, "metric", get_args(MappedMetric)),
        (sm.LaplacianEigenmaps, "landmarks", LANDMARK_METHODS),
        (sm.select_landmarks, "method", LANDMARK_METHODS),
        (sm.repulsion, "kernel", KERNELS),
    ],
)
def test_a_choice_is_documented_wherever_users_look_for_it(documented, argument, names):
    entries = {entry[1]: entry[0] for entry in ENTRY.finditer(inspect.cleandoc(documented.__doc__))}
    wanted = [name for name in names if documented is sm.LaplacianEigenmaps or name != PRECOMPUTED]
    assert [name for name in wanted if f'"{name}"' not in entries[argument]] == []


@pytest.mark.parametrize(
    "documented", [sm.TSNE, sm.knn_graph, sm.KNeighborsTransformer, sm.select_landmarks, PointsParams]
)
def test_metrics_of_the_table_stand_in_docstrings(documented):
    assert [word for word in WORDS if word in documented.__doc__] == []


def test_the_parameters_of_points_name_every_metric():
    assert [name for name in METRIC_NAMES if name not in PointsParams.__doc__] == []


def test_divergences_have_the_name_they_have_in_scikit_learn():
    """Of P in the place of affinities, and Q of all pairs."""
    weights = np.random.default_rng(1).random((40, 40))
    weights += weights.T
    np.fill_diagonal(weights, 0)
    few = {"affinity": "precomputed", "init": "random", "max_iter": 5}
    model = sm.TSNE(**few, settings={"layout.converged": 0}).fit(weights)
    kernel = 1 / (1 + np.square(model.embedding_[:, None] - model.embedding_).sum(axis=2))
    np.fill_diagonal(kernel, 0)
    p, q = weights / weights.sum(), kernel / kernel.sum()
    apart = ~np.eye(40, dtype=bool)
    assert model.kl_divergence_ == pytest.approx((p[apart] * np.log(p[apart] / q[apart])).sum(), rel=1e-6)
    assert model.kl_divergence_ == model.objective_
    assert sm.SymmetricSNE(**few).fit(weights).kl_divergence_ > 0
    for other in (
        sm.TSNE(**few),
        sm.TSNE(**few, strength=2).fit(weights),
        sm.TSNE(**few, settings={"layout.strength": 2.0}).fit(weights),
        sm.ElasticEmbedding(**few).fit(weights),
    ):
        assert not hasattr(other, "kl_divergence_")


@pytest.mark.parametrize(
    ("estimator", "given", "words"),
    [
        ("TSNE", {"perplexty": 3}, r"^perplexty is no argument of TSNE: did you mean 'perplexity'"),
        ("TSNE", {"recall": 0.9}, r"^recall is no argument of TSNE: settings=\{'neighbors.recall': ...\}$"),
        ("TSNE", {"jitter": 1}, r"settings=\{'affinities.jitter': ...\} or settings=\{'layout.jitter': ...\}$"),
        ("LandmarkPCA", {"min_dist": 5}, r"no argument of LandmarkPCA: .*allowed: .*n_landmarks"),
        ("KNeighborsTransformer", {"n_probes": 5}, r"settings=\{'neighbors.n_probes': ...\}$"),
        ("LandmarkFeatures", {"metod": "gp"}, "did you mean 'method'"),
    ],
)  # fmt: skip
def test_a_name_that_is_no_argument_is_answered_with_the_setting(estimator, given, words):
    with pytest.raises(TypeError, match=words):
        getattr(sm, estimator)(**given)


def test_a_name_that_cannot_be_set_is_answered_with_the_setting():
    for name, words in (
        ("recall", r"^Invalid parameter 'recall' for estimator KNeighborsTransformer: settings=\{'neighbors.recall'"),
        ("neighbors__recall", r"settings=\{'neighbors.recall': ...\}$"),
        ("n_neighbours", "did you mean 'n_neighbors'"),
    ):
        with pytest.raises(ValueError, match=words):
            sm.KNeighborsTransformer().set_params(**{name: 0.99})
    assert sm.KNeighborsTransformer().set_params(settings__neighbors__recall=0.99).settings == {
        "neighbors.recall": 0.99
    }


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_second_value_without_a_name_is_refused_by_the_estimator_that_was_called(estimator):
    first = next(iter(inspect.signature(estimator).parameters))
    with pytest.raises(TypeError, match=f"^{estimator.__name__} takes {first} without a name: give the others by name"):
        estimator(2, 30)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_help_describes_every_argument_once_in_the_order_of_the_signature(estimator):
    lines = inspect.getdoc(estimator).split("\n")
    section = lines[lines.index("Parameters") : lines.index("Attributes")]
    described = [name for line in section if " : " in line and not line.startswith(" ")
                 for name in line.partition(" : ")[0].split(", ")]  # fmt: skip
    assert described == list(inspect.signature(estimator).parameters)
