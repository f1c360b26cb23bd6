"""The exact search is judged by what it has stored, and not by its name."""

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.neighbors import counts, exact

K = 6


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(2500, 8)).astype(np.float32)


@pytest.fixture
def blind(monkeypatch):
    """Search block by block, blind to every point of one block out of three."""
    search = exact.nearest_among

    def nearest_among(queries, labels, rows, start, known, limits):
        return known if start == 1024 else search(queries, labels, rows, start, known, limits)

    monkeypatch.setattr(exact, "nearest_among", nearest_among)
    monkeypatch.setattr(counts, "MOST_PAIRED", 0)


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
    assert any("the exact search lists" in told for told in listening.warned)


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
    with pytest.warns(sm.errors.ShortfallWarning, match="the exact search lists"):
        assert sm.knn_graph(points, K, method="exact").recall < 0.2


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_blocks_and_pairs_of_tiles_have_the_same_neighbours(points, tmp_path, listening, monkeypatch, dtype):
    points = (20 * points + 100).clip(0, 255).astype(dtype)
    by_pairs = graph_of(points, tmp_path / "pairs", listening).group("neighbors")
    monkeypatch.setattr(counts, "MOST_PAIRED", 0)
    monkeypatch.setattr(exact, "search_pairs", None)
    by_blocks = graph_of(points, tmp_path / "blocks", listening)
    assert by_blocks.group("neighbors").content_digest == by_pairs.content_digest
    assert by_blocks.certificates["neighbors"]["recall"] == 1.0


def test_a_search_in_one_go_goes_through_all_pairs_where_blocks_are_missing(points, tmp_path, listening, monkeypatch):
    searches, search, folder = [], exact.search_pairs, tmp_path / "run"

    def counted(work):
        searches.append(work)
        return search(work)

    monkeypatch.setattr(exact, "search_pairs", counted)
    digest = graph_of(points, folder, listening).group("neighbors").content_digest
    for lost, count in (("round_0-block-000001", 2), ("last_round", 2)):
        open_run(folder).group("neighbors").forget([lost])
        assert graph_of(points, folder, listening).group("neighbors").content_digest == digest
        assert len(searches) == count


def stored(finished, names=("indices", "distances")):
    return [finished.group("graph").read(name).tobytes() for name in names]


def search_in(folder, points, **options):
    values = {"neighbors": {"n_neighbors": K, "method": "exact"}, "affinities": {"perplexity": 2}}
    executor = Executor(**options)
    return run(open_points(points), folder, "knn-graph", Parameters().with_values(values), executor, 1024)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_stripes_give_the_lists_of_all_points_at_once(tmp_path, dtype):
    rng = np.random.default_rng(3)
    points = (rng.normal(size=(9500, 5)) * 30 + 100).astype(dtype)
    points[4000:4010] = points[0]  # ties, in the same stripe and in others
    points[9000] = points[0]
    together = search_in(tmp_path / "together", points, scheduler="threads")
    by_stripes = search_in(tmp_path / "stripes", points, scheduler="processes", workers=2, keep=True)
    assert {unit.partition("-")[0] for unit in by_stripes.group("neighbors").units} >= {"stripes_0", "crossed_0"}
    assert stored(together) == stored(by_stripes)
    resumed = search_in(tmp_path / "stripes", points, scheduler="threads")
    assert stored(together) == stored(resumed)


def test_a_search_by_stripes_resumes_where_it_stopped(tmp_path, monkeypatch):
    points = np.random.default_rng(4).normal(size=(6000, 5)).astype(np.float32)
    expected = stored(search_in(tmp_path / "one", points))
    done, search = [], exact.crossed_part

    def interrupted(number, task, part):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(part)
        return search(number, task, part)

    monkeypatch.setattr(exact, "paired_bytes", lambda task: 0)
    with monkeypatch.context() as stopped:
        stopped.setattr(exact, "crossed_part", interrupted)
        with pytest.raises(KeyboardInterrupt):
            search_in(tmp_path / "run", points, workers=1)
    before = set(done)
    monkeypatch.setattr(
        exact, "crossed_part", lambda number, task, part: done.append(part) or search(number, task, part)
    )
    assert stored(search_in(tmp_path / "run", points, workers=1)) == expected
    assert len(before) == 5
    assert len(done) == len(set(done)) == 15
