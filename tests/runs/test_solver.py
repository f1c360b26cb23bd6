"""embedding.solver=auto: refinement where it fits the driver, landmarks beyond; the store keeps which."""

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ScalemaniWarning
from scalemani.io.sources import open_points
from scalemani.runs.opened import Run
from scalemani.runs.outline import SOLVER
from scalemani.runs.walk import plan_run, run

METHOD = "laplacian-eigenmaps"
VALUES = {
    "neighbors": {"n_neighbors": 12, "method": "exact"},
    "affinities": {"perplexity": 4},
    "landmarks": {"n_landmarks": 100},
    "partition": {"cell_points": 200, "sample_points": 2000},
}
PARAMS = Parameters().with_values(VALUES)
AMPLE = 2**33


def planned(points, folder, memory, params=PARAMS, method=METHOD):
    return plan_run(open_points(points), folder, method, params, Executor(workers=1, memory=memory))


def named(solver):
    return PARAMS.with_values({"embedding": {"solver": solver}})


def computed(points, folder, memory, params=PARAMS, progress=None, only=None):
    executor = Executor(workers=1, memory=memory)
    if progress is not None:
        executor.progress = progress
    return run(open_points(points), folder, METHOD, params, executor, only=only)


def keys(plan):
    return {found.stage.name: found.key for found in plan.stages}


@pytest.fixture(scope="module")
def needed(roll):
    """The bytes that a refinement of these points takes in a driver."""
    return planned(roll, "/nowhere/run", AMPLE).outline.solver.needed


def test_it_is_refine_where_the_graph_fits_with_the_keys_of_a_run_that_names_it(roll, tmp_path, needed):
    for memory in (AMPLE, needed):
        plan = planned(roll, tmp_path / "run", memory)
        assert plan.outline.solver.resolved == plan.params.embedding.solver == "refine"
        assert keys(plan) == keys(planned(roll, tmp_path / "run", memory, named("refine")))


def test_it_is_lll_one_byte_below_with_the_keys_of_a_run_that_names_it(roll, tmp_path, needed):
    plan = planned(roll, tmp_path / "run", needed - 1)
    assert plan.outline.solver.resolved == plan.params.embedding.solver == "lll"
    assert plan.outline.solver.memory == needed - 1
    assert keys(plan) == keys(planned(roll, tmp_path / "run", AMPLE, named("lll")))


def test_local_processes_leave_the_driver_its_share(roll, tmp_path, needed):
    for memory, solver in ((4 * needed, "refine"), (4 * needed - 4, "lll")):
        executor = Executor("processes", workers=3, memory=memory)
        plan = plan_run(open_points(roll), tmp_path / "run", METHOD, PARAMS, executor)
        assert plan.params.embedding.solver == solver


def test_a_run_tells_of_lll_and_keeps_it_whatever_the_memory_later(roll, tmp_path, needed, listening):
    finished = computed(roll, tmp_path / "run", needed - 1, progress=listening)
    assert [text for text in listening.warned if "embedding.solver=auto is lll" in text]
    assert finished.params.embedding.solver == finished.plan[SOLVER]["resolved"] == "lll"
    assert finished.plan[SOLVER]["needed"] == needed
    again = computed(roll, tmp_path / "run", AMPLE)
    assert again.keys == finished.keys
    other = computed(roll, tmp_path / "run", AMPLE, named("refine"))
    assert other.params.embedding.solver == "refine"


def test_a_refinement_that_was_started_is_resumed_as_one(roll, tmp_path, needed):
    finished = computed(roll, tmp_path / "run", AMPLE, named("refine"))  # as a run of an older version
    assert SOLVER not in finished.plan
    assert planned(roll, tmp_path / "run", needed - 1).params.embedding.solver == "refine"
    other = planned(roll[:-5], tmp_path / "run", 2**20)
    assert other.params.embedding.solver == "lll"


def test_a_stage_of_the_other_solver_has_nothing_to_do(roll, tmp_path, needed, listening):
    computed(roll, tmp_path / "run", needed - 1, only="points")
    computed(roll, tmp_path / "run", needed - 1, progress=listening, only="coarse_graphs")
    assert [text for text in listening.noted if text == "coarse_graphs: nothing to do, lll does not need it"]


def test_descents_and_methods_without_eigenvectors_do_not_ask(roll, tmp_path):
    start = planned(roll, tmp_path / "run", 2**20, method="t-sne")
    assert start.params.embedding.solver == "refine"
    graph = planned(roll, tmp_path / "run", 2**20, method="knn-graph")
    assert graph.outline.solver is None
    assert not [note for note in graph.outline.notes if note.startswith("embedding.solver")]


def test_a_warning_says_what_decided(roll, tmp_path, needed):
    from scalemani import LaplacianEigenmaps

    model = LaplacianEigenmaps(
        n_neighbors=12,
        perplexity=4,
        n_landmarks=100,
        memory=needed - 1,
        workers=1,
        store=tmp_path / "run",
        settings={"neighbors.method": "exact", "partition.cell_points": 200, "partition.sample_points": 2000},
    )
    with pytest.warns(ScalemaniWarning, match=r"auto. is lll: refinement takes .* of the driver's memory"):
        model.fit(roll)
    assert Run(tmp_path / "run").params.embedding.solver == "lll"
    assert np.isfinite(model.embedding_).all()


def test_the_plan_says_which_and_by_which_figure(roll, tmp_path, needed, scalemani):
    np.save(tmp_path / "roll.npy", roll)
    settings = [f"--set={stage}.{name}={value}" for stage, table in VALUES.items() for name, value in table.items()]
    command = "plan", tmp_path / "roll.npy", tmp_path / "run", "--workers", 1, *settings
    status, shown, _ = scalemani(*command, "--memory", needed)
    assert status == 0
    assert "embedding.solver=auto is refine: refinement takes" in shown.splitlines()[0]
    status, shown, _ = scalemani(*command, "--memory", needed - 1)
    assert status == 0
    assert "embedding.solver=auto is lll: refinement takes" in shown.splitlines()[0]
    assert "landmark_embedding" in shown
    assert "coarse_graphs" not in shown
