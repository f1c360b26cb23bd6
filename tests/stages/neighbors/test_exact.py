"""The exact search is judged by what it has stored, and not by its name."""

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.runs.walk import run
from scalemani.stages.neighbors import exact

K = 6


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(2500, 8)).astype(np.float32)


@pytest.fixture
def blind(monkeypatch):
    """Make the exact search blind to every point of one block out of three."""
    search = exact.nearest_of_block

    def nearest_of_block(task, queries, rows, known, limits, block):
        return known if block == 1 else search(task, queries, rows, known, limits, block)

    monkeypatch.setattr(exact, "nearest_of_block", nearest_of_block)


def share_of_true_neighbours(points, indices):
    away = ((points[:, np.newaxis].astype(np.float64) - points) ** 2).sum(axis=2)
    np.fill_diagonal(away, np.inf)
    truth = np.argsort(away, axis=1)[:, :K]
    return np.mean([len(np.intersect1d(one, other)) for one, other in zip(truth, indices, strict=True)]) / K


def graph_of(points, folder, listening):
    values = {"neighbors": {"n_neighbors": K, "method": "exact"}, "affinities": {"perplexity": 2}}
    executor = Executor(progress=listening)
    return run(open_points(points), folder, "knn-graph", Parameters().with_values(values), executor, 1024)


def test_an_exact_search_that_misses_neighbours_says_so(points, tmp_path, listening, blind):
    finished = graph_of(points, tmp_path / "run", listening)
    certificates = finished.certificates["neighbors"]
    share = share_of_true_neighbours(points, finished.group("graph").read("indices"))
    assert certificates["recall"] == pytest.approx(share, abs=0.02)  # of 1,000 points
    assert certificates["recall"] < 0.8
    assert finished.certificates["graph"]["recall"] == certificates["recall"]
    assert any("the exact search has found" in told for told in listening.warned)


def test_an_exact_search_that_finds_all_is_measured_too(points, tmp_path, listening):
    certificates = graph_of(points, tmp_path / "run", listening).certificates["neighbors"]
    assert certificates["recall"] == 1.0
    assert certificates["sampled_queries"] == 1000
    assert not listening.warned


def test_neighbours_with_wrong_row_numbers_are_not_found_whatever_their_distances(points, monkeypatch):
    def shifted(found, fresh):
        return arrays(Neighbors((found.indices + 7) % len(points), found.distances), fresh)

    arrays = exact.round_arrays
    monkeypatch.setattr(exact, "round_arrays", shifted)
    with pytest.warns(sm.errors.ShortfallWarning, match="the exact search has found"):
        assert sm.knn_graph(points, K, method="exact").recall < 0.2


def test_wide_points_have_the_neighbours_that_others_have(points, tmp_path, listening, monkeypatch):
    usual = graph_of(points, tmp_path / "usual", listening).group("graph")
    monkeypatch.setattr(exact, "WIDE_ROW_BYTES", 0)
    wide = graph_of(points, tmp_path / "wide", listening)
    np.testing.assert_array_equal(wide.group("graph").read("indices"), usual.read("indices"))
    np.testing.assert_array_equal(wide.group("graph").read("distances"), usual.read("distances"))
    assert wide.certificates["neighbors"]["recall"] == 1.0
