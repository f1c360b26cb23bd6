"""What `plan` expects of stages: the seconds of the last run in the folder, in proportion to the points."""

import numpy as np

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.interfaces.cli.printing import earlier_seconds
from scalemani.io.sources import open_points
from scalemani.runs.walk import run
from scalemani.store.run_store import RunStore


def test_stages_take_as_long_again_for_as_many_points_and_half_as_long_for_half(tmp_path):
    points = np.random.default_rng(0).normal(size=(300, 4))
    done = run(open_points(points), tmp_path / "run", "knn-graph", Parameters(), Executor())
    for n_rows, share in ((300, 1), (150, 0.5)):
        seconds = {name: record["seconds"] * share for name, record in done.records().items()}
        assert earlier_seconds(RunStore(tmp_path / "run"), n_rows) == seconds


def test_points_that_are_many_rows_take_as_long_as_before_and_nothing_is_known_of_a_run_that_has_not_begun(tmp_path):
    points = np.repeat(np.random.default_rng(0).normal(size=(200, 4)), 3, axis=0)
    params = Parameters().with_values({"duplicates": {"tolerance": 0.0}, "embedding": {"solver": "refine"}})
    asked = tmp_path / "run", "laplacian-eigenmaps"
    started = run(open_points(points), *asked, params, Executor(), only="duplicates")
    started.group("duplicates").objects.delete("complete.json")
    assert earlier_seconds(RunStore(tmp_path / "run"), len(points)) == {}
    done = run(open_points(points), *asked, params, Executor(), only="duplicates")
    (record,) = done.records().values()
    assert earlier_seconds(RunStore(tmp_path / "run"), len(points)) == {"duplicates": record["seconds"]}
    assert earlier_seconds(RunStore(tmp_path / "run"), 300) == {"duplicates": record["seconds"] / 2}
