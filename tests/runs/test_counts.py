"""What later stages are planned by, once W and its coarse graphs are there."""

import pytest

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import CorruptChunkError
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.plan import counted
from scalemani.runs.walk import plan_run, run
from scalemani.stages.arrays.affinities import StoredSymmetricAffinities
from scalemani.stages.arrays.embeddings import StoredCoarseGraphs

METHOD = "laplacian-eigenmaps"
PARAMS = Parameters().with_values({"neighbors": {"n_neighbors": 12}, "affinities": {"perplexity": 4}})


@pytest.fixture
def finished(tmp_path, roll):
    return run(open_points(roll), tmp_path / "run", METHOD, PARAMS, Executor(), 1024)


def groups_of(opened):
    return {stage: opened.group(stage) for stage in opened.keys}


def test_a_plan_goes_by_the_nonzeros_that_are_stored(finished, roll, tmp_path):
    groups = groups_of(finished)
    levels = StoredCoarseGraphs(groups[StoredCoarseGraphs.STAGE]).read_levels()
    graphs = [(len(level.degrees), len(level.rows[1])) for level in levels]
    planned = plan_run(open_points(roll), tmp_path / "run", METHOD, PARAMS, Executor(), 1024)
    assert planned.sizes.counted_graphs == tuple(graphs)
    assert planned.sizes.counted_nonzeros == sum(
        StoredSymmetricAffinities(groups[StoredSymmetricAffinities.STAGE]).indptr(block)[-1]
        for block in range(planned.dimensions.n_blocks)
    )
    assert counted({}) == {"counted_nonzeros": None, "counted_graphs": None}


@pytest.mark.parametrize("nonzeros", [None, [], [3], ["three", 2, 1], 7, [0, 2, 3]])
def test_a_record_of_an_older_version_leaves_coarse_graphs_uncounted_and_a_damaged_one_is_refused(
    finished, tmp_path, nonzeros
):
    objects = finished.group(StoredCoarseGraphs.STAGE).objects
    record = objects.get_json("complete.json")
    del record["certificates"]["nonzeros"]
    if nonzeros is not None:
        record["certificates"]["nonzeros"] = nonzeros
    objects.set_json("complete.json", record)
    groups = groups_of(open_run(tmp_path / "run"))
    if nonzeros is None:
        assert counted(groups)["counted_graphs"] is None
    else:
        with pytest.raises(CorruptChunkError, match="coarse_graphs"):
            counted(groups)
