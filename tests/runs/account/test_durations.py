"""What is expected of stages before they run: by the last run in the folder, else in proportion to the points."""

import numpy as np

from scalemani.params import Parameters
from scalemani.routes import ROUTES
from scalemani.runs.account.durations import USUAL_SECONDS, earlier_seconds, expected_seconds, usual_seconds
from scalemani.runs.walk import plan_run, run
from scalemani.sources import open_points
from scalemani.store.run_store import RunStore
from scalemani.workers.executor import Executor


def test_usual_seconds_are_those_of_stages_and_follow_the_points():
    assert set(USUAL_SECONDS) <= {stage.name for route in ROUTES.values() for stage in route}
    assert usual_seconds("layout", 2_000_000) > 1.9 * usual_seconds("layout", 1_000_000)
    assert usual_seconds("classes", 1000) > 0


def test_what_is_complete_is_not_expected_and_what_ran_before_takes_as_long_again(tmp_path):
    points = np.random.default_rng(0).normal(size=(300, 4))
    done = run(open_points(points), tmp_path / "run", "knn-graph", Parameters(), Executor())
    same = plan_run(open_points(points), tmp_path / "run", "knn-graph", Parameters(), Executor())
    assert expected_seconds(same) == {}
    other = plan_run(open_points(points[:150]), tmp_path / "run", "knn-graph", Parameters(), Executor())
    seconds = {name: record["seconds"] / 2 for name, record in done.records().items()}
    assert expected_seconds(other) == seconds


def test_points_that_are_many_rows_take_as_long_as_before_and_nothing_is_expected_of_a_run_that_has_not_begun(tmp_path):
    points = np.repeat(np.random.default_rng(0).normal(size=(200, 4)), 3, axis=0)
    params = Parameters().with_values({"duplicates": {"tolerance": 0.0}, "embedding": {"solver": "refine"}})
    asked = tmp_path / "run", "laplacian-eigenmaps"
    started = run(open_points(points), *asked, params, Executor(), only="duplicates")
    started.group("duplicates").objects.delete("complete.json")
    again = plan_run(open_points(points), *asked, params, Executor())
    assert earlier_seconds(RunStore(tmp_path / "run"), len(points)) == {}
    assert "duplicates" in expected_seconds(again)
    done = run(open_points(points), *asked, params, Executor(), only="duplicates")
    (record,) = done.records().values()
    assert earlier_seconds(RunStore(tmp_path / "run"), len(points)) == {"duplicates": record["seconds"]}
    half = plan_run(open_points(points[:300]), *asked, params, Executor())
    assert expected_seconds(half)["duplicates"] == record["seconds"] / 2
