"""Before the first round of a search: the true neighbours of a sample, and how many cells these ask for."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.config.params import Parameters
from scalemani.config.params.by_stage import NeighborsParams
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

N_POINTS, K = 3000, 12


@pytest.fixture(scope="module")
def points():
    draws = np.random.default_rng(7)
    return (draws.normal(size=(N_POINTS, 12)) @ draws.normal(size=(12, 30))).astype(np.float32)


def searched(points, folder, **asked):
    values = {
        "neighbors": {"n_neighbors": K, "method": "partition", "sampled_queries": N_POINTS, "max_rounds": 0, **asked},
        "affinities": {"perplexity": 4},
        "partition": {"cell_points": 50, "sketch_dimensions": 8, "sample_points": 2000},
    }
    params = Parameters().with_values(values)
    return run(open_points(points), folder, "knn-graph", params, Executor(workers=2), 1024)


@pytest.mark.parametrize("asked", [0.7, 0.9, 0.97])
def test_points_visit_as_many_cells_as_hold_the_neighbours_that_a_round_does_not_find(points, tmp_path, asked):
    found = searched(points, tmp_path / "run", recall=asked)
    work_points, partition = found.group("work_points"), found.group("partition")
    order, sketches, offsets = (work_points.read(name) for name in ("input_rows", "sketch", "cell_offsets"))
    away = cdist(points[order].astype(float), points[order].astype(float))
    np.fill_diagonal(away, np.inf)
    true = np.argsort(away, axis=1)[:, :K]
    cells = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    ranks = np.argsort(np.argsort(cdist(sketches, partition.read("centroids")), axis=1), axis=1)
    needed = np.take_along_axis(ranks, cells[true], axis=1) + 1
    shares = np.array([np.mean(needed <= count) for count in range(1, 33)])
    expected = max(np.argmax(shares >= 1 - 1.8 * (1 - asked)) + 1, 4)
    assert (expected == 4) == (asked < 0.9)
    assert expected < 32
    assert found.certificates["neighbors"]["probes"] == expected
    assert found.group("neighbors").read("n_probes") == expected
    limits, truth = (found.group("neighbors").read(name) for name in ("query_limits", "true_distances"))
    np.testing.assert_allclose(truth, np.sort(away, axis=1)[:, :K], rtol=1e-5)
    assert (limits >= truth[:, -1]).all()


def test_a_number_of_cells_that_is_given_is_visited(points, tmp_path):
    assert searched(points, tmp_path / "run", n_probes=5).certificates["neighbors"]["probes"] == 5


def test_no_more_cells_are_visited_than_the_most(points, tmp_path):
    ended = searched(points, tmp_path / "run", recall=1.0)
    assert ended.certificates["partition"]["cells"] > NeighborsParams.most_probes
    assert ended.certificates["neighbors"]["probes"] == NeighborsParams.most_probes
