"""Rows of the points by number, read by tasks: those that the driver would read itself."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.params import Parameters
from scalemani.engine.graph import unit_name
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run
from scalemani.stages.shared import sampled_rows

GRAPH = {
    "neighbors": {"n_neighbors": 8, "method": "partition"},
    "partition": {"cell_points": 200, "sample_points": 1500},
}
VALUES = {**GRAPH, "landmarks": {"n_landmarks": 60, "sample_points": 2000}, "embedding": {"solver": "lll"}}
N_POINTS = 20_000  # in 20 blocks


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(3).normal(size=(N_POINTS, 3)).astype(np.float32)


def digests(points, folder, scheduler, few_blocks, method):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampled_rows, "FEW_BLOCKS", few_blocks)
        params = Parameters().with_values(VALUES).with_values({"landmarks": {"method": method}})
        finished = run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(scheduler, workers=2), 1024)
    return {stage: finished.group(stage).content_digest for stage in finished.keys}


@pytest.mark.parametrize("method", ["random", "spread", "kmeans", "minmax"])
def test_a_run_has_the_bits_of_one_whose_driver_reads_them(points, tmp_path, method):
    by_driver = digests(points, tmp_path / "driver", None, 100, method)
    assert digests(points, tmp_path / "tasks", None, 0, method) == by_driver


def test_processes_read_them_too(points, tmp_path):
    by_driver = digests(points, tmp_path / "driver", None, 100, "random")
    assert digests(points, tmp_path / "processes", "processes", 16, "random") == by_driver


@pytest.mark.parametrize("few_blocks", [0, 16, 100])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_come_in_any_order_and_more_than_once(points, tmp_path, monkeypatch, few_blocks, sparse):
    source = sp.random(N_POINTS, 400, 0.02, format="csr", dtype=np.float32, random_state=1) if sparse else points
    monkeypatch.setattr(sampled_rows, "FEW_BLOCKS", few_blocks)
    rows = np.random.default_rng(0).integers(0, N_POINTS, 700)
    found, original = [], sampled_rows.gathered_rows

    def reading(work, chosen):
        found.append(original(work, rows))
        return original(work, chosen)

    monkeypatch.setattr("scalemani.stages.partition.gathered_rows", reading)
    run(open_points(source), tmp_path / "run", "knn-graph", Parameters().with_values(GRAPH), Executor(workers=2), 1024)
    assert sp.issparse(found[0]) == sparse
    expected = source[rows]
    assert np.array_equal(found[0].toarray(), expected.toarray()) if sparse else np.array_equal(found[0], expected)


def test_messages_name_the_blocks_and_not_the_rows_of_a_task():
    assert unit_name(sampled_rows.RowsOfBlocks(3, 9, np.arange(1000))) == "3 to 9"
