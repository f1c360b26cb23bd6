"""What `auto` is: the same as the search that it names, told in the plan, and cells where these find the neighbours."""

import re

import numpy as np
import pytest

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.config.params.by_stage import NeighborsParams
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.outline import outline_run
from scalemani.runs.survey import survey
from scalemani.stages.neighbors.choice import SearchChoice

N_POINTS, K = NeighborsParams.exact_below + 1000, 5


def outline_of(points, block_rows=None, executor=None, **asked):
    found = survey(open_points(points), executor or Executor(workers=2), block_rows)
    return outline_run("knn-graph", Parameters().with_values({"neighbors": {"n_neighbors": K, **asked}}), found)


@pytest.fixture(scope="module")
def hard():
    """Points without leading axes."""
    return np.random.default_rng(0).normal(size=(N_POINTS, 80)).astype(np.float32)


def test_hard_points_are_searched_by_what_is_cheaper(hard):
    exact, leaves = outline_of(hard, recall=0.999), outline_of(np.tile(hard[:, :40], 12), recall=0.6)
    for outline, resolved in ((exact, "exact"), (leaves, "leaves")):
        choice = outline.search
        assert choice.resolved == outline.params.neighbors.method == resolved
        assert (choice.exact_seconds <= choice.leaves_seconds) == (resolved == "exact")
        assert outline.asked.neighbors.method == "auto"
        assert f"neighbors.method=auto is {resolved}" in choice.text


def test_the_key_of_what_is_chosen_is_that_of_the_same_request(hard):
    chosen = outline_of(hard)
    assert outline_of(hard, method=chosen.search.resolved).keys == chosen.keys


def test_easy_and_few_points_and_requests_for_cells_choose_nothing(hard):
    easy = np.random.default_rng(0).random((N_POINTS, 5))
    cases = [
        (easy, {}),
        (hard[: NeighborsParams.exact_below], {}),
        (hard, {"method": "partition"}),
        (hard, {"n_probes": 4}),
    ]
    assert [outline_of(points, **asked).search for points, asked in cases] == [None] * 4


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
