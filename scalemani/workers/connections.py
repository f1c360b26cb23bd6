"""Ways to a Dask cluster that is there: its client, its address, what its workers are and reach."""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from distributed import Client, default_client
from distributed.deploy import Cluster
from distributed.security import Security
from tornado.ioloop import IOLoop

from scalemani.errors import ConfigError, SchedulerLostError, StoreError, WorkersLostError
from scalemani.store.run_store import RunStore
from scalemani.workers.budget import Budget
from scalemani.workers.dask_calls import run_on_workers
from scalemani.workers.tls import TEMPORARY_DAYS, certificate_paths, new_certificates, self_signed

CURRENT = "distributed"  # Dask's word for the client that a process has made last
ROLES = ("client", "scheduler", "worker")
CONNECT_SECONDS = 30
CLOSE_SECONDS = 5
LOOP_SECONDS = 10  # for a loop to end what it has begun
LOOP_THREAD = "scalemani-loop"
REACH_SECONDS = 60.0
ANSWER_SECONDS = 150.0  # of workers that ask a store again for as long as runs do
WORKERS_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"  # what Dask's settings call it
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
def connected(address: str, tls: str | None) -> Iterator[Client]:
    """Connect to the scheduler at an address; with certificates where it is tls://."""
    if tls is not None and not address.startswith("tls://"):
        raise ConfigError("certificates go with an address such as tls://host:8786: give that, or no --tls")
    with quiet(), running_loop() as loop:
        try:
            certificates = None if tls is None else security(tls)
            client = Client(address, timeout=CONNECT_SECONDS, security=certificates, loop=loop)
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


@contextlib.contextmanager
def running_loop() -> Iterator[IOLoop]:
    """Run an event loop in a thread of its own; yield it once it runs.

    Dask starts one for each client, and fails with an assertion where its thread has not begun within 10 s: a machine
    that is short of processors or memory takes longer.
    """
    started: Future[tuple[IOLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        ended = asyncio.Event()
        started.set_result((IOLoop.current(), ended))
        await ended.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run, name=LOOP_THREAD, daemon=True)
    thread.start()
    loop, ended = started.result()
    try:
        yield loop
    finally:
        loop.add_callback(ended.set)
        thread.join(LOOP_SECONDS)


def security(folder: str | Path) -> Security:
    """Return the certificates in a folder made by `scalemani tls`."""
    return Security(require_encryption=True, **certificate_paths(folder))


def temporary_security() -> Security:
    """Return certificates of one cluster that are in memory alone: who has not been given them cannot connect.

    Another user of this machine can connect to its loopback interface. Dask's `Security.temporary` takes the package
    cryptography and gives a certificate that is not valid a second earlier, should the clock be set back.

    Raises
    ------
    ConfigError
        Where neither the package cryptography nor the command openssl is there.
    """
    try:
        authority, member, key = (part.decode() for part in new_certificates(TEMPORARY_DAYS))
    except ConfigError:
        authority = member = key = self_signed()
    ends = {f"tls_{role}_cert": member for role in ROLES} | {f"tls_{role}_key": key for role in ROLES}
    return Security(require_encryption=True, tls_ca_file=authority, **ends)


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
