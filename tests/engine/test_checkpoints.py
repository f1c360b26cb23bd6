"""States of long stages: whole or not at all, and a killed refinement that goes on to the same bits."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from scalemani.config.params import Parameters
from scalemani.engine.checkpoints import Checkpoints
from scalemani.engine.progress import Progress
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run
from scalemani.store.groups import StageGroup

VALUES = {
    "neighbors": {"n_neighbors": 10},
    "affinities": {"perplexity": 4.0},
    "landmarks": {"n_landmarks": 200},
    "landmark_embedding": {"n_components": 3},
    "embedding": {"residual": 1e-5},
}
EAGER = """
import time
from scalemani.engine import checkpoints
from scalemani.interfaces.cli import main
save = checkpoints.Checkpoints.save
def slow_save(self, arrays):
    save(self, arrays)
    print("saved", flush=True)
    time.sleep(600)  # whoever waits for a checkpoint kills
checkpoints.Checkpoints.save, checkpoints.Checkpoints.due = slow_save, lambda self: True
main()
"""


class Counting(Progress):
    """Records how many units of refinement were reported at once, from its start."""

    def __init__(self):
        self.stage, self.steps = "", []

    def start(self, stage, total, unit="block", done=0):
        self.stage = stage
        if self.stage == "embedding" and done:
            self.steps.append(done)

    def advance(self, done=1):
        if self.stage == "embedding":
            self.steps.append(done)


def embed(points, folder, **resources):
    params = Parameters().with_values(VALUES)
    return run(open_points(points), folder, "laplacian-eigenmaps", params, Executor(**resources), 1024)


@pytest.fixture
def group(tmp_path):
    return StageGroup(tmp_path, "stages/some/key", 1024)


def test_arrays_come_back_as_they_were(group):
    rng = np.random.default_rng(0)
    arrays = {
        "chunks": rng.random((5, 2**19), np.float32),
        "part": rng.normal(size=(20, 6))[:, :4],
        "count": np.array(7),
        "none": np.empty((0, 3)),
    }
    kept = Checkpoints(group)
    assert kept.load() is None
    for factor in (1, 2, 3):
        kept.save({name: factor * values for name, values in arrays.items()})
        found = Checkpoints(group).load()
        for name, values in arrays.items():
            np.testing.assert_array_equal(found[name], factor * values)
            assert found[name].dtype == values.dtype
    kept.clear()
    assert Checkpoints(group).load() is None
    assert not list(group.objects.names("checkpoint-0"))


def test_a_save_that_was_cut_short_leaves_the_one_before(group):
    Checkpoints(group).save({"a": np.arange(5), "b": np.arange(3)})
    later = Checkpoints(group)
    later.load()
    with pytest.raises(ZeroDivisionError):
        later.save(Broken({"a": np.zeros(5, int), "b": np.zeros(3, int)}))
    np.testing.assert_array_equal(Checkpoints(group).load()["a"], np.arange(5))


class Broken(dict):
    """A mapping whose items end early."""

    def items(self):
        yield "a", self["a"]
        raise ZeroDivisionError


def test_damage_is_not_taken_for_a_state(group, tmp_path):
    Checkpoints(group).save({"a": np.arange(5)})
    for name in ("checkpoint-0/a/c/0", "checkpoint.json"):
        path = tmp_path / "stages/some/key" / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 255
        path.write_bytes(content)
        assert Checkpoints(group).load() is None


@pytest.mark.parametrize(
    "wanted", [{"a": (4,)}, {"a": (5, 1)}, {"a": (None, None)}, {"counts": (5,)}, {"a": (5,), "b": ()}]
)
def test_a_state_of_another_shape_is_none(group, wanted):
    Checkpoints(group).save({"a": np.arange(5)})
    assert Checkpoints(group).load(wanted) is None
    np.testing.assert_array_equal(Checkpoints(group).load({"a": (None,)})["a"], np.arange(5))


@pytest.mark.parametrize("least", [0, 1e-9, 1000])
def test_saving_takes_a_small_share_of_the_time(group, least):
    seconds = [0.0]
    checkpoints = Checkpoints(group, least, lambda: seconds[0])

    class Slow(dict):
        """Arrays that take three seconds to be read."""

        def items(self):
            seconds[0] += 3.0
            return super().items()

    checkpoints.save(Slow({"a": np.arange(5)}))
    for since in (0, 99, 101, 999, 1001):
        seconds[0] = 3.0 + since
        assert checkpoints.due() == (least == 0 or since > max(100, least)), since


def test_a_killed_refinement_goes_on_and_ends_the_same(roll, tmp_path):
    whole = embed(roll, tmp_path / "whole")
    np.save(tmp_path / "roll.npy", roll)
    command = [
        *(sys.executable, "-c", EAGER, "embed", str(tmp_path / "roll.npy"), str(tmp_path / "run")),
        *("--block-rows", "1024"),
        *(f"--set={stage}.{name}={value}" for stage, values in VALUES.items() for name, value in values.items()),
    ]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, env=dict(os.environ)) as process:
        try:
            assert process.stdout.readline() == b"saved\n"
        finally:
            process.send_signal(signal.SIGKILL)
    assert list((tmp_path / "run").glob("stages/embedding/*/checkpoint.json"))
    assert not open_run(tmp_path / "run").group("embedding").complete
    counting = Counting()
    ended = embed(roll, tmp_path / "run", progress=counting)
    assert ended.group("embedding").content_digest == whole.group("embedding").content_digest
    certificates = ended.certificates["embedding"]
    assert certificates == whole.certificates["embedding"]
    assert counting.steps[0] >= 2
    assert not list((tmp_path / "run").glob("stages/embedding/*/checkpoint*/*"))
