"""Rows of the points by number, read by tasks: those that the driver would read itself."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.config.params import Parameters
from scalemani.engine.context import StageContext
from scalemani.engine.graph import unit_name
from scalemani.engine.task import StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run
from scalemani.stages.shared import sampled_rows

N_POINTS = 20_000  # in 20 blocks, more than are read by the driver


@pytest.fixture(scope="module", params=[False, True], ids=["dense", "sparse"])
def stored(request, tmp_path_factory):
    """Points, and the run that has stored them."""
    draws = np.random.default_rng(3)
    points = draws.normal(size=(N_POINTS, 3)).astype(np.float32)
    if request.param:
        points = sp.random(N_POINTS, 400, 0.02, format="csr", dtype=np.float32, random_state=1)
    folder = tmp_path_factory.mktemp("runs") / "run"
    ended = run(open_points(points), folder, "knn-graph", Parameters(), Executor(workers=2), 1024, only="points")
    return points, ended


@pytest.mark.parametrize("scheduler", [None, "processes"])
@pytest.mark.parametrize("n_blocks", [sampled_rows.FEW_BLOCKS, N_POINTS // 1024 + 1])
def test_rows_come_in_any_order_and_more_than_once(stored, scheduler, n_blocks):
    points, ended = stored
    rows = np.random.default_rng(0).integers(0, min(N_POINTS, 1024 * n_blocks), 700)
    assert len(np.unique(rows // 1024)) == n_blocks
    inputs = {"points": ended.group("points")}
    task = StageTask("partition", ended.dimensions, ended.params, inputs, ended.group("points"), 0)
    executor = Executor(scheduler, workers=2)
    with executor.started():
        read = sampled_rows.gathered_rows(StageContext(task, executor, 2), rows)
    assert sp.issparse(read) == sp.issparse(points)
    expected = points[rows]
    assert np.array_equal(read.toarray(), expected.toarray()) if sp.issparse(read) else np.array_equal(read, expected)


def test_messages_name_the_blocks_and_not_the_rows_of_a_task():
    assert unit_name(sampled_rows.RowsOfBlocks(3, 9, np.arange(1000))) == "3 to 9"
