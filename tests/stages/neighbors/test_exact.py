"""The exact search is judged by what it has stored, and not by its name."""

import shutil

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.task import StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.neighbors import exact

K = 6


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(2500, 8)).astype(np.float32)


def share_of_true_neighbours(points, indices):
    away = ((points[:, np.newaxis].astype(np.float64) - points) ** 2).sum(axis=2)
    np.fill_diagonal(away, np.inf)
    truth = np.argsort(away, axis=1)[:, :K]
    return np.mean([len(np.intersect1d(one, other)) for one, other in zip(truth, indices, strict=True)]) / K


def graph_of(points, folder, listening):
    values = {"neighbors": {"n_neighbors": K, "method": "exact"}, "affinities": {"perplexity": 2}}
    executor = Executor(progress=listening)
    return run(open_points(points), folder, "knn-graph", Parameters().with_values(values), executor, 1024)


def test_an_exact_search_that_misses_neighbours_says_so(points, tmp_path, listening, monkeypatch):
    """Every third point has wrong row numbers, with the distances of its true neighbours."""

    def shifted(found, fresh):
        indices = found.indices.copy()
        indices[::3] = (indices[::3] + 7) % len(points)
        return arrays(Neighbors(indices, found.distances), fresh)

    arrays = exact.round_arrays
    monkeypatch.setattr(exact, "round_arrays", shifted)
    finished = graph_of(points, tmp_path / "run", listening)
    certificates = finished.certificates["neighbors"]
    share = share_of_true_neighbours(points, finished.group("graph").read("indices"))
    assert certificates["recall"] == pytest.approx(share, abs=0.03)  # of 1,000 points
    assert certificates["recall"] < 0.7
    assert finished.certificates["graph"]["recall"] == certificates["recall"]
    assert any("the exact search lists" in told for told in listening.warned)


def test_an_exact_search_that_finds_all_is_measured_too(points, tmp_path, listening):
    certificates = graph_of(points, tmp_path / "run", listening).certificates["neighbors"]
    assert certificates["recall"] == 1.0
    assert certificates["sampled_queries"] == 1000
    assert not listening.warned


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_blocks_and_pairs_of_tiles_have_the_same_neighbours(points, tmp_path, listening, dtype):
    points = (20 * points + 100).clip(0, 255).astype(dtype)
    ended = graph_of(points, tmp_path / "pairs", listening)
    inputs = {stage: ended.group(stage) for stage in ended.keys if stage != "neighbors"}
    task = StageTask("neighbors", ended.dimensions, ended.params, inputs, ended.group("neighbors"), 0)
    blocks = [list(exact.exact_block(task, block).values()) for block in range(ended.dimensions.n_blocks)]
    for name, parts in zip(("indices", "distances"), zip(*blocks, strict=True), strict=False):
        np.testing.assert_array_equal(np.concatenate(parts), task.output.read(f"round_0/{name}"))


def test_a_search_in_one_go_goes_through_all_pairs_where_blocks_are_missing(points, tmp_path, listening, spy):
    searches, folder = spy(exact, "search_pairs"), tmp_path / "run"
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
    expected = search_in(tmp_path / "one", points).group("neighbors").content_digest
    done, search = [], exact.crossed_part

    def crossed(number, task, part):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(part)
        return search(number, task, part)

    with monkeypatch.context() as stopped:
        stopped.setattr(exact, "paired_bytes", lambda task: 0)
        stopped.setattr(exact, "crossed_part", crossed)
        with pytest.raises(KeyboardInterrupt):
            search_in(tmp_path / "run", points, workers=1)
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        before, done[:] = list(done), []
        stopped.setattr(exact, "crossed_part", lambda *given: done.append(given[-1]) or search(*given))
        resumed = search_in(tmp_path / "run", points, workers=1)
    assert sorted(before + done) == list(range(15))
    assert resumed.group("neighbors").content_digest == expected
    in_one_go = search_in(tmp_path / "copy", points)  # by all points at once: nothing of stripes is left
    assert in_one_go.group("neighbors").content_digest == expected
