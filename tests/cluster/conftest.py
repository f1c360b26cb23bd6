"""Real schedulers and workers, started by the commands of Dask, in processes of their own."""

import contextlib
import json
import operator
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from scalemani.engine.memory_model import Batch

VALUES = {
    "neighbors": {"n_neighbors": 12, "method": "partition"},
    "affinities": {"perplexity": 4},
    "landmarks": {"n_landmarks": 200},
    "partition": {"cell_points": 200, "sample_points": 2000},
}

SECONDS = 240  # on a machine that does much else
# As deploy/dask.sh has it: pages that say that all is well, and no more.
ROUTES = {f"DASK_DISTRIBUTED__{role}__HTTP__ROUTES": "['distributed.http.health']" for role in ("SCHEDULER", "WORKER")}
LOCAL = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")


class Cluster:
    """A scheduler and workers started by the command line of Dask, each of which can be killed."""

    def __init__(self, environment: dict[str, str], options: tuple[str, ...] = (), protocol: str = "tcp") -> None:
        self.environment = {**os.environ, **ROUTES, **environment}
        self.options = options
        self.processes: list[subprocess.Popen] = []
        # A port that was found before may be another's by the time that the scheduler listens.
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "scheduler.json"
            self.scheduler = self.start("scheduler", "--port=0", f"--scheduler-file={file}", "--protocol", protocol)
            self.address = self.address_in(file)

    def address_in(self, file: Path) -> str:
        """Return the address that the scheduler writes into a file once it listens."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            assert self.scheduler.poll() is None, "the scheduler ended"
            with contextlib.suppress(OSError, ValueError):  # it is not there, or not whole
                return json.loads(file.read_text())["address"]
            time.sleep(0.1)
        raise AssertionError("the scheduler does not listen")

    def start(self, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "dask", *arguments, *LOCAL, *self.options]
        quiet = subprocess.DEVNULL
        self.processes.append(subprocess.Popen(command, env=self.environment, stdout=quiet, stderr=quiet))
        return self.processes[-1]

    def add_workers(self, count: int, *options: str) -> subprocess.Popen:
        return self.start("worker", self.address, "--nworkers", str(count), "--nthreads", "1", *options)

    def worker_processes(self) -> list[psutil.Process]:
        """The processes in which tasks run: children of the nannies."""
        found = []
        for process in self.processes:
            with contextlib.suppress(psutil.Error):
                found += [
                    child
                    for child in psutil.Process(process.pid).children(recursive=True)
                    if "spawn_main" in " ".join(child.cmdline())
                ]
        return found

    def close(self) -> None:
        for process in reversed(self.processes):
            members = []
            with contextlib.suppress(psutil.Error):
                members = psutil.Process(process.pid).children(recursive=True)
            for member in members:
                with contextlib.suppress(psutil.Error):
                    member.send_signal(signal.SIGKILL)
            process.kill()
            process.wait()


@pytest.fixture
def start_cluster() -> Iterator:
    """Start clusters that end with the test: `start_cluster(workers, environment={}, options=())`."""
    clusters = []

    def start(workers: int, environment=None, options=(), protocol="tcp") -> Cluster:
        cluster = Cluster(environment or {}, tuple(options), protocol)
        clusters.append(cluster)
        if workers:
            cluster.add_workers(workers)
        return cluster

    yield start
    for cluster in clusters:
        cluster.close()


@pytest.fixture
def values():
    """Parameters of a small run with all stages."""
    return VALUES


@pytest.fixture
def mapped():
    """A function on every unit, by an executor."""

    def mapped(executor, function, units):
        return executor.fold(lambda unit: [function(unit)], operator.add, units, batch=Batch("demo", "scope"))

    return mapped
