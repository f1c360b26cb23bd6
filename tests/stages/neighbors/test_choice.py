"""What `auto` is: the same as the search that it names, told in the plan, and cells where these find the neighbours."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.config.params.by_stage import NeighborsParams
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.kernels.neighbors.difficulty import Difficulty
from scalemani.runs.opened import open_run
from scalemani.runs.outline import outline_run
from scalemani.runs.survey import survey
from scalemani.stages.neighbors.choice import SearchChoice
from scalemani.stages.neighbors.counts import cells_seconds, exact_seconds

N_POINTS, K = NeighborsParams.exact_below + 1000, 5


def outline_of(points, block_rows=None, executor=None, **asked):
    found = survey(open_points(points), executor or Executor(workers=2), block_rows)
    return outline_run("knn-graph", Parameters().with_values({"neighbors": {"n_neighbors": K, **asked}}), found)


@pytest.fixture(scope="module")
def hard():
    """Points without leading axes."""
    return np.random.default_rng(0).normal(size=(N_POINTS, 80)).astype(np.float32)


def test_hard_points_are_searched_by_what_is_cheaper(hard):
    many = np.random.default_rng(1).normal(size=(4 * N_POINTS, 40)).astype(np.float32)
    exact, leaves = outline_of(hard, recall=0.999), outline_of(np.tile(many, 6), recall=0.6)
    for outline, resolved in ((exact, "exact"), (leaves, "leaves")):
        choice = outline.search
        assert choice.resolved == outline.params.neighbors.method == resolved
        assert (choice.seconds["exact"] <= choice.seconds["leaves"]) == (resolved == "exact")
        assert outline.requested.neighbors.method == "auto"
        assert f"neighbors.method=auto is {resolved}" in choice.text


def test_the_key_of_what_is_chosen_is_that_of_the_same_request(hard):
    chosen = outline_of(hard)
    assert outline_of(hard, method=chosen.search.resolved).keys == chosen.keys


def test_cells_search_easy_points_dense_or_sparse():
    easy = np.random.default_rng(0).random((N_POINTS, 5)).astype(np.float32)
    sparse = sp.csr_matrix((easy.ravel(), np.tile(np.arange(0, 50, 10), N_POINTS), np.arange(0, easy.size + 1, 5)))
    for points in (easy, sparse):
        choice = outline_of(points).search
        assert choice.resolved == "partition"
        assert choice.difficulty.dimension == pytest.approx(5, rel=0.25)
        assert "may miss" not in choice.text


def test_sparse_points_that_cells_lose_are_compared_with_all():
    """Rows whose few columns are drawn at random have no axes; the truth of some is by products of whole rows."""
    points = sp.random(N_POINTS, 1000, 0.02, "csr", np.float32, np.random.default_rng(0))
    assert outline_of(points).search.resolved == "exact"
    graph, queries = sm.knn_graph(points, K, workers=2), np.arange(0, N_POINTS, 500)
    lengths = np.asarray(points.multiply(points).sum(axis=1)).ravel()
    squares = lengths - 2 * (points[queries] @ points.T).toarray() + lengths[queries, np.newaxis]
    squares[np.arange(len(queries)), queries] = np.inf
    nearest = np.sort(np.partition(squares, K - 1, axis=1)[:, :K], axis=1)
    assert graph.recall == 1.0
    np.testing.assert_allclose(graph.distances[queries] ** 2, nearest, rtol=1e-4)


def test_where_exact_search_takes_too_long_the_plan_says_what_it_takes():
    points = sp.random(20 * N_POINTS, 1000, 0.004, "csr", np.float32, np.random.default_rng(0))
    search = outline_of(points, recall=0.8).search
    assert search.resolved == "partition"
    assert re.search(
        r"exact [0-9.]+; cells may miss the requested recall of 0.8, neighbors.method=exact does not", search.text
    )


@pytest.mark.parametrize("nonzeros", [None, 2_000_000])
def test_predicted_seconds_grow_with_points_columns_neighbours_and_recall(nonzeros):
    def predicted(n_points=50_000, n_features=200, k=15, recall=0.9, dimension=10.0):
        filled = None if nonzeros is None else nonzeros * n_points * n_features // 10**7
        dimensions = Dimensions(n_points, n_features, "float32", 1024, filled)
        sizes = Sizes(
            dimensions,
            Parameters().with_values({"neighbors": {"n_neighbors": k, "recall": recall}}).resolved("knn-graph"),
        )
        return cells_seconds(sizes, Difficulty(1.0, dimension)), exact_seconds(sizes)

    cells, exact = predicted()
    assert 0 < cells < exact
    for more in ({"n_points": 60_000}, {"n_features": 300}):
        assert np.all(np.greater(predicted(**more), (cells, exact)))
    for more in ({"k": 30}, {"recall": 0.99}, {"dimension": 20.0}):
        assert predicted(**more)[0] > cells


def test_few_points_and_requests_for_cells_choose_nothing(hard):
    cases = [
        (hard[: NeighborsParams.exact_below], {}),
        (hard, {"method": "partition"}),
        (hard, {"n_probes": 4}),
    ]
    assert [outline_of(points, **asked).search for points, asked in cases] == [None] * 3


def test_the_sample_depends_neither_on_blocks_nor_on_where_points_are_read(hard, tmp_path):
    np.save(tmp_path / "hard.npy", hard)
    choices = [outline_of(hard, rows).search for rows in (1024, 8192)]
    with Executor("processes", workers=2).started() as executor:
        choices.append(outline_of(tmp_path / "hard.npy", 4096, executor).search)
    assert isinstance(choices[0], SearchChoice)
    for choice in choices:
        assert choice.resolved == choices[0].resolved
        assert choice.difficulty == pytest.approx(choices[0].difficulty, rel=1e-6)


def test_a_run_tells_what_was_chosen_and_points_are_appended_to_its_graph(hard, tmp_path, capsys):
    few = {"n_neighbors": K, "store": tmp_path / "run", "workers": 2, "verbose": True}
    graph = sm.knn_graph(hard[:-500], **few)
    assert re.search(r"neighbors.method=auto is (leaves|exact)", capsys.readouterr().err.replace("\n", " "))
    assert graph.recall > 0.95
    before = open_run(tmp_path / "run")
    assert before.plan["search"]["resolved"] == before.params.neighbors.method
    sm.append(tmp_path / "run", hard[-500:])
    after = open_run(tmp_path / "run")
    assert after.params.neighbors.method == "auto"
    assert after.n_input_points == N_POINTS
