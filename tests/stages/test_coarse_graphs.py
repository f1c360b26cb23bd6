"""Coarse graphs that are kept where few points were appended, and made anew where these are many or apart."""

import itertools
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.spectral import refinement
from scalemani.kernels.spectral.refinement import step
from scalemani.runs.appending import append_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.arrays.embeddings import StoredCoarseGraphs, StoredEmbedding
from scalemani.stages.arrays.points import StoredWorkPoints

BOUNDS = (4000, 4060, 4150)


def executor():
    return Executor(workers=2, progress=Progress())


def embed(points, folder):
    values = {
        "neighbors": {"n_neighbors": 10, "method": "partition", "n_probes": 4, "recall": 0.9},
        "partition": {"cell_points": 100},
        "affinities": {"perplexity": 4},
    }
    return run(open_points(points), folder, "laplacian-eigenmaps", Parameters().with_values(values), executor(), 1024)


@pytest.fixture(scope="module")
def points(roll):
    return np.ascontiguousarray(roll[: BOUNDS[-1]], np.float32)


@pytest.fixture(scope="module")
def before(points, tmp_path_factory):
    return embed(points[: BOUNDS[0]], tmp_path_factory.mktemp("before") / "run")


@pytest.fixture(scope="module")
def goes(before, points, tmp_path_factory):
    folder = tmp_path_factory.mktemp("goes") / "run"
    shutil.copytree(before.store.root, folder)
    cuts = itertools.pairwise(BOUNDS)
    return [append_points(open_run(folder), points[start:stop], executor()).run for start, stop in cuts]


def aggregates(finished):
    """Return the aggregate of each point, in input order."""
    order = StoredWorkPoints(finished.group("work_points")).input_rows.read()
    labels = np.empty(len(order), np.int64)
    labels[order] = StoredCoarseGraphs(finished.group("coarse_graphs")).labels.read()
    return labels


@pytest.mark.parametrize("go", [0, 1])
def test_appended_points_join_the_aggregates_that_are_there(goes, before, go):
    labels = aggregates(goes[go])
    np.testing.assert_array_equal(labels[: BOUNDS[0]], aggregates(before))
    if go:
        np.testing.assert_array_equal(labels[: BOUNDS[1]], aggregates(goes[0]))
    assert goes[go].certificates["coarse_graphs"] == {**before.certificates["coarse_graphs"], "made_of": BOUNDS[0]}
    levels = StoredCoarseGraphs(goes[go].group("coarse_graphs")).read_levels()
    affinities = goes[go].affinities.tocsr()
    expected = np.bincount(labels, weights=np.asarray(affinities.sum(axis=1)).ravel())
    np.testing.assert_allclose(levels[0].degrees, expected, rtol=1e-5)


@pytest.mark.parametrize("go", [0, 1])
def test_refinement_with_kept_graphs_reaches_the_residual_within_the_bounds_that_it_states(goes, go):
    certificates = goes[go].certificates["embedding"]
    assert certificates["residual"] < goes[go].params.residual
    assert certificates["angle_bound"] is not None
    affinities = goes[go].affinities.tocsr().astype(np.float64)
    roots = sp.diags(1 / np.sqrt(np.asarray(affinities.sum(axis=1)).ravel()))
    exact = np.sort(1 - eigsh(roots @ affinities @ roots, 3, which="LA")[0])[1:]
    np.testing.assert_allclose(goes[go].eigenvalues, exact, atol=certificates["eigenvalue_error_bound"] + 1e-6)


def test_vectors_that_follow_are_refined_from_those_of_the_earlier_run_by_products_in_place_of_steps(
    before, points, tmp_path, monkeypatch
):
    steps = []

    def counted(state, *rest):
        steps.append(len(state.values))
        return step(state, *rest)

    monkeypatch.setattr(refinement, "step", counted)
    embed(points[: BOUNDS[1]], tmp_path / "anew")
    n_steps = len(steps)
    folder = tmp_path / "run"
    shutil.copytree(before.store.root, folder)
    grown = append_points(open_run(folder), points[BOUNDS[0] : BOUNDS[1]], executor()).run
    assert len(steps) - n_steps < n_steps / 2
    guards = StoredEmbedding(grown.group("embedding")).guards.read()
    affinities = grown.affinities.tocsr().astype(np.float64)
    roots = sp.diags(1 / np.sqrt(np.asarray(affinities.sum(axis=1)).ravel()))
    exact = eigsh(roots @ affinities @ roots, 5, which="LA")[1][:, ::-1]
    order = StoredWorkPoints(grown.group("work_points")).input_rows.read()
    assert subspace_angle(guards[np.argsort(order)][:, :1], exact[:, 3:4]) < 0.1


@pytest.mark.parametrize("what", ["many", "apart"])
def test_graphs_are_made_anew_of_many_appended_points_and_of_a_group_of_their_own(before, points, tmp_path, what):
    folder = tmp_path / "run"
    shutil.copytree(before.store.root, folder)
    draws = np.random.default_rng(0)
    near = points[:1100] if what == "many" else np.repeat(points[:1], 60, axis=0) + np.array([60, 0, 0])
    new = (near + draws.normal(size=near.shape)).astype(np.float32)
    grown = append_points(open_run(folder), new, executor()).run
    assert "made_of" not in grown.certificates["coarse_graphs"]
    assert grown.certificates["embedding"]["residual"] < grown.params.residual


class Stopped(Exception):
    """Raised in the middle of a refinement."""


class Stopping(Progress):
    """Raises at the second pass of the refinement."""

    def __init__(self):
        self.running, self.passes = "", 0

    def start(self, stage, total, *rest):
        self.running = stage

    def advance(self, done=1):
        self.passes += self.running == "embedding"
        if self.passes > 1:
            raise Stopped


def test_a_refinement_with_kept_graphs_that_was_stopped_ends_with_the_same_bits(goes, before, points, tmp_path):
    folder, new = tmp_path / "run", points[BOUNDS[0] : BOUNDS[1]]
    shutil.copytree(before.store.root, folder)
    with pytest.raises(Stopped):
        append_points(open_run(folder), new, Executor(workers=1, progress=Stopping()))
    np.testing.assert_array_equal(open_run(folder).embedding[...], before.embedding[...])
    grown = append_points(open_run(folder), new, Executor(workers=1, progress=Progress())).run
    assert grown.keys == goes[0].keys
    np.testing.assert_array_equal(grown.embedding[...], goes[0].embedding[...])
