"""Runs one task a block: on local threads, on local processes, or on a Dask cluster; the tasks do not know which."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dask.delayed import Delayed
from dask.system import cpu_count
from dask.utils import format_bytes, parse_bytes
from distributed import Client
from distributed.system import memory_limit

from scalemani.errors import ConfigError
from scalemani.kernels.arrays.threads import threads
from scalemani.progress import Progress, Silent
from scalemani.workers.blas import BLAS
from scalemani.workers.budget import Batch, Budget
from scalemani.workers.connections import (
    capacities,
    check_address,
    check_reach,
    client_of,
    connected,
)
from scalemani.workers.driver import ClusterMap
from scalemani.workers.folds import OrderedFold
from scalemani.workers.lazy_values import compute_on_cluster, compute_on_threads
from scalemani.workers.local.processes import local_processes

LEAST_MEMORY = 2**20  # bytes: a number without a unit below it was meant in another one
LEDGER_VARIABLE = "SCALEMANI_LEDGER"
ANY_BATCH = Batch()


@dataclass
class Executor:
    """Numbers that change the cost and never the answer: where tasks run, how many at once, in how much memory.

    `workers` are threads, or local processes of one thread, by default as many as the processors that this process may
    use; with the address of a cluster, which has workers of its own, the threads of what the driver computes itself.
    `memory` is the budget of threads, or of all local processes; None is all that the machine, or the control group of
    this process, has. Workers of a cluster have limits of their own. `tls` is a folder made by `scalemani tls`; `wait`
    are the seconds to wait for a run that another command works on. `keep` leaves in the store what a stage reads no
    more: the rounds of the search for neighbours before the last.
    """

    scheduler: Any = None
    workers: int = field(default_factory=cpu_count)
    memory: int | None = None
    progress: Progress = field(default_factory=Silent)
    tls: str | None = None
    wait: float = 0.0
    keep: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.workers, bool) or not isinstance(self.workers, int) or self.workers < 1:
            raise ConfigError(f"workers must be an integer >= 1, got {self.workers!r}")
        self.scheduler = client_of(self.scheduler)
        if not isinstance(self.scheduler, Client) and self.scheduler not in (None, "threads", "processes"):
            check_address(self.scheduler)
        if self.memory is not None and (isinstance(self.memory, bool) or not isinstance(self.memory, int)):
            raise ConfigError(f"memory must be a whole number of bytes, got {self.memory!r}")
        if self.memory is not None and self.memory <= 0:
            raise ConfigError(f"memory must be above zero, such as 4GB, got {format_bytes(self.memory)}")
        if isinstance(self.wait, bool) or not isinstance(self.wait, int | float) or not self.wait >= 0:
            raise ConfigError(f"wait must be seconds, zero or more, got {self.wait!r}")
        self._lock = threading.Lock()
        self._client: Client | None = self.scheduler if isinstance(self.scheduler, Client) else None
        self._restore: Callable[[], None] = do_nothing

    @classmethod
    def asked_for(
        cls, scheduler: Any, workers: int | None, memory: str | int | None, progress: Progress, **others: Any
    ) -> "Executor":
        """Return the executor that a user asks for.

        Parameters
        ----------
        scheduler : where tasks run, as of `Executor`
        workers : threads or processes; None: as many as there are processors
        memory : such as "4GB", or bytes; None: all that there is
        progress : who is told
        others : fields of `Executor`

        Raises
        ------
        ConfigError
            For what none of them can be.
        """
        given = others if workers is None else {**others, "workers": workers}
        return cls(scheduler, memory=None if memory is None else bytes_of(memory), progress=progress, **given)

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Start what the tasks need, and stop it at the end: BLAS at one thread, a local cluster if asked for."""
        with BLAS.hold_at_one(), contextlib.ExitStack() as stack:
            if self.scheduler == "processes":
                self._client, self._restore = stack.enter_context(local_processes(self.workers))
            elif isinstance(self.scheduler, str) and self.scheduler != "threads":
                self._client = stack.enter_context(connected(self.scheduler, self.tls))
            try:
                yield
            finally:
                if not isinstance(self.scheduler, Client):
                    self._client = None

    @property
    def processes(self) -> list[Budget]:
        """The threads and the bytes (None: no limit) of every process that runs tasks."""
        memory = memory_limit() if self.memory is None else self.memory
        if self.scheduler == "processes":
            share = memory // (self.workers + 1)  # the driver has one as well
            return [Budget(1, share)] * self.workers
        if self._client is None:
            return [Budget(self.workers, memory)]
        return capacities(self._client)

    @property
    def on_cluster(self) -> bool:
        """Whether tasks run on the workers of a cluster that was given: they have memory of their own."""
        return self.scheduler not in (None, "threads", "processes")

    def check_reach(self, root: str | Path) -> None:
        """Refuse a cluster whose workers do not see the store."""
        if self._client is not None and self.scheduler != "processes":
            check_reach(self._client, root)

    def each(self, function: Callable[[Any], None], units: Sequence[Any], at_once: int, batch: Batch) -> None:
        """Have function(unit) of every unit done, which writes what it computes into the store and returns nothing.

        Parameters
        ----------
        function : of a unit
        units : blocks, or runs of blocks
        at_once : tasks that run at the same moment on threads; a cluster runs as many as its workers have room for
        batch : what the tasks need, and the cache they share
        """
        if self._client is not None:
            ClusterMap(self._client, function, units, batch, self._advance, self._restore).run()
        else:
            self._map_threads(function, units, min(at_once, self.workers))

    def fold(
        self,
        function: Callable[[Any], Any],
        combine: Callable[[Any, Any], Any],
        units: Sequence[Any],
        at_once: int | None = None,
        batch: Batch = ANY_BATCH,
    ) -> Any:
        """Return function(unit) of all units, combined in the order of the units: few parts are held.

        Parameters
        ----------
        function : of a unit
        combine : two parts to one
        units : blocks, or runs of blocks
        at_once : as of `each`; None: as many as there are workers
        batch : as of `each`
        """
        total = OrderedFold(combine)
        if self._client is not None:
            ClusterMap(self._client, function, units, batch, self._advance, self._restore, total.add).run()
        else:
            numbered, add = list(enumerate(units)), lambda pair: total.add(pair[0], function(pair[1]))
            self._map_threads(add, numbered, min(at_once or self.workers, self.workers))
        return total.total

    def fold_locally(
        self,
        function: Callable[[Any], Any],
        combine: Callable[[Any, Any], Any],
        units: Sequence[Any],
        sequential: bool = False,
    ) -> Any:
        """Do what `fold` does, in this process.

        Parameters
        ----------
        function, combine, units : as of `fold`
        sequential : does the units in their order, one by one
        """
        total = OrderedFold(combine)
        self.map_locally(lambda pair: total.add(pair[0], function(pair[1])), list(enumerate(units)), sequential)
        return total.total

    def map_locally(self, function: Callable[[Any], Any], units: Sequence[Any], sequential: bool = False) -> list[Any]:
        """Return function(unit) of every unit, for what only this process holds; in their order if `sequential`."""
        if sequential:
            return [self._counted(function, unit) for unit in units]
        return self._map_threads(function, units, self.workers)

    def shares_scheduler(self, client: Client) -> bool:
        """Return whether the tasks run on the cluster of a client."""
        ours, its = (getattr(one and one.scheduler, "address", None) for one in (self._client, client))
        return ours is not None and ours == its

    def compute(self, values: Sequence[Delayed], at_once: int, stage: str, holder: Client | None = None) -> None:
        """Compute lazy values of Dask, whose results are small, where tasks run.

        Parameters
        ----------
        values : what is computed, in one go
        at_once : how many at the same moment on threads; the scheduler of a cluster decides itself
        stage : for messages
        holder : the client of the same cluster that holds what the values are made from; None where none does
        """
        if self._client is None:
            compute_on_threads(values, max(1, min(at_once, self.workers)), self._advance)
        else:
            compute_on_cluster(holder or self._client, values, stage, self._advance, self._restore)

    def over(self, function: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        """As the builtin `map`, on this process's threads: for steps too small to be shown."""
        if len(units) == 1:
            return [function(units[0])]
        with threads(self.workers) as side_by_side:
            return side_by_side.over(function, units)

    def _advance(self) -> None:
        with self._lock:
            self.progress.advance()

    def _counted(self, function: Callable[[Any], Any], unit: Any) -> Any:
        result = function(unit)
        self._advance()
        return result

    def _map_threads(self, function: Callable[[Any], Any], units: Sequence[Any], at_once: int) -> list[Any]:
        if len(units) == 1:  # a thread would be started and waited for
            return [self._counted(function, units[0])]
        failed = threading.Event()

        def unless_failed(unit: Any) -> Any:
            if failed.is_set():  # a main thread that waits for a processor cancels too late
                return None
            try:
                return self._counted(function, unit)
            except BaseException:
                failed.set()
                raise

        # Threads of its own: those that a library keeps for all calls are not there in a process that was forked.
        with ThreadPoolExecutor(max(at_once, 1)) as pool:
            tasks = [pool.submit(unless_failed, unit) for unit in units]
            try:
                done, _ = wait(tasks, return_when=FIRST_EXCEPTION)
                return [task.result() for task in tasks if task in done]  # raises what ended the wait
            finally:
                for task in tasks:
                    task.cancel()


def bytes_of(size: str | int) -> int:
    """Return the bytes of a size such as "4GB" or 4 * 10**9, or raise ConfigError."""
    refusal = ConfigError(f"memory takes a size such as 4GB or a number of bytes, got {size!r}")
    # A unit alone is one of it to Dask, and no text at all one byte.
    if isinstance(size, bool) or not isinstance(size, str | int) or not any(map(str.isdigit, str(size))):
        raise refusal
    try:
        found = int(parse_bytes(size))
    except (ValueError, OverflowError) as error:
        raise refusal from error
    if isinstance(size, str) and size.strip().isdigit() and 0 < found < LEAST_MEMORY:
        raise ConfigError(f"memory {size} is {size} bytes: give a unit, such as {size}GB")
    return found


def do_nothing() -> None:
    """Do nothing: workers of a cluster that was not started here are its own concern."""


@contextlib.contextmanager
def write_ledger(stage: str, unit: str, suffix: str = "") -> Iterator[None]:
    """Append a line to the ledger of finished units, where the environment names one: process, begin and seconds.

    What is not stored, and is done anew when a run goes on, has a ledger of its own, which a suffix tells.
    """
    started = time.time()
    yield
    path = os.environ.get(LEDGER_VARIABLE)
    if path:
        descriptor = os.open(path + suffix, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            seconds = time.time() - started
            os.write(descriptor, f"{stage} {unit} {os.getpid()}:{started:.3f}:{seconds:.3f}\n".encode())
        finally:
            os.close(descriptor)
