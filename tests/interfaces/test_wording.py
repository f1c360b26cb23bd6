"""Messages of Python name the arguments of what was called; those of the command line and of runs the settings."""

import warnings

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.params import names_of_parameters
from scalemani.errors import ConfigError, DataError, DisconnectedGraphError, MemoryBudgetError, ScalemaniWarning
from scalemani.interfaces.wording import PARAMETERS, in_words_of

POINTS = np.random.default_rng(0).normal(size=(60, 3))
BLOBS = np.vstack([POINTS, POINTS + 100])
WITH_SETTINGS = (*PARAMETERS, "settings")


@pytest.mark.parametrize(
    ("text", "worded"),
    [
        ("raise layout.max_iterations, or", "raise max_iter, or"),
        ("raise affinities.perplexity.", "raise perplexity."),
        ("set components.disconnected=connect to", "set disconnected='connect' to"),
        ("--set affinities.kind=precomputed)", "affinity='precomputed')"),
        ("landmarks.n_landmarks=37: none", "n_landmarks=37: none"),
        ("landmarks.snap=false: off", "settings={'landmarks.snap': False}: off"),
        ("neighbors.recall=0.99; then", "settings={'neighbors.recall': 0.99}; then"),
        ("a larger layout.converged", "a larger settings['layout.converged']"),
        ("settings['layout.converged'] stays", "settings['layout.converged'] stays"),
        ("'layout.init' in quotes", "'layout.init' in quotes"),
        ("folder/layout.init or layout.init.npy", "folder/layout.init or layout.init.npy"),
        ("numpy.random and graph.indices", "numpy.random and graph.indices"),
    ],
)
def test_names_of_settings_are_those_of_arguments(text, worded):
    assert in_words_of(WITH_SETTINGS, (), {}, text) == worded


@pytest.mark.parametrize(
    ("text", "worded"),
    [
        ("leave out --graph (graph=)", "leave out graph="),
        ("with --graph (graph= in Python)", "with graph="),
        ("out --deduplicate (duplicates.tolerance)", "out deduplicate"),
        ("raise --memory to 5GB, give fewer --workers", "raise memory to 5GB, give fewer workers"),
        ("--global-reference and --block-rows", "reference and --block-rows"),
    ],
)
def test_options_are_arguments_where_there_is_one(text, worded):
    assert in_words_of({*WITH_SETTINGS, "memory", "workers"}, (), {}, text) == worded


def test_each_argument_stands_for_a_setting():
    assert set(PARAMETERS.values()) <= set(names_of_parameters())


def test_without_settings_and_of_settings_that_were_passed_names_stay():
    assert in_words_of(("n_neighbors",), (), {}, "raise embedding.max_passes") == "raise embedding.max_passes"
    assert (
        in_words_of(WITH_SETTINGS, ("layout.max_iterations",), {}, "layout.max_iterations") == "layout.max_iterations"
    )


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: sm.TSNE(perplexity=-1).fit(POINTS), ConfigError, "perplexity must be > 1, got -1"),
        (lambda: sm.TSNE(metric="foo").fit(POINTS), ConfigError, "metric must be one of"),
        (lambda: sm.TSNE(early_exaggeration=0).fit(POINTS), ConfigError, "early_exaggeration must be"),
        (lambda: sm.LandmarkPCA(landmarks="foo").fit(POINTS), ConfigError, "landmarks must be 'random'"),
        (lambda: sm.LaplacianEigenmaps(n_components=60).fit(POINTS), ConfigError, "n_components must be below N=60"),
        (
            lambda: sm.LaplacianEigenmaps(disconnected="error", n_neighbors=5, perplexity=2).fit(BLOBS),
            DisconnectedGraphError,
            "raise n_neighbors or perplexity, or set disconnected='connect'",
        ),
        (lambda: sm.TSNE(memory="100MB").fit(POINTS), MemoryBudgetError, "raise memory to"),
        (lambda: sm.knn_graph(POINTS, recall=2), ConfigError, "recall must be"),
        (lambda: sm.knn_graph(POINTS, 60), DataError, "or a smaller n_neighbors"),
        (lambda: sm.KNeighborsTransformer(0).fit(POINTS), ConfigError, "n_neighbors must be >= 1"),
        (lambda: sm.entropic_affinities([[1.0, 2.0, 3.0]], 2, solver="foo"), ConfigError, "solver must be"),
        (lambda: sm.entropic_affinities([[1.0, 2.0, 3.0]], 5), ConfigError, "perplexity must be"),
        (lambda: sm.gaussian_affinities([[1.0, 2.0]], sigma=-1.0), ConfigError, "sigma must be"),
        (lambda: sm.landmark_weights(POINTS, POINTS[:9], radius=-1.0), ConfigError, "radius must be"),
        (lambda: sm.landmark_features(POINTS, POINTS[:9], eta=-1.0), ConfigError, "eta must be"),
        (lambda: sm.LandmarkFeatures(eta=-1.0).fit(POINTS), ConfigError, "eta must be"),
        (lambda: sm.mixed_affinities([POINTS, POINTS], n_neighbors=0), ConfigError, "n_neighbors must be"),
        (lambda: sm.minimize(np.ones((3, 3)), "t-sne", direction="foo"), ConfigError, "direction must be"),
        (lambda: sm.tune(sm.TSNE(), {"perplexity": [-1]}, POINTS), ConfigError, "perplexity must be > 1"),
    ],
)
def test_errors_name_the_arguments_of_what_was_called(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)
    assert not any(f"{name} " in str(caught.value) for name in PARAMETERS.values() if "." in name)


def test_warnings_name_arguments_and_a_stored_run_names_settings(tmp_path):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", ScalemaniWarning)
        sm.TSNE(max_iter=2, perplexity=5, store=tmp_path / "run").fit(POINTS)
    texts = [str(one.message) for one in given]
    assert any("raise max_iter, or accept a larger settings['layout.converged']" in text for text in texts), texts
    assert all(one.filename == __file__ for one in given)
    stored = [
        text for record in sm.open_run(tmp_path / "run").records().values() for text in record.get("warnings", ())
    ]
    assert any("layout.max_iterations" in str(text) for text in stored), stored


def test_names_return_to_settings_after_a_call():
    with pytest.raises(ConfigError):
        sm.TSNE(perplexity=-1).fit(POINTS)
    with pytest.warns(ScalemaniWarning, match=r"^layout\.max_iterations$"):
        sm_warn("layout.max_iterations")


def sm_warn(message):
    """Warn as code outside of any call of the interface does."""
    from scalemani.errors import warn

    warn(message)
