"""A value that is not finite ends the run in the stage that computed it."""

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import StoreError
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.store import groups

VALUES = {
    "neighbors": {"n_neighbors": 8},
    "affinities": {"perplexity": 3},
    "landmarks": {"n_landmarks": 50},
    "embedding": {"solver": "lll+refine"},
    "layout": {"max_iterations": 5},
}
WITHOUT_FLOATS = {"landmarks", "components"}  # rows of the points; bridges, of which a connected graph has none


def test_a_value_that_is_not_finite_ends_its_own_stage(tmp_path, monkeypatch):
    points, check = np.random.default_rng(0).random((400, 3)), groups.refuse_non_finite
    params, spoiled_stage = Parameters().with_values(VALUES), ""
    checked = {}  # stages that store floats, in the order in which they run

    def spoil(values, where):
        stage = where.split("/")[1]
        if values.dtype.kind == "f" and values.size:
            checked[stage] = True
            if stage == spoiled_stage:
                values = values.copy()
                values.flat[-1] = np.nan
        check(values, where)

    def computed(folder):
        return run(open_points(points), tmp_path / folder, "t-sne", params, Executor(workers=1))

    monkeypatch.setattr(groups, "refuse_non_finite", spoil)
    reference = computed("reference")
    assert set(reference.keys) - set(checked) <= WITHOUT_FLOATS
    for spoiled_stage in list(checked):
        with pytest.raises(StoreError, match=rf"stages/{spoiled_stage}/.*1 values are not finite; nothing was stored"):
            computed("run")
        assert not open_run(tmp_path / "run").group(spoiled_stage).complete
    spoiled_stage = ""
    finished = computed("run")
    for stage in reference.keys:
        assert finished.group(stage).content_digest == reference.group(stage).content_digest, stage
