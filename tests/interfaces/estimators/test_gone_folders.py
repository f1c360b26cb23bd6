"""Models whose run is gone say so, and entries of settings are parameters that grids can set."""

import pickle
import shutil

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

import scalemani as sm
from scalemani.errors import ConfigError, StoreError

POINTS = np.random.default_rng(0).normal(size=(80, 3))


def test_a_model_without_the_folder_of_its_run_says_what_is_gone_and_what_to_do(tmp_path):
    model = sm.TSNE(perplexity=5, store=tmp_path / "run").fit(POINTS)
    expected, stored = model.transform(POINTS[:3]), pickle.dumps(model)
    np.testing.assert_array_equal(pickle.loads(stored).transform(POINTS[:3]), expected)
    shutil.rmtree(tmp_path / "run")
    for use, kind in ((lambda gone: gone.transform(POINTS[:3]), StoreError), (lambda gone: gone.run_, AttributeError)):
        with pytest.raises(kind, match=r"no folder .*run\. Copy it there with the model, or fit without store"):
            use(pickle.loads(stored))


def test_notebooks_show_models_without_a_graph_and_models_whose_run_is_gone(tmp_path):
    model = sm.LandmarkPCA(n_landmarks=20, store=tmp_path / "run").fit(POINTS)
    assert not hasattr(model, "graph_")
    assert "LandmarkPCA" in model._repr_html_()
    shutil.rmtree(tmp_path / "run")
    assert not hasattr(model, "run_")
    assert "LandmarkPCA" in model._repr_html_()


def test_entries_of_settings_are_set_one_by_one():
    model = sm.TSNE(settings={"layout.tolerance": 0.01})
    same = model.set_params(settings__neighbors__recall=0.99, perplexity=5)
    assert same is model
    assert model.settings == {"layout.tolerance": 0.01, "neighbors.recall": 0.99}
    assert model.perplexity == 5
    steps = Pipeline([("map", sm.LandmarkPCA())]).set_params(map__settings__landmarks__method="kmeans")
    assert steps.named_steps["map"].settings == {"landmarks.method": "kmeans"}
    with pytest.raises(ConfigError, match="recal"):
        sm.TSNE().set_params(settings__neighbors__recal=0.99).fit(POINTS)
