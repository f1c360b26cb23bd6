"""Affinities of the nearest of a graph's neighbours: one graph serves several numbers of them."""

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.runs.walk import plan_run, run
from scalemani.stages.arrays.embeddings import StoredPlacement

NARROW, WIDE = 12, 30
SETTINGS = {"landmarks": {"n_landmarks": 60}, "embedding": {"solver": "lll"}}


@pytest.fixture(scope="module")
def points():
    return open_points(np.random.default_rng(3).normal(size=(1500, 6)))


def asked(wide, narrow=None, perplexity=4.0):
    affinities = {"perplexity": perplexity, "n_neighbors": narrow}
    return Parameters().with_values({**SETTINGS, "neighbors": {"n_neighbors": wide}, "affinities": affinities})


def test_they_are_those_of_a_graph_of_so_many_neighbors(points, tmp_path):
    """The search of so few points is exact, so that a wider graph begins with the narrower one."""
    cut = run(points, tmp_path / "cut", "laplacian-eigenmaps", asked(WIDE, NARROW), Executor())
    own = run(points, tmp_path / "own", "laplacian-eigenmaps", asked(NARROW), Executor())
    assert cut.graph.indices.shape == (1500, WIDE)
    assert (cut.affinities.tocsr() != own.affinities.tocsr()).nnz == 0
    np.testing.assert_array_equal(cut.embedding[...], own.embedding[...])


def test_new_points_have_affinities_to_as_many(points, tmp_path):
    new = np.random.default_rng(4).normal(size=(5, 6))
    placed = []
    for name, settings in (("cut", asked(WIDE, NARROW)), ("own", asked(NARROW))):
        few = settings.with_values({"layout": {"max_iterations": 5}})
        finished = run(points, tmp_path / name, "elastic-embedding", few, Executor())
        from scalemani.runs.new_points import read_placement

        placed.append(read_placement(finished, in_memory=True).place(new)[StoredPlacement.coordinates])
    np.testing.assert_array_equal(*placed)


def test_all_of_them_are_the_same_result_as_none_asked_for(points, tmp_path):
    plans = [plan_run(points, tmp_path / "run", "laplacian-eigenmaps", one, Executor()) for one in
             (asked(WIDE), asked(WIDE, WIDE))]  # fmt: skip
    assert plans[0].outline.keys == plans[1].outline.keys


def test_the_graph_is_shared_and_what_follows_is_not(points, tmp_path):
    wide, cut = (plan_run(points, tmp_path / "run", "laplacian-eigenmaps", one, Executor()).outline.keys for one in
                 (asked(WIDE), asked(WIDE, NARROW)))  # fmt: skip
    shared = {name for name in wide if wide[name] == cut[name]}
    assert shared == {"points", "partition", "work_points", "neighbors", "landmarks", "landmark_weights"}


def test_a_perplexity_left_open_follows_the_neighbors_that_have_an_affinity():
    decided = asked(WIDE, NARROW, perplexity=None).resolved("laplacian-eigenmaps", 1500)
    assert decided.affinities.perplexity == NARROW / 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [(asked(WIDE, WIDE + 1), "must be at most neighbors.n_neighbors=30"), (asked(WIDE, 4), "perplexity must be < ")],
)
def test_numbers_that_do_not_fit_are_refused(points, tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        plan_run(points, tmp_path / "run", "laplacian-eigenmaps", settings, Executor())
