"""What is expected of a run names every stage to do, and more where kernels are to be compiled."""

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.plan import compile_seconds, expected_seconds
from scalemani.runs.walk import plan_run, run
from scalemani.stages.neighbors.counts import (
    SECONDS_OF_BYTE_PRODUCT,
    SECONDS_OF_LISTED,
    SECONDS_OF_LISTED_TERM,
    SECONDS_OF_PAIR_OF_TILES,
)

PARAMS = Parameters().with_values({"layout.max_iterations": 5, "affinities.perplexity": 10})


def test_seconds_grow_with_the_points_and_with_what_is_to_be_compiled(tmp_path):
    points = np.random.default_rng(0).normal(size=(3000, 5))
    plans = [
        plan_run(open_points(points[:n]), tmp_path / "run", "t-sne", PARAMS, Executor(workers=2)) for n in (300, 3000)
    ]
    few, many = (expected_seconds(plan, plan.stages, compiling=False) for plan in plans)
    assert list(few) == [planned.stage.name for planned in plans[0].stages]
    assert all(many[stage] > few[stage] > 0 for stage in few)
    cold = expected_seconds(plans[1], plans[1].stages, compiling=True)
    pair, listed = (
        SECONDS_OF_PAIR_OF_TILES + 5 * SECONDS_OF_BYTE_PRODUCT,
        SECONDS_OF_LISTED + 5 * SECONDS_OF_LISTED_TERM,
    )
    searched = (3000**2 - 300**2) / 2 * pair + 2700 * 30 * listed
    assert many["neighbors"] - few["neighbors"] == pytest.approx(searched / 2)  # on two threads
    assert sum(cold.values()) - sum(many.values()) == pytest.approx(compile_seconds(plans[1].stages))


def test_a_run_expects_what_it_has_to_do_and_nothing_once_that_is_done(tmp_path):
    points = open_points(np.random.default_rng(0).normal(size=(300, 5)))
    told = []

    class Told(Progress):
        def end(self, stage, compiling=0.0):
            super().end(stage, compiling)
            told.append((stage, self.remaining()))

    run(points, tmp_path / "run", "t-sne", PARAMS, Executor(progress=Told()), only="points")
    assert told == [("points", 0.0)]
    run(points, tmp_path / "run", "t-sne", PARAMS, Executor(progress=Told()))
    stages = [stage for stage, _ in told[1:]]
    assert "points" not in stages
    assert all(rest > 0 for _, rest in told[1:-1])
    assert told[-1] == ("layout", 0.0)
