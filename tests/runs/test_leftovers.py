"""What is left after runs: no process, no file, no descriptor, no scratch, and no more memory with every run."""

import contextlib
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from scalemani import LaplacianEigenmaps
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

VALUES = {"neighbors": {"n_neighbors": 8}, "affinities": {"perplexity": 3}, "landmarks": {"n_landmarks": 60}}
MORE_DESCRIPTORS, MORE_THREADS = 3, 2  # what may be about to end
WARM_UP, RUNS, GROWTH = 4, 8, 1.05
SMALL_POINTS, FEW_POINTS = 1500, 500


def embed(points, folder, method="laplacian-eigenmaps", **resources):
    params = Parameters().with_values({**VALUES, "layout": {"max_iterations": 10}})
    return run(open_points(points), folder, method, params, Executor(**resources), 1024)


def left_over(folder: Path) -> list[Path]:
    """Return what is no part of a finished run: partials, mapped files, checkpoints."""
    return [path for path in folder.rglob("*") if path.is_file() and not belongs(path.relative_to(folder))]


def belongs(path: Path) -> bool:
    if len(path.parts) == 1:
        return path.name in ("scalemani.json", "plan.json", "lock")
    inside = path.parts[3:]
    described = ("complete.json", "inputs.json", "dimensions.json", "extremes.json")
    return inside[0] in ("arrays", "marks") or inside in ((name,) for name in described)


def command_of(process: psutil.Process) -> str:
    """Return the command of a process, nothing where it has ended."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


@pytest.mark.parametrize(
    ("scheduler", "method"),
    [("threads", "laplacian-eigenmaps"), ("threads", "t-sne"), ("processes", "laplacian-eigenmaps")],
)
def test_a_run_leaves_nothing_behind(roll, tmp_path, temporary_files, scheduler, method):
    process, environment = psutil.Process(), dict(os.environ)
    embed(roll[:SMALL_POINTS], tmp_path / "first", method, scheduler=scheduler, workers=2)
    assert dict(os.environ) == environment
    children = set(process.children(recursive=True))
    gc.collect()
    descriptors = process.num_fds()
    embed(roll[:SMALL_POINTS], tmp_path / "second", method, scheduler=scheduler, workers=2)
    gc.collect()
    assert set(process.children(recursive=True)) <= children
    assert not [command for command in map(command_of, children) if "nanny" in command]
    assert process.num_fds() <= descriptors + MORE_DESCRIPTORS
    assert not left_over(tmp_path / "second")
    assert not [path for path in temporary_files.rglob("*") if path.is_file()]


def test_estimators_leave_no_temporary_store(roll, temporary_files):
    LaplacianEigenmaps(n_landmarks=60, n_neighbors=8, perplexity=3).fit(roll[:SMALL_POINTS])
    assert not list(temporary_files.iterdir())


REPEATED = """
import os, sys, tempfile
import numpy as np
import psutil
from scalemani.engine.workers.executor import Executor
from scalemani.config.params import Parameters
from scalemani.runs.walk import run
from scalemani.io.sources import open_points
values = {"neighbors": {"n_neighbors": 8}, "affinities": {"perplexity": 3}, "landmarks": {"n_landmarks": 60}}
points, params = np.load(sys.argv[1]), Parameters().with_values(values)
for number in range(int(sys.argv[2])):
    with tempfile.TemporaryDirectory() as folder:
        executor = Executor(workers=2, memory=2 * 10**9)
        run(open_points(points), folder + "/run", "laplacian-eigenmaps", params, executor, 1024)
    print(psutil.Process().memory_info().rss, psutil.Process().num_fds(), psutil.Process().num_threads(), flush=True)
"""


def test_memory_does_not_grow_with_every_run(roll, tmp_path):
    np.save(tmp_path / "points.npy", roll[:FEW_POINTS])
    program = [sys.executable, "-c", REPEATED, str(tmp_path / "points.npy"), str(WARM_UP + RUNS)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=dict(os.environ))
    memory, descriptors, threads = np.array([line.split() for line in done.stdout.splitlines()], dtype=float).T
    print(memory)
    assert memory[-3:].mean() <= GROWTH * memory[WARM_UP : WARM_UP + 3].mean(), memory
    assert descriptors[-1] <= descriptors[WARM_UP] + MORE_DESCRIPTORS
    assert threads[-1] <= threads[WARM_UP] + MORE_THREADS
