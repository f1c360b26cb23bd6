"""Points that are appended to a finished run: the graph, the embedding that goes on, and what a stop leaves."""

import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.context import EXTREMES
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, StoreError
from scalemani.io.sources import open_points
from scalemani.kernels.landmarks.selection import selected_landmarks
from scalemani.kernels.measures import subspace_angle
from scalemani.runs.appending import AppendedPoints, append_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.stages.arrays.points import StoredPartition
from scalemani.stages.landmarks import choice_of
from scalemani.stages.neighbors import cells, continued
from scalemani.stages.shared.sampled_rows import SampledRows
from tests.killed import killed_after
from tests.spies import watch

BEFORE, N_POINTS, K = 2000, 2300, 10
VALUES = {
    "neighbors": {"n_neighbors": K, "method": "partition", "n_probes": 4, "recall": 0.9},
    "partition": {"cell_points": 50},
    "affinities": {"perplexity": 3},
    "layout": {"max_iterations": 250},
}


@pytest.fixture(scope="module")
def points():
    """Six overlapping blobs in six dimensions, another of which the points that are appended bring with them."""
    rng = np.random.default_rng(0)
    of_blob = np.where(np.arange(N_POINTS) < BEFORE, rng.integers(0, 6, N_POINTS), rng.integers(0, 7, N_POINTS))
    return (3 * rng.normal(size=(7, 6))[of_blob] + rng.normal(size=(N_POINTS, 6))).astype(np.float32)


@pytest.fixture(scope="module")
def embed(points):
    def embedded(folder, method, rows=points[:BEFORE]):
        return run(open_points(rows), folder, method, Parameters().with_values(VALUES), Executor(workers=2), 1024)

    return embedded


@pytest.fixture(scope="module")
def earlier(embed, tmp_path_factory):
    """Finished runs by method, in folders that tests copy."""
    folder = tmp_path_factory.mktemp("earlier")
    for method in ("laplacian-eigenmaps", "t-sne"):
        embed(folder / method, method)
    return folder


@pytest.fixture(scope="module")
def grown(earlier, points, tmp_path_factory):
    """Copies of these after the other points were appended, how many distances of sketches and which reads it took."""
    folder, found = tmp_path_factory.mktemp("grown"), {}
    with pytest.MonkeyPatch.context() as patch:
        reads = watch(patch, AppendedPoints, "read", lambda _, *bounds: bounds)
        counts = watch(patch, continued, "nearest_visitors", n_scanned)
        others = watch(patch, cells, "search_enough_cells", n_scanned)
        for method in ("laplacian-eigenmaps", "t-sne"):
            shutil.copytree(earlier / method, folder / method)
            found[method] = append_points(open_run(folder / method), points[BEFORE:], Executor(workers=2))
    return found, sum(counts + others) / len(found), reads


def n_scanned(sketches, offsets, *rest):
    """Return how many distances of sketches a search through cells takes."""
    probes = rest[0] if rest[0].dtype.kind == "i" else rest[1]  # behind the centroids
    return np.diff(offsets)[probes].sum()


@pytest.fixture(scope="module")
def truth(points):
    squared = ((points[:, np.newaxis] - points[np.newaxis]).astype(np.float64) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return np.argsort(squared, axis=1)[:, :K], np.sqrt(squared)


def test_the_graph_has_the_recall_of_a_new_one_in_every_direction(grown, truth, embed, points, tmp_path):
    neighbors, distances = truth
    graph = grown[0]["laplacian-eigenmaps"].run.graph
    indices, found = np.asarray(graph.indices[...]), np.asarray(graph.distances[...])
    np.testing.assert_allclose(found, np.take_along_axis(distances, indices, axis=1), rtol=1e-5)
    hits = (neighbors[:, :, np.newaxis] == indices[:, np.newaxis]).any(axis=2)
    appended = np.arange(N_POINTS) >= BEFORE
    for rows in (appended, ~appended):
        for ends in (neighbors >= BEFORE, neighbors < BEFORE):
            assert hits[rows[:, np.newaxis] & ends].mean() > 0.9
    anew = np.asarray(embed(tmp_path / "run", "knn-graph", points).graph.indices[...])
    assert hits.mean() > (neighbors[:, :, np.newaxis] == anew[:, np.newaxis]).any(axis=2).mean() - 0.005
    certificate = grown[0]["laplacian-eigenmaps"].run.certificates["neighbors"]
    assert abs(certificate["recall"] - hits.mean()) < 4 * certificate["recall_error"] + 1e-3


def test_the_search_through_cells_costs_what_the_appended_points_do(grown):
    share = (N_POINTS - BEFORE) / N_POINTS
    run_of_all = grown[0]["laplacian-eigenmaps"].run
    sizes = np.bincount(StoredPartition(run_of_all.group("partition")).cells.read())
    of_new_run = VALUES["neighbors"]["n_probes"] * float((sizes.astype(np.float64) ** 2).sum())
    assert grown[1] < 2.5 * share * of_new_run


def test_blocks_of_earlier_points_are_taken_over_unread(grown, earlier, points):
    assert min(start for start, _ in grown[2]) == BEFORE // 1024 * 1024
    for method, found in grown[0].items():
        group, before = found.run.group("points"), open_run(earlier / method).group("points")
        np.testing.assert_array_equal(group.read("points"), points)
        assert group.record["certificates"] == {"points": N_POINTS, "constant_features": 0}
        assert before.damaged_units() == group.damaged_units() == []


def test_the_range_of_features_is_that_of_all_points_though_earlier_blocks_are_not_read(grown, points):
    at_ends = np.concatenate([points.argmin(axis=0), points.argmax(axis=0)])
    assert (at_ends < 1024).any()  # of a block that is not read
    extremes = grown[0]["laplacian-eigenmaps"].run.group("points").objects.get_json(EXTREMES)
    assert extremes["n_points"] == N_POINTS
    np.testing.assert_array_equal(extremes["minima"], points.min(axis=0))
    np.testing.assert_array_equal(extremes["maxima"], points.max(axis=0))


def test_landmarks_are_those_of_all_points(grown, points):
    found = grown[0]["laplacian-eigenmaps"].run
    expected = selected_landmarks(points, choice_of(found.params))
    np.testing.assert_array_equal(found.landmarks.rows, expected.rows)
    np.testing.assert_array_equal(found.landmarks.points, points[expected.rows])


def test_of_landmarks_that_stay_no_point_is_read(earlier, points, tmp_path, monkeypatch):
    folder, gathered = tmp_path / "run", []
    shutil.copytree(earlier / "laplacian-eigenmaps", folder)
    read = SampledRows.__getitem__

    def reading(source, rows):
        gathered.append(rows)
        return read(source, rows)

    monkeypatch.setattr(SampledRows, "__getitem__", reading)
    landmarks = append_points(open_run(folder), points[BEFORE:], Executor(workers=1)).run.landmarks
    of_selection = np.concatenate(gathered[:-1])  # the last are those by which spacings are measured
    assert 0 < len(np.unique(of_selection)) < len(landmarks.rows) / 2
    assert not np.isin(of_selection, open_run(earlier / "laplacian-eigenmaps").landmarks.rows).any()


def test_eigenvectors_go_on_to_the_residual_and_are_those_of_the_new_graph(grown):
    found = grown[0]["laplacian-eigenmaps"]
    certificates = found.run.certificates["embedding"]
    assert certificates["residual"] < 1e-4
    affinities = found.run.affinities.tocsr().astype(np.float64)
    degrees = np.asarray(affinities.sum(axis=1)).ravel()
    roots = sp.diags(1 / np.sqrt(degrees))
    exact = roots @ eigsh(roots @ affinities @ roots, 3, which="LA")[1][:, :2]
    roots = np.sqrt(degrees)[:, np.newaxis]
    assert (
        subspace_angle(roots * np.asarray(found.run.embedding[...]), roots * exact) < certificates["angle_bound"] + 1e-3
    )
    assert (found.appended, found.run.dimensions.n_points) == (N_POINTS - BEFORE, N_POINTS)
    assert 0 < found.moved < 1


def test_a_descent_goes_on_from_where_it_was(grown, earlier):
    found, before = grown[0]["t-sne"], np.asarray(open_run(earlier / "t-sne").embedding[...])
    certificates = found.run.certificates["layout"]
    assert certificates["started"] == BEFORE
    assert found.moved == sm.align(before, found.run).relative_residual < 0.5
    assert "embedding" not in found.run.keys
    assert np.isfinite(np.asarray(found.run.embedding[...])).all()


def test_frozen_points_stay_to_the_bit_and_the_others_find_their_place(earlier, points, tmp_path, recwarn):
    folder = tmp_path / "run"
    shutil.copytree(earlier / "t-sne", folder)
    before = np.asarray(open_run(folder).embedding[...])
    first = sm.append(folder, points[BEFORE:2100], freeze=True)
    second = sm.append(folder, points[2100:], freeze=True, workers=1)
    embedding = np.asarray(second.run.embedding[...])
    np.testing.assert_array_equal(embedding[:BEFORE], before)
    np.testing.assert_array_equal(embedding[:2100], first.run.embedding[...])
    assert (first.appended, second.appended, second.moved) == (100, 200, pytest.approx(0, abs=1e-12))
    lists = np.asarray(second.run.graph.indices[BEFORE:N_POINTS])
    near = np.linalg.norm(embedding[lists] - embedding[BEFORE:, np.newaxis], axis=2).mean()
    spread = np.linalg.norm(embedding - embedding.mean(axis=0), axis=1).mean()
    assert near < spread / 2
    assert [str(one.message) for one in recwarn if "no effect" in str(one.message)] == []  # of what nobody has set


def test_rows_that_a_run_ends_with_are_not_appended_again(scalemani, grown, points, tmp_path):
    folder = grown[0]["laplacian-eigenmaps"].run.store.root
    np.save(tmp_path / "new.npy", points[BEFORE:])
    status, _, told = scalemani("append", folder, tmp_path / "new.npy")
    assert status == 0
    assert "nothing to do" in told
    assert open_run(folder).keys == grown[0]["laplacian-eigenmaps"].run.keys


class Interrupted(Exception):
    """Raised in the middle of an append."""


class Interrupting(Progress):
    """Raises when something of a stage was done for a given number of times."""

    def __init__(self, stage, times=1):
        self.stage, self.times, self.running = stage, times, ""

    def start(self, stage, total, *rest):
        self.running = stage

    def advance(self, done=1):
        if self.running == self.stage and done:
            self.times -= 1
            if self.times < 0:
                raise Interrupted


@pytest.mark.parametrize("method", ["laplacian-eigenmaps", "t-sne"])
def test_an_append_that_was_stopped_leaves_the_run_and_goes_on_to_the_same_bits(
    earlier, grown, points, tmp_path, method
):
    folder = tmp_path / "run"
    shutil.copytree(earlier / method, folder)
    before = np.asarray(open_run(folder).embedding[...])
    last = "embedding" if method == "laplacian-eigenmaps" else "layout"
    for stage in ("points", "partition", "neighbors", "symmetric_affinities", last):
        with pytest.raises(Interrupted):
            append_points(open_run(folder), points[BEFORE:], Executor(workers=2, progress=Interrupting(stage)))
        np.testing.assert_array_equal(open_run(folder).embedding[...], before)
    found = append_points(open_run(folder), points[BEFORE:], Executor(workers=2))
    whole = grown[0][method].run
    assert found.run.keys == whole.keys
    np.testing.assert_array_equal(found.run.graph.indices[...], whole.graph.indices[...])
    np.testing.assert_array_equal(found.run.embedding[...], whole.embedding[...])


def test_a_killed_append_leaves_the_run_and_goes_on_to_the_same_bits(earlier, grown, points, tmp_path):
    folder, whole = tmp_path / "run", grown[0]["laplacian-eigenmaps"].run
    shutil.copytree(earlier / "laplacian-eigenmaps", folder)
    np.save(tmp_path / "new.npy", points[BEFORE:])
    arguments = ["append", str(folder), str(tmp_path / "new.npy"), "--workers=2"]
    killed = subprocess.run([*killed_after(1, "neighbors"), *arguments], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    marks = folder / "stages" / "neighbors" / whole.keys["neighbors"] / "marks"
    assert any(marks.iterdir())
    assert open_run(folder).dimensions.n_points == BEFORE
    subprocess.run([sys.executable, "-m", "scalemani", *arguments], check=True, capture_output=True)
    np.testing.assert_array_equal(open_run(folder).embedding[...], whole.embedding[...])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x[:, :5], "have 6 columns, those to append 5"),
        (lambda x: x.astype(np.float64), "are float32, those to append float64"),
        (lambda x: x[:0], "no points to append"),
        (lambda x: np.where(np.arange(len(x))[:, None] == 3, np.float32(np.nan), x), "the first at row 3"),
    ],
)
def test_points_that_do_not_fit_the_run_are_refused_and_change_nothing(earlier, points, change, words):
    folder = earlier / "laplacian-eigenmaps"
    plan = (folder / "plan.json").read_bytes()
    with pytest.raises(DataError, match=words):
        sm.append(folder, change(points[BEFORE:]))
    assert (folder / "plan.json").read_bytes() == plan


def test_rows_that_the_metric_of_a_run_cannot_take_are_not_appended(tmp_path):
    rows = np.random.default_rng(0).normal(size=(300, 6))
    sm.knn_graph(rows[:250], 10, metric="cosine", store=tmp_path / "run")
    plan = (tmp_path / "run" / "plan.json").read_bytes()
    rows[[270, 299]] = 0
    with pytest.raises(DataError, match="hold nothing but zeros, which have no direction: first rows 20, 49"):
        sm.append(tmp_path / "run", rows[250:])
    assert (tmp_path / "run" / "plan.json").read_bytes() == plan
    assert open_run(tmp_path / "run").graph.indices.shape == (250, 10)


def test_runs_that_cannot_grow_are_refused(points, earlier, tmp_path):
    few, spread = {"n_neighbors": 10, "perplexity": 3}, np.random.default_rng(0).uniform(size=(300, 6))
    with pytest.raises(ConfigError, match="freeze keeps points still in a descent"):
        sm.append(earlier / "laplacian-eigenmaps", points[BEFORE:], freeze=True)
    sm.LaplacianEigenmaps(metric="precomputed", store=tmp_path / "lists", **few).fit(sm.knn_graph(spread, 10))
    with pytest.raises(ConfigError, match="started from neighbour lists"):
        sm.append(tmp_path / "lists", points[BEFORE:])
    counts = sp.random_array((200, 300), density=0.05, format="csr", rng=np.random.default_rng(1))
    sm.LaplacianEigenmaps(store=tmp_path / "sparse", **few).fit(counts)
    with pytest.raises(ConfigError, match="a run of sparse points"):
        sm.append(tmp_path / "sparse", points[BEFORE:])
    apart = np.concatenate([spread, spread[:20] + 1000])
    sm.LaplacianEigenmaps(disconnected="largest", store=tmp_path / "apart", **few).fit(apart)
    with pytest.raises(ConfigError, match="left out components"):
        sm.append(tmp_path / "apart", points[BEFORE:])
    with pytest.raises(StoreError, match="no"):
        sm.append(tmp_path / "nothing", points)
