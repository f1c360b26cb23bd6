"""Worker processes of this machine: as often as they end, no longer than the driver, and what they leave behind."""

import contextlib
import errno
import operator
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from scalemani.engine.memory_model import Batch
from scalemani.engine.workers.clients import DRIVER, SCRATCH_PREFIX, scratch_folder
from scalemani.engine.workers.executor import Executor

SECONDS = 240.0  # on a machine that does much else
STARTED = """
import time
from scalemani.engine.workers.executor import Executor
with Executor("processes", 2).started():
    print("started", flush=True)
    time.sleep(600)
"""
HOLDING = """
import time
from scalemani.engine.workers.clients import scratch_folder
with scratch_folder() as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


def settled(look):
    """Return what a look finds once it finds something, None after a long time."""
    end = time.monotonic() + SECONDS
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def at_work(process):
    """Return whether a process has not ended; one that nobody has asked how it ended is still in the table."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def workers_below(driver):
    """Return the worker processes of a driver; it may also start commands, which end at any time."""
    found = []
    for child in psutil.Process(driver.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found += [child] if "spawn_main" in str(child.cmdline()) else []
    return found


def worker_pids(executor):
    try:
        return set(executor._client.run(os.getpid).values())
    except OSError:  # one is gone, and not yet replaced
        return set()


@pytest.fixture(scope="module")
def running():
    executor = Executor("processes", 2)
    with executor.started():
        yield executor


def test_a_worker_that_ends_is_replaced(running):
    gone, kept = worker_pids(running)
    os.kill(gone, signal.SIGKILL)
    assert settled(lambda: kept in (found := worker_pids(running)) and len(found - {gone}) == 2)
    assert running.fold(operator.neg, operator.add, range(4), batch=Batch("demo", "scope")) == -6


def test_workers_have_the_environment_and_the_modules_of_the_driver_and_a_folder_of_its_scratch(running):
    found = running._client.run(lambda dask_worker: (dask_worker.local_directory, dict(os.environ), sys.path))
    assert len(found) == 2
    for folder, environment, path in found.values():
        assert folder.startswith(os.path.join(tempfile.gettempdir(), SCRATCH_PREFIX))
        assert environment["OPENBLAS_NUM_THREADS"] == "1"
        assert environment["PATH"] == os.environ["PATH"]
        assert set(path) >= {place for place in sys.path if place}


def test_workers_end_with_the_driver_that_was_killed():
    with subprocess.Popen([sys.executable, "-c", STARTED], stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"started\n"
        below = psutil.Process(driver.pid).children(recursive=True)
        driver.send_signal(signal.SIGKILL)
    assert len(below) >= 2
    assert settled(lambda: not any(map(at_work, below)))


def test_scratch_of_a_killed_process_is_removed_by_the_next_and_that_of_others_is_not(temporary_files):
    (temporary_files / f"{SCRATCH_PREFIX}somebody's").mkdir()  # without the file of a driver
    with subprocess.Popen([sys.executable, "-c", HOLDING], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        scratch = Path(process.stdout.readline().decode().strip())
        with scratch_folder():
            assert (scratch / DRIVER).exists()
        process.send_signal(signal.SIGKILL)
    assert scratch.exists()
    with scratch_folder() as own, scratch_folder():
        assert Path(own).exists()
        assert not scratch.exists()
    assert [path.name for path in temporary_files.iterdir()] == [f"{SCRATCH_PREFIX}somebody's"]


def test_a_disk_without_locks_takes_a_scratch_folder(temporary_files, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refused)
    with scratch_folder() as own:
        assert (Path(own) / DRIVER).exists()
        with scratch_folder():
            assert Path(own).exists()


def test_a_link_that_somebody_planted_leads_nowhere(tmp_path, temporary_files):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / DRIVER).touch()
    (temporary_files / f"{SCRATCH_PREFIX}link").symlink_to(tmp_path / "elsewhere")
    with scratch_folder():
        pass
    assert (tmp_path / "elsewhere" / DRIVER).exists()


def test_a_worker_that_ends_as_it_starts_is_started_again():
    with subprocess.Popen([sys.executable, "-c", STARTED], stdout=subprocess.PIPE, text=True) as driver:
        try:
            settled(lambda: workers_below(driver))[-1].kill()
            assert driver.stdout.readline() == "started\n"
        finally:
            driver.kill()
