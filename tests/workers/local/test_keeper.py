"""Workers that are forked from a process that has loaded what tasks call: as often as they end, no longer than it."""

import contextlib
import functools
import operator
import os
import signal
import subprocess
import sys
import tempfile
import time

import psutil
import pytest

import scalemani.stages.table  # noqa: F401  what the process that is forked loads as well
from scalemani.kernels.machine.plain import PLAIN
from scalemani.workers.executor import Executor
from scalemani.workers.local import processes
from scalemani.workers.local.keeper import PROGRAM
from scalemani.workers.local.scratch import SCRATCH_PREFIX

SECONDS = 240.0  # on a machine that does much else
DRIVER = """
import sys, time
from scalemani.workers.executor import Executor
with Executor("processes", 2).started():
    print("started", flush=True)
    time.sleep(600)
"""


def keepers_below(process):
    found = []
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found += [child] if child.cmdline()[1:] == PROGRAM[1:] and child.ppid() == process.pid else []
    return found


def settled(look):
    """Return what a look finds once it finds something, None after a long time."""
    end = time.monotonic() + SECONDS
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def others(keeper, gone):
    """Return the two workers of a process that keeps them, once neither is one that is gone; nothing until then."""
    found = keeper.children()
    return found if len(found) == 2 and gone not in found else []


def processor_seconds(process):
    return sum(process.cpu_times()[:2])


@pytest.fixture(scope="module")
def running():
    executor = Executor("processes", 2)
    with executor.started():
        yield executor


def test_a_worker_that_ends_is_replaced_without_loading_anew_what_tasks_call(running):
    (keeper,) = keepers_below(psutil.Process())
    gone = keeper.children()[0]
    gone.kill()
    workers = settled(functools.partial(others, keeper, gone))
    assert len(workers) == 2
    new = max(workers, key=lambda worker: worker.create_time())
    settled(lambda: new in keeper.children() and len(running._client.nthreads()) == 2)
    assert processor_seconds(new) < processor_seconds(keeper) / 3


def test_what_is_forked_has_one_thread(running):
    (keeper,) = keepers_below(psutil.Process())
    assert keeper.num_threads() == 1


def test_workers_end_with_the_driver_that_was_killed():
    with subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"started\n"
        below = psutil.Process(driver.pid).children(recursive=True)
        driver.send_signal(signal.SIGKILL)
    assert len(below) >= 3
    assert settled(lambda: not any(process.is_running() for process in below))


def test_workers_have_the_environment_of_the_driver_a_folder_of_its_scratch_and_what_is_slow_to_load(running):
    def told(dask_worker):  # by value: a worker does not load tests
        return dask_worker.local_directory, dict(os.environ), set(sys.modules)

    found = running._client.run(told)
    assert len(found) == 2
    for folder, environment, loaded in found.values():
        assert loaded >= {"scalemani.stages.neighbors", "scipy.spatial", *([] if PLAIN else ["numba.np.arraymath"])}
        assert folder.startswith(os.path.join(tempfile.gettempdir(), SCRATCH_PREFIX))
        assert environment["OPENBLAS_NUM_THREADS"] == "1"
        assert environment["PATH"] == os.environ["PATH"]


def test_where_processes_are_not_forked_nannies_replace_workers(monkeypatch):
    monkeypatch.setattr(processes, "KEEPS", False)
    executor, keepers = Executor("processes", 1), keepers_below(psutil.Process())
    with executor.started():
        assert keepers_below(psutil.Process()) == keepers
        (worker,) = [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]
        worker.kill()
        assert executor.fold(operator.neg, operator.add, range(4)) == -6
