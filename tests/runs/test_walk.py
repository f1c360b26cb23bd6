"""A run as a whole: any layout gives the same answer, nothing finished is done again, damage is mended."""

import collections
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.context import LEDGER_VARIABLE
from scalemani.engine.memory_model import process_bytes
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError, DisconnectedGraphError, MemoryBudgetError, StoreError
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import plan_run, run
from tests.killed import killed_after

VALUES = {
    "neighbors": {"n_neighbors": 12, "method": "partition"},
    "affinities": {"perplexity": 4},
    "landmarks": {"n_landmarks": 200},
    "partition": {"cell_points": 200, "sample_points": 2000},
    "embedding": {"solver": "lll+refine"},  # the one that runs all stages of the route
}
FINISHED_SECONDS = 6.0  # of the processor, three times what a run may take that has nothing to do
SECONDS = 240  # on a machine that does much else
SLACK = 64e6  # of the allocator, and of kernels loaded on the way
BIT_EQUAL = {
    "work_points": ("input_rows", "points", "sketch"),
    "affinities": ("values", "beta"),
    "landmarks": ("rows", "points"),
    "landmark_weights": ("indices", "values"),
}


def embed(points, folder, values=VALUES, method="laplacian-eigenmaps", block_rows=1024, **resources):
    params = Parameters().with_values(values)
    return run(open_points(points), folder, method, params, Executor(**resources), block_rows)


@pytest.fixture(scope="module")
def reference(roll, tmp_path_factory):
    return embed(roll, tmp_path_factory.mktemp("runs") / "reference")


def same_results(one, other):
    for stage, names in BIT_EQUAL.items():
        for name in names:
            np.testing.assert_array_equal(one.group(stage).read(name), other.group(stage).read(name), err_msg=name)
    np.testing.assert_allclose(one.embedding[...], other.embedding[...], rtol=0, atol=1e-6)
    np.testing.assert_allclose(one.eigenvalues, other.eigenvalues, rtol=1e-9)


@pytest.mark.parametrize("layout", [(2048, 1), (3072, 2), (8192, 2)])
def test_the_answer_does_not_depend_on_blocks_or_workers(roll, reference, tmp_path, layout):
    block_rows, workers = layout
    same_results(reference, embed(roll, tmp_path / "run", block_rows=block_rows, workers=workers))


def test_processes_give_the_answer_of_threads(roll, reference, tmp_path):
    same_results(reference, embed(roll, tmp_path / "run", scheduler="processes", workers=2))


def test_a_finished_run_runs_nothing(roll, reference, tmp_path, monkeypatch):
    shutil.copytree(reference.store.root, tmp_path / "run")
    monkeypatch.setenv(LEDGER_VARIABLE, str(tmp_path / "ledger"))
    started = time.process_time()
    again = embed(roll, tmp_path / "run")
    assert time.process_time() - started < FINISHED_SECONDS
    assert not (tmp_path / "ledger").exists()
    np.testing.assert_array_equal(again.embedding[...], reference.embedding[...])


def test_a_changed_parameter_reruns_what_depends_on_it_only(roll, reference, tmp_path, monkeypatch):
    shutil.copytree(reference.store.root, tmp_path / "run")
    monkeypatch.setenv(LEDGER_VARIABLE, str(tmp_path / "ledger"))
    changed = embed(roll, tmp_path / "run", {**VALUES, "affinities": {"perplexity": 3.5}})
    stages = {line.split()[0] for line in (tmp_path / "ledger").read_text().splitlines()}
    assert stages == {"affinities", "components", "symmetric_affinities", "reduced", "embedding"}
    assert changed.keys["neighbors"] == reference.keys["neighbors"]
    assert changed.keys["embedding"] != reference.keys["embedding"]


def test_changed_points_are_noticed(roll, reference, tmp_path):
    shutil.copytree(reference.store.root, tmp_path / "run")
    moved = roll.copy()
    moved[17] += 0.5
    changed = embed(moved, tmp_path / "run")
    assert changed.keys["points"] != reference.keys["points"]
    np.testing.assert_array_equal(changed.group("points").read("points"), moved)


def chunks_of_block(folder, stage, block):
    """Return the files of the chunks of a block of rows of a stage."""
    found = sorted((folder / "stages" / stage).glob(f"*/arrays/**/c/{block}"))
    return [path for chunk in found for path in (chunk, *sorted(chunk.glob("*"))) if path.is_file()]


@pytest.mark.parametrize(
    "damaged",
    [
        {"points": (2,)},
        {"work_points": (2,)},
        {"neighbors": (2,)},
        {"affinities": (0, 1, 2), "landmark_weights": (1, 3)},
    ],
    ids=lambda damaged: " and ".join(damaged),
)
def test_damaged_chunks_are_computed_anew_and_nothing_else(roll, reference, tmp_path, monkeypatch, damaged):
    shutil.copytree(reference.store.root, tmp_path / "run")
    for victim in [chunks_of_block(tmp_path / "run", stage, block)[0] for stage in damaged for block in damaged[stage]]:
        content = bytearray(victim.read_bytes())
        content[len(content) // 2] ^= 255
        victim.write_bytes(content)
    monkeypatch.setenv(LEDGER_VARIABLE, str(tmp_path / "ledger"))
    mended = embed(roll, tmp_path / "run")
    computed = [line.split()[:2] for line in (tmp_path / "ledger").read_text().splitlines()]
    anew = sorted((stage, int(unit.rpartition("-")[2])) for stage, unit in computed)
    assert anew == sorted((stage, block) for stage, blocks in damaged.items() for block in blocks)
    np.testing.assert_array_equal(mended.embedding[...], reference.embedding[...])


def embedding_of(points, folder):
    """Return the arguments of the command line for the run that `embed` makes by default."""
    chosen = [f"--set={stage}.{name}={value}" for stage, group in VALUES.items() for name, value in group.items()]
    return ["embed", str(points), str(folder), "--block-rows", "1024", *chosen]


def test_a_killed_run_goes_on_and_ends_the_same(roll, reference, tmp_path):
    np.save(tmp_path / "roll.npy", roll)
    arguments = embedding_of(tmp_path / "roll.npy", tmp_path / "run")
    environment = {**os.environ, LEDGER_VARIABLE: str(tmp_path / "ledger")}
    for more_blocks in (1, 8, 8, 8):
        killed = subprocess.run([*killed_after(more_blocks), *arguments], env=environment, capture_output=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    command = [sys.executable, "-m", "scalemani", *arguments]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    done = collections.Counter(line.rpartition(" ")[0] for line in (tmp_path / "ledger").read_text().splitlines())
    assert max(done.values()) == 1
    finished = open_run(tmp_path / "run")
    for stage in reference.keys:
        assert finished.group(stage).content_digest == reference.group(stage).content_digest, stage


def test_an_interrupt_leaves_a_run_that_goes_on(roll, tmp_path):
    np.save(tmp_path / "roll.npy", roll)
    command = [sys.executable, "-m", "scalemani", "embed", str(tmp_path / "roll.npy"), str(tmp_path / "run")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not (tmp_path / "run").exists():  # a command that works: a machine under load takes its time to import
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 143


def test_a_plan_writes_nothing(roll, tmp_path):
    plan = plan_run(
        open_points(roll), tmp_path / "run", "laplacian-eigenmaps", Parameters().with_values(VALUES), Executor(), 1024
    )
    assert [planned.stage.name for planned in plan.stages][:4] == ["points", "partition", "work_points", "neighbors"]
    assert not (tmp_path / "run").exists()
    assert all(planned.missing(plan.dimensions.n_blocks) != "complete" for planned in plan.stages)


def test_a_budget_that_cannot_hold_is_refused_with_one_that_can(roll, tmp_path):
    with pytest.raises(MemoryBudgetError, match="raise --memory to"):
        embed(roll, tmp_path / "run", memory=10**8)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"neighbors": {"n_neighbors": 5000}}, "N=5000 points, need more than n_neighbors"),
        ({"affinities": {"perplexity": 12}, "neighbors": {"n_neighbors": 12}}, "must be < n_neighbors"),
        ({"landmarks": {"n_landmarks": 5001}}, "must be at most N=5000"),
        (
            {"landmarks": {"n_landmarks": 4}, "landmark_weights": {"n_neighbors": 5}},
            "must be at most landmarks.n_landmarks=4",
        ),
        (
            {
                "landmarks": {"n_landmarks": 20},
                "landmark_embedding": {"n_components": 20},
                "embedding": {"solver": "lll+refine"},
            },
            "must be at least 21",
        ),
    ],
)
def test_parameters_that_the_data_cannot_serve_are_refused_at_the_door(roll, tmp_path, values, message):
    with pytest.raises((ConfigError, DataError), match=message):
        embed(roll, tmp_path / "run", values)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_that_are_not_finite_leave_an_earlier_run_untouched(roll, reference, tmp_path, bad):
    shutil.copytree(reference.store.root, tmp_path / "run")
    points = roll.copy()
    points[3000, 1] = bad
    with pytest.raises(DataError, match="row 3000, column 1"):
        embed(points, tmp_path / "run")
    np.testing.assert_array_equal(open_run(tmp_path / "run").embedding[...], reference.embedding[...])


def test_constant_columns_and_duplicates_run_and_are_counted(roll, tmp_path):
    points = np.concatenate([np.repeat(roll[:1500], 2, axis=0), np.zeros((3000, 0))], axis=1)
    points = np.column_stack([points, np.ones(3000)])
    finished = embed(points, tmp_path / "run", {**VALUES, "landmarks": {"n_landmarks": 100}})
    assert finished.certificates["points"]["constant_features"] == 1
    assert np.isfinite(finished.embedding[...]).all()


def test_few_points_are_all_landmarks_but_for_repeated_ones(roll, tmp_path):
    points = np.concatenate([roll[:300], roll[:50]])
    finished = embed(points, tmp_path / "run", {"affinities": {"perplexity": 5}})
    assert finished.certificates["landmarks"]["landmarks"] == 300
    assert finished.params.n_landmarks == 300


def test_equal_points_are_refused(tmp_path):
    with pytest.raises(DataError, match="zero variance"):
        embed(np.ones((3000, 3)), tmp_path / "run")


def test_pieces_are_connected_or_refused_as_asked(tmp_path):
    rng = np.random.default_rng(0)
    points = np.concatenate(
        [rng.normal(size=(1000, 3)), 100 + rng.normal(size=(1500, 3)), -90 + rng.normal(size=(500, 3))]
    )
    with pytest.raises(DisconnectedGraphError, match="3 components"):
        embed(points, tmp_path / "one", {**VALUES, "components": {"disconnected": "error"}})
    finished = embed(points, tmp_path / "two")
    assert finished.certificates["components"]["components"] == 3
    assert finished.certificates["components"]["bridges"] == 2
    first = np.sign(finished.embedding[...])
    assert (first[:1000] == first[0]).all()
    assert (first[1000:2500] == first[1000]).all()


def test_one_stage_needs_its_inputs(roll, tmp_path):
    params = Parameters().with_values(VALUES)
    with pytest.raises(StoreError, match="reads points, not finished yet"):
        run(open_points(roll), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024, "partition")
    with pytest.raises(ConfigError, match="has no stage 'clustering'"):
        run(open_points(roll), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024, "clustering")
    run(open_points(roll), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024, "points")
    run(open_points(roll), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024, "partition")
    assert open_run(tmp_path / "run").group("partition").complete


def test_memory_stays_under_what_was_projected(roll, reference, tmp_path):
    np.save(tmp_path / "roll.npy", roll)  # to be run in a process that finds the kernels that the reference compiled
    command = [sys.executable, "-m", "scalemani", *embedding_of(tmp_path / "roll.npy", tmp_path / "run")]
    subprocess.run(command, check=True, capture_output=True)
    for stage, record in open_run(tmp_path / "run").records().items():
        assert record["peak_memory"] - record["memory_before"] < record["projected_memory"] - process_bytes() + SLACK, (
            stage
        )


@pytest.mark.parametrize("solver", ["refine", "lll", "lll+refine", "exact"])
def test_every_parameter_of_the_embedding_is_in_its_key(roll, tmp_path, solver):
    def embedded(n_components, residual):
        asked = {"landmark_embedding": {"n_components": n_components}}
        return embed(roll, tmp_path, {**VALUES, **asked, "embedding": {"solver": solver, "residual": residual}})

    shapes = [embedded(n_components, 1e-3).embedding.shape for n_components in (2, 5)]
    assert shapes == [(5000, 2), (5000, 5)]
    first, second = (embedded(2, residual).certificates["embedding"]["residual"] for residual in (1e-2, 1e-4))
    if "refine" in solver:
        assert second <= 1e-4
        assert first <= 1e-2


def test_a_run_that_set_a_number_which_is_no_parameter_any_more_opens_with_its_results(reference, tmp_path):
    """It is a constant now: the store keeps the value under which the results were computed."""
    store = shutil.copytree(reference.store.root, tmp_path / "run")
    earlier = open_run(store)
    neighbors = {**earlier.plan["params"]["neighbors"], "exact_below": 1000}
    earlier.store.save_plan({**earlier.plan, "params": {**earlier.plan["params"], "neighbors": neighbors}})
    opened = open_run(store)
    np.testing.assert_array_equal(opened.embedding[...], reference.embedding[...])
    assert opened.records() == reference.records()
    assert opened.params == reference.params
