"""Runs one task a block: on local threads, on local processes, or on a Dask cluster; the tasks do not know which."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import dask
from dask.utils import format_bytes
from distributed import Client, LocalCluster, as_completed
from threadpoolctl import threadpool_limits

from scalemani.errors import ConfigError

TASKS_IN_FLIGHT_PER_THREAD = 2  # a finished task whose future is still held is run again when its worker dies
LEDGER_VARIABLE = "SCALEMANI_LEDGER"


class Progress(Protocol):
    """Told how far a stage has come."""

    def start(self, stage: str, total: int) -> None:
        """Note that a stage starts with `total` units to do."""

    def advance(self, done: int = 1) -> None:
        """Note that units were finished."""

    def note(self, message: str) -> None:
        """Show one line."""


class Silent:
    """Shows nothing."""

    def start(self, stage: str, total: int) -> None:
        """Do nothing."""

    def advance(self, done: int = 1) -> None:
        """Do nothing."""

    def note(self, message: str) -> None:
        """Do nothing."""


@dataclass
class Executor:
    """Numbers that change the cost and never the answer: where tasks run, how many at once, in how much memory."""

    scheduler: str | Client | None = None
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    memory: int | None = None
    progress: Progress = field(default_factory=Silent)

    def __post_init__(self) -> None:
        if isinstance(self.workers, bool) or not isinstance(self.workers, int) or self.workers < 1:
            raise ConfigError(f"workers must be an integer >= 1, got {self.workers!r}")
        if isinstance(self.scheduler, str) and self.scheduler not in ("threads", "processes"):
            scheme, separator, rest = self.scheduler.partition("://")
            if scheme not in ("tcp", "tls") or not separator or ":" not in rest or "@" in rest:
                raise ConfigError(
                    "scheduler must be threads, processes, or an address such as tcp://host:8786, without a password"
                )
        if self.memory is not None and self.memory <= 0:
            raise ConfigError(f"memory must be above zero, such as 4GB, got {format_bytes(self.memory)}")
        self._lock = threading.Lock()
        self._client: Client | None = self.scheduler if isinstance(self.scheduler, Client) else None

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Start what the tasks need, and stop it again: BLAS at one thread, a local cluster where one is asked for."""
        with threadpool_limits(1), contextlib.ExitStack() as stack:
            if self.scheduler == "processes":
                cluster = LocalCluster(
                    n_workers=self.workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address=None,
                    memory_limit=0,
                )
                self._client = stack.enter_context(Client(stack.enter_context(cluster)))
            elif isinstance(self.scheduler, str) and self.scheduler != "threads":
                self._client = stack.enter_context(Client(self.scheduler, timeout="30s"))
            yield
            if not isinstance(self.scheduler, Client):
                self._client = None

    @property
    def threads_at_once(self) -> int:
        """How many tasks run at the same moment."""
        return sum(self._client.nthreads().values()) if self._client else self.workers

    def map(self, function: Callable[[Any], Any], units: Sequence[Any], at_once: int | None = None) -> list[Any]:
        """Return function(unit) of every unit, in order; `at_once` bounds the tasks that run at the same moment.

        The function writes what it computes into the store and returns little.
        """
        at_once = min(at_once or self.threads_at_once, self.threads_at_once)
        if self._client is not None:
            return self._map_cluster(function, units, at_once)
        return self._map_threads(function, units, at_once)

    def map_locally(self, function: Callable[[Any], Any], units: Sequence[Any], sequential: bool = False) -> list[Any]:
        """As `map`, in this process: for what only this process holds. `sequential` keeps to the order of the units."""
        if sequential:
            return [self._counted(function, unit) for unit in units]
        return self._map_threads(function, units, self.workers)

    def over(self, function: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        """As the builtin `map`, on this process's threads: for steps too small to be shown."""
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(function, units))

    def _counted(self, function: Callable[[Any], Any], unit: Any) -> Any:
        result = function(unit)
        with self._lock:
            self.progress.advance()
        return result

    def _map_threads(self, function: Callable[[Any], Any], units: Sequence[Any], at_once: int) -> list[Any]:
        tasks = [dask.delayed(self._counted, pure=False, traverse=False)(function, unit) for unit in units]
        return list(dask.compute(*tasks, scheduler="threads", num_workers=at_once)) if tasks else []

    def _map_cluster(self, function: Callable[[Any], Any], units: Sequence[Any], at_once: int) -> list[Any]:
        assert self._client is not None
        results: dict[int, Any] = {}
        waiting = iter(enumerate(units))
        position: dict[Any, int] = {}

        def submit(count: int) -> Iterable[Any]:
            for _, (index, unit) in zip(range(count), waiting, strict=False):
                future = self._client.submit(pinned, function, unit, pure=False)  # type: ignore[union-attr]
                position[future.key] = index
                yield future

        running = as_completed(submit(at_once * TASKS_IN_FLIGHT_PER_THREAD))
        for future in running:
            results[position.pop(future.key)] = future.result()
            self.progress.advance()
            future.release()
            for following in submit(1):
                running.add(following)
        return [results[index] for index in range(len(units))]


def pinned(function: Callable[[Any], Any], unit: Any) -> Any:
    """Run a task on a worker with BLAS at one thread: products do not depend on the machine's cores."""
    with threadpool_limits(1):
        return function(unit)


def record(stage: str, unit: str) -> None:
    """Append a line to the ledger of finished units, where the environment names one."""
    path = os.environ.get(LEDGER_VARIABLE)
    if path:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{stage} {unit} {os.getpid()}\n".encode())
        finally:
            os.close(descriptor)
