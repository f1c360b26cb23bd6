"""What the cluster benchmarks share: runs as commands, schedulers and workers as processes, and what a run left."""

import collections
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from measuring import settings

from scalemani.runs.opened import Run, open_run

SETTING = settings(affinities__perplexity=5, neighbors__n_neighbors=15, landmarks__n_landmarks=2000)
PROXY = Path(__file__).with_name("faulty_proxy.py")
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "benchmark",
    "AWS_SECRET_ACCESS_KEY": "benchmark",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def command(points: object, run: object, *options: str) -> list[str]:
    """Return the command of a run."""
    return [sys.executable, "-m", "scalemani", "embed", str(points), str(run), *SETTING, *options]


@dataclass
class Ended:
    """How a command ended: status, seconds, standard error."""

    status: int
    seconds: float
    errors: str


def ended(words: Sequence[str], environment: Mapping[str, str] | None = None, limit: float = 7200) -> Ended:
    """Run a command to its end; one that hangs counts as a failure of the benchmark."""
    started = time.perf_counter()
    done = subprocess.run(
        words, env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=limit
    )
    return Ended(done.returncode, time.perf_counter() - started, done.stderr)


def succeeded(words: Sequence[str], environment: Mapping[str, str] | None = None) -> float:
    """Return the seconds of a command, which has to succeed."""
    done = ended(words, environment)
    if done.status:
        raise SystemExit(f"{' '.join(words)} ended with {done.status}: {done.errors[-2000:]}")
    return done.seconds


def worker_processes(process: psutil.Process) -> list[psutil.Process]:
    """Return the processes below another in which tasks run, which nannies have spawned."""
    with contextlib.suppress(psutil.Error):
        return [child for child in process.children(recursive=True) if "spawn_main" in " ".join(child.cmdline())]
    return []


@dataclass
class Cluster:
    """A scheduler and workers as Dask's commands start them; what they say goes to the end of `log`, if there is one.

    `memory` is the limit of each worker, 0: none.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    memory: str = "0"
    log: Path | None = None

    def __post_init__(self) -> None:
        self.processes: list[subprocess.Popen] = []
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self.start("scheduler", "--port", str(self.port))

    def start(self, *words: str) -> subprocess.Popen:
        """Start a scheduler or workers."""
        everything = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        environment = {**os.environ, **self.environment}
        with (self.log or Path(os.devnull)).open("ab") as said:
            self.processes.append(subprocess.Popen(everything, env=environment, stdout=said, stderr=said))
        return self.processes[-1]

    def add_workers(self, count: int) -> "Cluster":
        """Start workers of one thread."""
        size = ["--nworkers", str(count), "--nthreads", "1", "--memory-limit", self.memory]
        self.start("worker", self.address, *size)
        return self

    def end(self) -> None:
        """Kill what was started, workers with their nannies."""
        for process in self.processes:
            end_tree(process)


def end_tree(process: subprocess.Popen) -> None:
    """Kill a process that was started here with all its children."""
    members = []
    with contextlib.suppress(psutil.Error):
        members = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for member in members:
        with contextlib.suppress(psutil.Error):
            member.send_signal(signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def running_cluster(
    workers: int, environment: Mapping[str, str] | None = None, memory: str = "0", log: Path | None = None
) -> Iterator[Cluster]:
    """Start a cluster and end it; see `Cluster`."""
    cluster = Cluster(environment or {}, memory, log)
    try:
        yield cluster.add_workers(workers)
    finally:
        cluster.end()


@contextlib.contextmanager
def object_store(*proxy_options: str) -> Iterator[dict[str, str]]:
    """Start a server that speaks S3 behind one that fails as asked; yield the environment that leads there."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    proxy = [sys.executable, str(PROXY), f"http://127.0.0.1:{port}", *proxy_options]
    quiet = subprocess.DEVNULL
    with (
        subprocess.Popen(server, stdout=quiet, stderr=quiet) as store,
        subprocess.Popen(proxy, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as faults,
    ):
        try:
            assert faults.stdout is not None
            address = faults.stdout.readline().strip()
            direct = {**CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
            put = f"urllib.request.Request('http://127.0.0.1:{port}/benchmark', method='PUT')"
            make = f"import urllib.request; urllib.request.urlopen({put})"
            for _ in range(60):
                if (
                    subprocess.run([sys.executable, "-c", make], env={**os.environ, **direct}, stderr=quiet).returncode
                    == 0
                ):
                    break
                time.sleep(0.5)
            yield {**CREDENTIALS, "AWS_ENDPOINT_URL": address}
        finally:
            faults.kill()
            store.kill()


def digests(run: Run) -> dict[str, str]:
    """Return the content digest of every stage."""
    return {stage: run.group(stage).content_digest for stage in run.keys}


def equal_stages(one: Path | str, other: Path | str) -> str:
    """Return how many stages of two runs hold the same bits."""
    return equal_digests(digests(open_run(one)), digests(open_run(other)))


def equal_digests(first: Mapping[str, object], second: Mapping[str, object]) -> str:
    """Return how many stages of a run have the digests of those of another, and which have not."""
    others = [stage for stage in first if first[stage] != second.get(stage)]
    return f"{len(first) - len(others)} of {len(first)}" + (f", not {', '.join(others)}" if others else "")


def difference(one: Run, other: Run) -> float:
    """Return the largest difference of the embeddings, relative to their largest entry."""
    first, second = np.asarray(one.embedding[...]), np.asarray(other.embedding[...])
    return float(np.abs(first - second).max() / np.abs(first).max())


def recomputed(ledger: Path) -> int:
    """Return how many finished blocks were computed again, over all lines of a ledger."""
    if not ledger.exists():
        return 0
    done = collections.Counter(line.rpartition(" ")[0] for line in ledger.read_text().splitlines())
    return sum(done.values()) - len(done)


def fresh(path: Path) -> Path:
    """Return a path at which there is nothing."""
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    return path
