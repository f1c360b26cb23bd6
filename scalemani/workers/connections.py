"""Ways to a Dask cluster: local processes that are kept alive, and the address of one that is there."""

import contextlib
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import dask
from distributed import Client, LocalCluster, default_client
from distributed.core import Status
from distributed.deploy import Cluster
from distributed.security import Security

from scalemani.errors import ConfigError, SchedulerLostError, StoreError, WorkersLostError
from scalemani.store.locks import lock_file
from scalemani.store.run_store import RunStore
from scalemani.workers.budget import Budget
from scalemani.workers.dask_calls import run_on_workers
from scalemani.workers.tls import certificate_paths

CURRENT = "distributed"  # Dask's word for the client that a process has made last
CONNECT_SECONDS = 30
CLOSE_SECONDS = 5
STOP_SECONDS = 30  # of processes that were started here, which end with this one in any case
POLL_SECONDS = 1.0
REACH_SECONDS = 60.0
ANSWER_SECONDS = 150.0  # of workers that ask a store again for as long as runs do
WORKERS_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"  # what Dask's settings call it
BESIDE_IT = ("PYTHONHASHSEED", "__DASK_PARENT_PID")  # what Dask sets on top of it
# The driver counts attempts and waits for workers itself; Dask gives a worker up for good after 15 s by default.
SETTINGS = {
    "distributed.scheduler.allowed-failures": 1000,
    "distributed.scheduler.worker-ttl": "60 s",
    "distributed.deploy.lost-worker-timeout": "1 hour",
    "distributed.worker.daemon": True,
    # The driver fits tasks to what a worker may take, and none leaves a result there. At 80 % of that Dask pauses a
    # worker until it takes less, which one whose libraries and tables take as much never does.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    f"{WORKERS_ENVIRONMENT}.PYTHONSAFEPATH": "1",  # files of the working folder are no modules
}
# Metrics and health; not Dask's proxy to other hosts, nor pages that show code and data.
ROUTES = {
    "distributed.scheduler.http.routes": ["distributed.http.scheduler.prometheus", "distributed.http.health"],
    "distributed.worker.http.routes": ["distributed.http.worker.prometheus", "distributed.http.health"],
}
SCRATCH = "temporary-directory"  # of the workers, in Dask's words
SCRATCH_PREFIX = "scalemani-"
DRIVER = "driver"  # a file in a scratch folder, locked while the process lives that made it


def client_of(scheduler: object) -> object:
    """Return the client of a cluster of Dask's, or the current one of this process; anything else as it is.

    Raises
    ------
    ConfigError
        Where the current client is asked for and there is none.
    """
    if isinstance(scheduler, Cluster):
        return scheduler.get_client()
    if scheduler != CURRENT:
        return scheduler
    try:
        return default_client()
    except ValueError as error:
        raise ConfigError(
            f"scheduler {CURRENT!r} is Dask's current client, and there is none: make a Client"
        ) from error


def check_address(address: object) -> None:
    """Refuse a scheduler that is no address, without repeating a password that may be in it."""
    scheme, separator, rest = address.partition("://") if isinstance(address, str) else ("", "", "")
    if scheme not in ("tcp", "tls") or not separator or ":" not in rest or "@" in rest:
        shown = repr(address) if "@" not in str(address) else "one with a user or password"
        raise ConfigError(
            "scheduler must be threads, processes, a Dask client or cluster, distributed (the current client), or an "
            f"address such as tcp://host:8786, without a password; got {shown}"
        )


@contextlib.contextmanager
def local_processes(count: int) -> Iterator[tuple[Client, Callable[[], None]]]:
    """Start worker processes of one thread on this machine; yield a client, and what brings lost ones back."""
    if multiprocessing.current_process().daemon:
        raise ConfigError(
            "scheduler='processes' cannot start processes from a daemonic one, such as a worker of a multiprocessing "
            "pool: use threads"
        )
    # A folder of one's own: Dask's lies under a name that anybody can foresee, and make a link, where all may write.
    sweep_scratch()
    scratch = tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, ignore_cleanup_errors=True)
    with (
        scratch as folder,
        owned(Path(folder)),
        quiet(),
        without_main(),
        dask.config.set({**SETTINGS, **ROUTES, SCRATCH: folder}),
        same_environment(),
    ):
        cluster = LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # of metrics; without, it is port 8787
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
        try:
            with Client(cluster) as client:
                populate(cluster, client, count)
                yield client, lambda: restore(cluster, count)
        finally:
            with contextlib.suppress(TimeoutError):
                cluster.close(timeout=STOP_SECONDS)


@contextlib.contextmanager
def owned(scratch: Path) -> Iterator[None]:
    """Hold a lock in a scratch folder, which goes with this process however that ends."""
    with (scratch / f"{DRIVER}.new").open("xb") as file:
        lock_file(file.fileno())
        os.replace(file.name, scratch / DRIVER)  # seen by others once it is locked
        yield


def sweep_scratch() -> None:
    """Remove the scratch of processes of this user that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*/{DRIVER}"):
        with contextlib.suppress(OSError):
            if left.parent.is_symlink() or left.parent.stat().st_uid != os.getuid():
                continue
            with left.open("rb") as file:
                lock_file(file.fileno())
                shutil.rmtree(left.parent, ignore_errors=True)


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


def populate(cluster: LocalCluster, client: Client, count: int) -> None:
    """Start the workers of a cluster that has none, and wait for them; one that is lost on the way is started anew."""
    end = time.monotonic() + REACH_SECONDS
    while time.monotonic() < end:
        restore(cluster, count)
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(count, timeout=POLL_SECONDS)
            return
    if not client.nthreads():
        raise WorkersLostError(f"no worker process has started within {REACH_SECONDS:.0f} s: use --scheduler threads")


def restore(cluster: LocalCluster, count: int) -> None:
    """Start workers anew whose nanny, which starts them again when they die, has ended itself."""
    ended = (Status.closed, Status.failed)
    lost = [name for name, nanny in list(cluster.workers.items()) if nanny.status in ended]
    for name in lost:
        cluster.workers.pop(name, None)
    if lost or len(cluster.worker_spec) < count:
        cluster.scale(count)


@contextlib.contextmanager
def connected(address: str, tls: str | None) -> Iterator[Client]:
    """Connect to the scheduler at an address; with certificates where it is tls://."""
    if tls is not None and not address.startswith("tls://"):
        raise ConfigError("certificates go with an address such as tls://host:8786: give that, or no --tls")
    with quiet():
        try:
            client = Client(address, timeout=CONNECT_SECONDS, security=None if tls is None else security(tls))
        except (OSError, TimeoutError) as error:
            both = " and that both sides have certificates of one authority" if address.startswith("tls://") else ""
            raise SchedulerLostError(
                f"no scheduler answers at {address}: check the address, that it runs{both}"
            ) from error
        except (TypeError, ValueError) as error:  # tls:// without any certificate
            raise ConfigError(f"cannot connect to {address}: {error}; give the certificates with --tls") from error
        try:
            yield client
        finally:
            client.close(timeout=CLOSE_SECONDS)


def security(folder: str | Path) -> Security:
    """Return the certificates in a folder made by `scalemani tls`."""
    return Security(require_encryption=True, **certificate_paths(folder))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Dask's own accounts of lost workers and connections from standard error: the driver says what counts."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "distributed.nanny")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def capacities(client: Client) -> list[Budget]:
    """Return the threads and the bytes (None: no limit) of every worker; wait for the first one."""
    knocking = client.submit(os.getpid, pure=False)  # clusters that adapt start workers where there is something to do
    try:
        client.wait_for_workers(1, timeout=REACH_SECONDS)
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
    except TimeoutError as error:
        raise WorkersLostError(
            f"the cluster has had no worker for {REACH_SECONDS:.0f} s: start workers and run the same command again"
        ) from error
    except OSError as error:
        raise SchedulerLostError("the scheduler does not answer: start one and run the same command again") from error
    finally:
        knocking.release()
    return [Budget(worker["nthreads"], worker["memory_limit"] or None) for worker in workers]


def check_reach(client: Client, root: str | Path) -> None:
    """Refuse a cluster with a worker that does not see the store, or does not have this library."""
    try:
        answers = run_on_workers(client, open_on_worker, str(root), seconds=ANSWER_SECONDS)
    except (OSError, TimeoutError) as error:
        raise SchedulerLostError("the cluster does not answer: start one and run the same command again") from error
    for worker, answer in answers.items():
        if isinstance(answer, Exception) and not isinstance(answer, OSError):
            raise StoreError(
                f"worker {worker} cannot work on {root}: {type(answer).__name__}: {answer}; it needs scalemani, and a "
                "store that it reaches: a folder shared with this machine, or s3:// with credentials of its own"
            ) from answer


def open_on_worker(root: str) -> None:
    """Open a run on a worker."""
    RunStore.open(root)
