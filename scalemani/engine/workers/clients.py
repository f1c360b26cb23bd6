"""Clients of Dask clusters: one that is passed, one at an address, processes that are started on this machine."""

import contextlib
import logging
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, cast

import dask
from distributed import Client, LocalCluster, default_client
from distributed.deploy import Cluster
from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin
from distributed.security import Security
from distributed.utils import silence_logging_cmgr

from scalemani.config.limits import CLUSTER_TIMEOUTS
from scalemani.engine.memory_model import Budget
from scalemani.errors import ConfigError, SchedulerLostError, StoreError, WorkersLostError, installing
from scalemani.store.locks import lock_file
from scalemani.store.run_store import RunStore

CURRENT = "distributed"  # Dask's word for the client that a process has made last
ADDRESS = re.compile("(tcp|tls)://[^@]*:[^@]*")
HOST_AND_PORT = re.compile(r"[\w.-]+:\d{1,5}")
RESOURCE = "bytes"  # `dask worker --resources bytes=60e9`: memory that Dask itself divides among tasks
UNLIMITED = 2**62  # bytes of a worker without a limit
DECLARED: "weakref.WeakSet[Client]" = weakref.WeakSet()  # clients of clusters whose workers' memory is declared
ROLES = ("client", "scheduler", "worker")
CLOSE_SECONDS = 5
REACH_SECONDS = 60.0
LEAST_WAIT = 0.1  # seconds
CERTIFICATE_FILES = {"tls_ca_file": "ca.pem", "tls_client_cert": "certificate.pem", "tls_client_key": "key.pem"}
# The package cryptography would be 15 MB of every installation; this command is on nearly every machine.
SELF_SIGNED = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "-", "-out", "-", "-batch"]
SELF_SIGNED += ["-subj", "/CN=scalemani", "-days", "365"]
START_ATTEMPTS = 4
STOP_SECONDS = 30  # of processes that were started here, which end with this one in any case
SCRATCH_PREFIX = "scalemani-"
DRIVER = "driver"  # a file in a scratch folder, locked while the process lives that made it
PRE_SPAWN = "distributed.nanny.pre-spawn-environ"
SET_BY_NANNY = ("PYTHONHASHSEED", "__DASK_PARENT_PID")  # by Dask, next to those of PRE_SPAWN
SETTINGS = {
    "distributed.worker.multiprocessing-method": "spawn",
    "distributed.scheduler.worker-ttl": "60 s",
    "distributed.deploy.lost-worker-timeout": "1 hour",  # Dask gives a worker up for good after 15 s by default
    f"{PRE_SPAWN}.PYTHONSAFEPATH": "1",  # files of the working folder are no modules
    # Metrics and health; not Dask's proxy to other hosts, nor pages that show code and data.
    "distributed.scheduler.http.routes": ["distributed.http.scheduler.prometheus", "distributed.http.health"],
    "distributed.worker.http.routes": ["distributed.http.worker.prometheus", "distributed.http.health"],
}


def client_of(scheduler: Any) -> Any:
    """Return the client of a cluster of Dask's, or the current one of this process; anything else as it is.

    Raises ConfigError for what is no scheduler, without repeating a password that may be in an address.
    """
    if isinstance(scheduler, Cluster):
        refuse_closed(scheduler)
        return scheduler.get_client()
    if scheduler == CURRENT:
        try:
            scheduler = default_client()
        except ValueError as error:
            raise ConfigError(
                f"scheduler {CURRENT!r} is Dask's current client, and there is none: make a Client"
            ) from error
    if not (isinstance(scheduler, Client) or ADDRESS.fullmatch(str(scheduler))):
        shown = repr(scheduler) if "@" not in str(scheduler) else "one with a user or password"
        meant = f": did you mean tcp://{scheduler}?" if HOST_AND_PORT.fullmatch(str(scheduler)) else ""
        raise ConfigError(
            "scheduler must be threads, processes, a Dask client or cluster, distributed (the current client), or an "
            f"address such as tcp://host:8786, without a password; got {shown}{meant}"
        )
    if isinstance(scheduler, Client):
        refuse_closed(scheduler)
    return scheduler


def refuse_closed(cluster: Client | Cluster) -> None:
    """Refuse a client or cluster of Dask's that was closed, or that answers by coroutines."""
    kind = "client" if isinstance(cluster, Client) else "cluster"
    if cluster.asynchronous:
        raise ConfigError(
            f"the Dask {kind} is asynchronous, whose answers only a coroutine gets: make one without that"
        )
    if getattr(cluster.status, "name", cluster.status) in ("closing", "closed", "failed"):
        raise ConfigError(f"the Dask {kind} was closed: make another one")


@contextlib.contextmanager
def connected(address: str, tls: str | None, seconds: float = CLUSTER_TIMEOUTS.connect) -> Iterator[Client]:
    """Connect to the scheduler at an address within some seconds; with certificates where it is tls://."""
    if tls is not None and not address.startswith("tls://"):
        raise ConfigError("certificates go with an address such as tls://host:8786: give that, or no --tls")
    with silence_logging_cmgr(logging.CRITICAL):  # of lost connections: the driver says what counts
        try:
            certificates = None if tls is None else security(tls)
            client = Client(address, timeout=seconds, security=certificates)
        except (OSError, TimeoutError) as error:
            both = " and that both sides have certificates of one authority" if address.startswith("tls://") else ""
            raise SchedulerLostError(
                f"no scheduler answers at {address}: check the address, that it runs{both}"
            ) from error
        except (TypeError, ValueError, AssertionError) as error:
            if tls is None and address.startswith("tls://"):  # which error Dask raises then depends on timing
                raise ConfigError(
                    f"cannot connect to {address} without certificates: give their folder with --tls"
                ) from error
            raise ConfigError(f"cannot connect to {address}: {error}; check the address") from error
        try:
            yield client
        finally:
            client.close(timeout=CLOSE_SECONDS)


def security(folder: str | Path) -> Security:
    """Return the certificates in a folder; refuse a key that others can read."""
    files = {role: Path(folder) / name for role, name in CERTIFICATE_FILES.items()}
    missing = [str(path) for path in files.values() if not path.is_file()]
    if missing:
        raise ConfigError(
            f"no {', '.join(missing)}: --tls takes the folder of a cluster's {', '.join(CERTIFICATE_FILES.values())}"
        )
    if files["tls_client_key"].stat().st_mode & 0o077:
        raise ConfigError(f"{files['tls_client_key']} can be read by others: chmod 600 it")
    return Security(require_encryption=True, **{role: str(path) for role, path in files.items()})


def temporary_security() -> Security:
    """Return certificates of one cluster that are in memory alone: who does not have them cannot connect.

    Another user of this machine can connect to its loopback interface.
    """
    with contextlib.suppress(ImportError):  # without the package cryptography
        return Security.temporary()
    try:
        both = subprocess.run(SELF_SIGNED, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(
            "scheduler='processes' makes certificates, so that no other user of this machine runs code through it: "
            f"install the command openssl or the package cryptography ({installing('tls')}), or use threads"
        ) from error
    parts = {f"tls_{role}_{part}": both for role in ROLES for part in ("cert", "key")}
    return Security(require_encryption=True, tls_ca_file=both, **parts)


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
        cluster = local_cluster(count, security)
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


def local_cluster(count: int, security: Security, attempts: int = START_ATTEMPTS) -> LocalCluster:
    """Start a scheduler and workers of one thread; again where one ends as it starts, for which Dask gives up all."""
    try:
        return LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # of metrics; without, it is port 8787
            memory_limit=0,
            silence_logs=logging.CRITICAL,
            security=security,
        )
    except RuntimeError as error:
        if attempts > 1:
            return local_cluster(count, security, attempts - 1)
        raise WorkersLostError(
            f"{count} worker processes did not start, {START_ATTEMPTS} times: free memory for them, give fewer "
            "--workers, or use threads, and run the same command again"
        ) from error


@contextlib.contextmanager
def same_process() -> Iterator[None]:
    """Keep new processes from running the user's script again, and give this one back what Dask sets in it for them.

    multiprocessing has every new process import the main script, which starts the run over unless it is guarded by
    `if __name__ == "__main__"`. It leaves out a main module that was started by that very name; tasks need nothing of
    it.
    """
    main, names = sys.modules["__main__"], {*SET_BY_NANNY, *dask.config.get(PRE_SPAWN)}
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

    That of Dask lies where all may write, under a name that anybody can foresee and make a link.
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
        with contextlib.suppress(OSError):  # on a disk without locks nothing that is left is removed either
            lock_file(file.fileno())
        os.replace(file.name, Path(folder) / DRIVER)  # seen by others once it is locked
        yield folder


def capacities(client: Client) -> list[Budget]:
    """Return the threads and the bytes (None: no limit) of every worker; wait for the first one."""
    knocking = client.submit(os.getpid, pure=False)  # clusters that adapt start workers where there is something to do
    workers: dict[str, Any] = {}
    end = time.monotonic() + REACH_SECONDS
    try:
        while not workers:  # one that was there may be lost before it is looked at
            wait_for_worker(client, max(end - time.monotonic(), LEAST_WAIT))
            workers = described_workers(client)
    except OSError as error:
        raise SchedulerLostError("the scheduler does not answer: start one and run the same command again") from error
    finally:
        knocking.release()
    return [budget_of(worker) for worker in workers.values()]


def wait_for_worker(client: Client, seconds: float) -> None:
    """Wait until there is a worker; raise WorkersLostError where there is none for so long."""
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        raise WorkersLostError(
            f"the cluster has had no worker for {REACH_SECONDS:.0f} s: start workers and run the same command again"
        ) from error


def described_workers(client: Client, seconds: float = CLUSTER_TIMEOUTS.answer) -> dict[str, Any]:
    """Return what the scheduler says of each worker now; `scheduler_info` may return an earlier, periodic answer."""
    scheduler = cast("Any", client.scheduler)
    workers: dict[str, Any] = client.sync(scheduler.identity, n_workers=-1, callback_timeout=seconds)["workers"]
    return workers


def budget_of(worker: dict[str, Any]) -> Budget:
    """Return the threads of a worker as its scheduler describes it, and the bytes that it declares or is limited to."""
    memory = worker.get("resources", {}).get(RESOURCE) or worker["memory_limit"]
    return Budget(worker["nthreads"], int(memory) if memory and memory < UNLIMITED else None)


def declare_memory(client: Client) -> None:
    """Have Dask divide the memory of all workers of a cluster among tasks, of those that come later too."""
    if client not in DECLARED:
        of_workers, of_scheduler = memory_plugins(RESOURCE, UNLIMITED)
        client.register_plugin(of_workers)
        client.register_plugin(of_scheduler)
        DECLARED.add(client)


def memory_plugins(resource: str, unlimited: int) -> tuple[WorkerPlugin, SchedulerPlugin]:
    """Return what declares the memory of workers that do not declare it themselves, to each and to their scheduler.

    The scheduler has to know it before a worker is there: tasks that wait for a resource are looked at when a worker
    comes, and not again. The classes are local, so that they travel whole: a scheduler may not have this library.
    """

    class MemoryOfWorker(WorkerPlugin):
        name, idempotent = f"{resource}-of-worker", True

        def setup(self, worker: Any) -> None:
            limit = worker.memory_manager.memory_limit or unlimited
            if resource not in worker.state.total_resources:
                worker.state.total_resources[resource] = worker.state.available_resources[resource] = limit

    class MemoryOfWorkers(SchedulerPlugin):
        name, idempotent = f"{resource}-of-workers", True

        async def start(self, scheduler: Any) -> None:
            for worker in list(scheduler.workers):
                self.add_worker(scheduler, worker)

        def add_worker(self, scheduler: Any, worker: str) -> None:
            if resource not in scheduler.workers[worker].resources:
                scheduler.add_resources(worker, {resource: scheduler.workers[worker].memory_limit or unlimited})

    return MemoryOfWorker(), MemoryOfWorkers()


def check_reach(client: Client, root: str | Path) -> None:
    """Refuse a cluster with a worker that does not see the store, or does not have this library."""
    try:
        answers = client.run(open_on_worker, str(root), on_error="return")
    except OSError as error:
        raise SchedulerLostError("the cluster does not answer: start one and run the same command again") from error
    for worker, answer in answers.items():
        if isinstance(answer, Exception) and not isinstance(answer, OSError):
            raise StoreError(
                f"worker {worker} cannot work on {root}: {type(answer).__name__}: {answer}; it needs scalemani, and a "
                "store that it reaches: a folder shared with this machine, or s3:// with its credentials"
            ) from answer


def all_see(client: Client, file: Path) -> bool:
    """Return whether every worker sees a file of the size and age that it has here."""
    with contextlib.suppress(OSError):  # without a scheduler, tasks end in an error that says so
        answers = client.run(size_and_age, file, on_error="return").values()
        return bool(answers) and all(answer == size_and_age(file) for answer in answers)
    return False


def size_and_age(file: Path) -> tuple[int, int] | None:
    """Return the bytes of a file and when it was changed, in nanoseconds; None where it cannot be read."""
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def open_on_worker(root: str) -> None:
    """Open a run on a worker."""
    RunStore.open(root)
