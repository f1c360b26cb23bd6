"""A cluster on this machine: the scheduler in this process, worker processes that are kept at their number."""

import contextlib
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec

import dask
from distributed import Client, LocalCluster
from distributed.core import Status

from scalemani.errors import ConfigError, WorkersLostError
from scalemani.workers.connections import (
    REACH_SECONDS,
    ROUTES,
    SETTINGS,
    WORKERS_ENVIRONMENT,
    quiet,
    running_loop,
    temporary_security,
)
from scalemani.workers.local.keeper import PROGRAM, Request
from scalemani.workers.local.scratch import scratch_folder

STOP_SECONDS = 30  # of processes that were started here, which end with this one in any case
POLL_SECONDS = 1.0
END_SECONDS = 1.0  # for a keeper to end its workers; one that is loading still is killed, and its workers with it
KEEPS = sys.platform == "linux"  # the libraries of other systems have threads, and do not outlive a fork
TASKS = "scalemani.stages."  # modules whose functions tasks call
SCRATCH = "temporary-directory"  # of the workers, in Dask's words
BESIDE_IT = ("PYTHONHASHSEED", "__DASK_PARENT_PID")  # what Dask sets on top of it
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@contextlib.contextmanager
def local_processes(count: int) -> Iterator[tuple[Client, Callable[[], None]]]:
    """Start worker processes of one thread on this machine; yield a client, and what brings lost ones back."""
    if multiprocessing.current_process().daemon:
        raise ConfigError(
            "scheduler='processes' cannot start processes from a daemonic one, such as a worker of a multiprocessing "
            "pool: use threads"
        )
    security = temporary_security()
    with (
        scratch_folder() as folder,
        quiet(),
        running_loop() as loop,
        dask.config.set({**SETTINGS, **ROUTES, SCRATCH: folder}),
    ):
        cluster = LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # of metrics; without, it is port 8787
            memory_limit=0,
            silence_logs=logging.CRITICAL,
            security=security,
            loop=loop,
        )
        try:
            with Client(cluster) as client, (kept if KEEPS else nannies)(cluster, count, folder) as restore:
                populate(client, count, restore)
                yield client, restore
        finally:
            with contextlib.suppress(TimeoutError):
                cluster.close(timeout=STOP_SECONDS)


def populate(client: Client, count: int, restore: Callable[[], None]) -> None:
    """Wait for the workers of a cluster that has none; one that is lost on the way is started anew."""
    end = time.monotonic() + REACH_SECONDS
    while time.monotonic() < end:
        restore()
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(count, timeout=POLL_SECONDS)
            return
    if not client.nthreads():
        raise WorkersLostError(f"no worker process has started within {REACH_SECONDS:.0f} s: use --scheduler threads")


@contextlib.contextmanager
def kept(cluster: LocalCluster, count: int, folder: str) -> Iterator[Callable[[], None]]:
    """Have a process keep workers; yield what starts it again where it has ended, and its workers with it."""
    worker = {"host": "127.0.0.1", "nthreads": 1, "memory_limit": 0, "local_directory": folder}
    worker |= {"scheduler_ip": cluster.scheduler_address, "silence_logs": logging.CRITICAL}
    worker |= {"security": cluster.security}
    modules = sorted(name for name in sys.modules if name.startswith(TASKS))
    request = pickle.dumps(sys.path) + pickle.dumps(Request(modules, dask.config.config, count, worker))
    environment = workers_environment()
    with contextlib.ExitStack() as keepers:

        def restore() -> None:
            if not keeping or keeping[-1].poll() is not None:
                keeping.append(keepers.enter_context(stopped_at_the_end(request, environment)))

        keeping: list[subprocess.Popen[bytes]] = []
        yield restore


@contextlib.contextmanager
def stopped_at_the_end(request: bytes, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a keeper; close its standard input at the end, which is its sign to end."""
    process = subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(request)
        process.stdin.flush()
    try:
        yield process
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def workers_environment() -> dict[str, str]:
    """Return this process's environment with what Dask sets for workers; threads of BLAS would be in no fork."""
    settings = {name: str(value) for name, value in dask.config.get(WORKERS_ENVIRONMENT).items() if value is not None}
    return {**settings, **os.environ, **ONE_THREAD}


@contextlib.contextmanager
def nannies(cluster: LocalCluster, count: int, folder: str) -> Iterator[Callable[[], None]]:
    """Have Dask start workers, each below a nanny; yield what starts those anew whose nanny has ended itself."""
    ended = (Status.closed, Status.failed)

    def restore() -> None:
        lost = [name for name, nanny in list(cluster.workers.items()) if nanny.status in ended]
        for name in lost:
            cluster.workers.pop(name, None)
        if lost or len(cluster.worker_spec) < count:
            cluster.scale(count)

    with without_main(), same_environment():
        yield restore


@contextlib.contextmanager
def without_main() -> Iterator[None]:
    """Keep the processes that are started here from running the user's script again.

    multiprocessing has every new process import the main script, which starts the run over unless it is guarded by
    `if __name__ == "__main__"`. It leaves out a main module that was started by that very name; tasks need nothing of
    it.
    """
    main = sys.modules["__main__"]
    before = main.__spec__
    main.__spec__ = ModuleSpec("__main__", None)
    try:
        yield
    finally:
        main.__spec__ = before


@contextlib.contextmanager
def same_environment() -> Iterator[None]:
    """Give this process the environment back that it had: Dask sets that of new workers in the one that starts them."""
    names = {*BESIDE_IT, *dask.config.get(WORKERS_ENVIRONMENT)}
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
