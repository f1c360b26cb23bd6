"""The table of objectives: what one row of it brings about."""

import subprocess
import sys

import pytest

import scalemani as sm
from scalemani.config.objectives import OBJECTIVES, objective_of
from scalemani.config.params import LayoutParams, Parameters
from scalemani.config.routes import ROUTES
from scalemani.errors import ConfigError

SEVENTH = """
from dataclasses import replace
from importlib import reload
import scalemani as sm
from scalemani.config import objectives

objectives.OBJECTIVES["seventh"] = replace(
    objectives.OBJECTIVES["t-sne"], estimator="Seventh", attraction="quadratic"
)

import pickle
import sys

import numpy as np
from scalemani.interfaces.cli import main
from scalemani.interfaces.estimators import embeddings


@embeddings.describe
class Seventh(embeddings.NonlinearEmbedding):
    _method = "seventh"


Seventh.__module__, embeddings.Seventh = embeddings.__name__, Seventh
reload(sm)  # the names of estimators were read before the row was there
assert '"seventh"' in sm.objective.__doc__
value, _ = sm.objective([[0.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]], "seventh")
assert value == 1.0, value  # both affinities are 1 / 2, and the sum of the kernel is 1
model = sm.Seventh(perplexity=5, max_iter=3)
assert pickle.loads(pickle.dumps(type(model))) is sm.Seventh
points = np.random.default_rng(0).normal(size=(60, 4))
assert model.fit(points).embedding_.shape == (60, 2)
np.save(sys.argv[1] + "/points.npy", points)
small = ["--set=affinities.perplexity=5", "--set=layout.max_iterations=3"]
sys.argv = ["scalemani", "embed", sys.argv[1] + "/points.npy", sys.argv[1] + "/run", "--method", "seventh", *small]
main()
"""


def test_a_row_and_a_class_are_all_that_an_objective_takes(tmp_path):
    """A process with one row and one class more embeds with it: by name, as an estimator, on the command line."""
    ended = subprocess.run([sys.executable, "-c", SEVENTH, str(tmp_path)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "run").exists()


@pytest.mark.parametrize("method", OBJECTIVES)
def test_every_face_knows_every_objective(method, scalemani):
    assert "layout" in [stage.name for stage in ROUTES[method]]
    assert LayoutParams(objective=method).objective == method
    assert f'"{method}" | {OBJECTIVES[method].formula[0]} |' in sm.objective.__doc__
    estimator = getattr(sm, OBJECTIVES[method].estimator)
    attraction, repulsion = OBJECTIVES[method].formula
    assert f": {attraction} + strength {repulsion}.\n" in estimator.__doc__
    assert (estimator._method, estimator.__name__) == (method, OBJECTIVES[method].estimator)
    status, output, _ = scalemani("embed", "--help")
    assert status == 0
    assert method in output


def test_an_unknown_objective_is_told_of_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 't-sne'"):
        objective_of("tsne")
    with pytest.raises(ConfigError, match=r"layout\.objective must be 'elastic-embedding', 's-sne'"):
        Parameters().with_values({"layout": {"objective": "tsne"}})


@pytest.mark.parametrize("method", OBJECTIVES)
def test_sums_that_are_not_normalised_have_a_strength_of_their_own(method):
    """Without a logarithm E- is of the order of N^2, with one of the order of 1."""
    row = OBJECTIVES[method]
    assert (row.strength < 1e-2) == (row.combine == "sum")
    assert (row.total == "given") == (row.combine == "sum")
