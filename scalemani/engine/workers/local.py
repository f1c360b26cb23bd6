"""Local processes: Dask's own cluster on this machine, with certificates of one run."""

import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import dask
from distributed import Client, LocalCluster

from scalemani.engine.workers.connections import temporary_security
from scalemani.errors import ConfigError
from scalemani.store.locks import lock_file

STOP_SECONDS = 30  # of processes that were started here, which end with this one in any case
SCRATCH_PREFIX = "scalemani-"
DRIVER = "driver"  # a file in a scratch folder, locked while the process lives that made it
PRE_SPAWN = "distributed.nanny.pre-spawn-environ"
BESIDE_IT = ("PYTHONHASHSEED", "__DASK_PARENT_PID")  # what Dask sets on top of it
SETTINGS = {
    "distributed.worker.multiprocessing-method": "spawn",
    "distributed.scheduler.worker-ttl": "60 s",
    "distributed.deploy.lost-worker-timeout": "1 hour",  # Dask gives a worker up for good after 15 s by default
    f"{PRE_SPAWN}.PYTHONSAFEPATH": "1",  # files of the working folder are no modules
    # Metrics and health; not Dask's proxy to other hosts, nor pages that show code and data.
    "distributed.scheduler.http.routes": ["distributed.http.scheduler.prometheus", "distributed.http.health"],
    "distributed.worker.http.routes": ["distributed.http.worker.prometheus", "distributed.http.health"],
}


@contextlib.contextmanager
def local_processes(count: int) -> Iterator[Client]:
    """Start worker processes of one thread on this machine; yield a client."""
    if multiprocessing.current_process().daemon:
        raise ConfigError(
            "scheduler='processes' cannot start processes from a daemonic one, such as a worker of a multiprocessing "
            "pool: use threads"
        )
    security = temporary_security()
    with (
        scratch_folder() as folder,
        dask.config.set({**SETTINGS, "temporary-directory": folder}),
        same_process(),
    ):
        cluster = LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # of metrics; without, it is port 8787
            memory_limit=0,
            silence_logs=logging.CRITICAL,
            security=security,
        )
        try:
            with Client(cluster) as client:
                yield client
        finally:
            for nanny in cluster.workers.values():  # workers hold nothing: Dask would wait for tasks at work
                nanny.close_gracefully()
                with contextlib.suppress(ProcessLookupError):
                    if nanny.pid:
                        os.kill(nanny.pid, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                cluster.close(timeout=STOP_SECONDS)


@contextlib.contextmanager
def same_process() -> Iterator[None]:
    """Keep new processes from running the user's script again, and give this one back what Dask sets in it for them.

    multiprocessing has every new process import the main script, which starts the run over unless it is guarded by
    `if __name__ == "__main__"`. It leaves out a main module that was started by that very name; tasks need nothing of
    it.
    """
    main, names = sys.modules["__main__"], {*BESIDE_IT, *dask.config.get(PRE_SPAWN)}
    before, spec = {name: os.environ[name] for name in names & os.environ.keys()}, main.__spec__
    main.__spec__ = ModuleSpec("__main__", None)
    try:
        yield
    finally:
        main.__spec__ = spec
        for name in names & os.environ.keys():
            del os.environ[name]
        os.environ.update(before)


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
    """Make a scratch folder, remove it at the end, and with it what killed processes of this user have left.

    Dask's own lies where all may write, under a name that anybody can foresee and make a link.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*/{DRIVER}"):
        with contextlib.suppress(OSError):
            if not left.parent.is_symlink() and left.parent.stat().st_uid == os.getuid():
                with left.open("rb") as file:
                    lock_file(file.fileno())  # which is not to be had while its process lives
                    shutil.rmtree(left.parent, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, ignore_cleanup_errors=True) as folder,
        (Path(folder) / f"{DRIVER}.new").open("xb") as file,
    ):
        lock_file(file.fileno())
        os.replace(file.name, Path(folder) / DRIVER)  # seen by others once it is locked
        yield folder
