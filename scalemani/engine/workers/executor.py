"""Runs graphs of tasks: on local threads, on local processes, or on a Dask cluster; the tasks do not know which."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import dask.threaded
from dask.delayed import Delayed
from dask.utils import parse_bytes

from scalemani.config.limits import CLUSTER_TIMEOUTS, ClusterTimeouts
from scalemani.config.units import format_bytes
from scalemani.engine.checkpoints import CHECKPOINT_SECONDS
from scalemani.engine.graph import Calls, Combine, Key, TaskGraph, UnitFunction
from scalemani.engine.memory.peak import memory_limit
from scalemani.engine.memory_model import Batch, Budget
from scalemani.engine.progress import Progress
from scalemani.engine.workers.blas import BLAS
from scalemani.errors import NO_PROCESS, NO_THREAD, ConfigError, ScalemaniError
from scalemani.io.sources import PointsSource
from scalemani.kernels.arrays.workspace import threads
from scalemani.kernels.machine.control_groups import usable_processors

if TYPE_CHECKING:  # 0.4 s, and threads take nothing of it
    from distributed import Client

LOCAL = (None, "threads", "processes")
LEAST_MEMORY = 2**20  # bytes: a number without a unit below it was meant in another one
ANY_BATCH = Batch()
HERE = "here"  # the name of tasks of what only this process holds


@dataclass
class Executor:
    """Numbers that change the cost and never the answer: where tasks run, how many at once, in how much memory.

    `workers` are threads, or local processes of one thread, by default as many as the processors that this process may
    use; with the address of a cluster, the threads of what the driver computes itself.
    `memory` is the budget of threads, or of all local processes; None is all that the machine, or the control group of
    this process, has. Workers of a cluster have separate limits. `tls` is a folder of certificates; `wait` are the
    seconds to wait for a run that another command works on. `keep` leaves in the store what a stage reads no more: the
    rounds of the search for neighbours before the last, and the degrees and pieces of `components`.
    `checkpoint_seconds` lie between checkpoints of a descent or a refinement; with 0 each iteration is saved.
    `timeouts` are those of a cluster.
    """

    scheduler: Any = None
    workers: int = field(default_factory=usable_processors)
    memory: int | None = None
    progress: Progress = field(default_factory=Progress)
    tls: str | None = None
    wait: float = 0.0
    keep: bool = False
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    timeouts: ClusterTimeouts = CLUSTER_TIMEOUTS

    def __post_init__(self) -> None:
        if isinstance(self.workers, bool) or not isinstance(self.workers, int) or self.workers < 1:
            raise ConfigError(f"workers must be an integer >= 1, got {self.workers!r}")
        if self.scheduler not in LOCAL:
            from scalemani.engine.workers.clients import client_of

            self.scheduler = client_of(self.scheduler)
        if isinstance(self.memory, bool) or not isinstance(self.memory, int | None):
            raise ConfigError(f"memory must be a whole number of bytes, got {self.memory!r}")
        if self.memory is not None and self.memory <= 0:
            raise ConfigError(f"memory must be above zero, such as 4GB, got {format_bytes(self.memory)}")
        if isinstance(self.wait, bool) or not isinstance(self.wait, int | float) or not self.wait >= 0:
            raise ConfigError(f"wait must be seconds, zero or more, got {self.wait!r}")
        self._lock = threading.Lock()
        self._client: Client | None = self._passed_client

    @classmethod
    def from_options(
        cls, scheduler: Any, workers: int | None, memory: str | int | None, progress: Progress, **others: Any
    ) -> "Executor":
        """Return the executor of a user's options; `memory` is such as "4GB", None is the default of each.

        Raises ConfigError for what none of them can be.
        """
        options = others if workers is None else {**others, "workers": workers}
        return cls(scheduler, memory=None if memory is None else bytes_of(memory), progress=progress, **options)

    @property
    def _passed_client(self) -> "Client | None":
        return None if isinstance(self.scheduler, str | None) else self.scheduler

    @contextlib.contextmanager
    def started(self) -> Iterator[None]:
        """Start what the tasks need, and stop it at the end: BLAS at one thread, a local cluster if requested."""
        with BLAS.hold_at_one(), contextlib.ExitStack() as stack:
            if not self.on_threads and self._passed_client is None:
                from scalemani.engine.workers.clients import connected, local_processes

                local = self.scheduler == "processes"
                client = (
                    local_processes(self.workers)
                    if local
                    else connected(self.scheduler, self.tls, self.timeouts.connect)
                )
                self._client = stack.enter_context(client)
            try:
                yield
            except RuntimeError as error:
                if NO_THREAD in str(error) and not isinstance(error, ScalemaniError):
                    raise ScalemaniError(NO_PROCESS) from error
                raise
            finally:
                self._client = self._passed_client

    @property
    def driver_memory(self) -> int:
        """The bytes that this process may use: the budget, or its share where local processes have the others."""
        memory = self.memory
        if memory is None:
            memory = memory_limit()
        return memory // (self.workers + 1) if self.scheduler == "processes" else memory

    @property
    def least_memory(self) -> int | None:
        """The smallest budget of a process that runs tasks; None where none has a limit."""
        return min((budget.memory for budget in self.processes if budget.memory), default=None)

    @property
    def processes(self) -> list[Budget]:
        """The threads and the bytes (None: no limit) of every process that runs tasks."""
        if self.scheduler == "processes":
            return [Budget(1, self.driver_memory)] * self.workers
        if self._client is None:
            return [Budget(self.workers, self.driver_memory)]
        from scalemani.engine.workers.clients import capacities

        return capacities(self._client)

    @property
    def on_threads(self) -> bool:
        """Whether tasks run on threads of this process."""
        return self.scheduler in (None, "threads")

    @property
    def on_cluster(self) -> bool:
        """Whether tasks run on the workers of a cluster that was passed: their memory is separate."""
        return self.scheduler not in LOCAL

    def check_reach(self, root: str | Path) -> None:
        """Refuse a cluster whose workers do not see the store."""
        if self._client is not None and self.scheduler != "processes":
            from scalemani.engine.workers.clients import check_reach

            check_reach(self._client, root)

    def reads_on_workers(self, source: PointsSource) -> bool:
        """Return whether tasks read points: behind a URL, or from a file that all workers see as this process does."""
        file = source.file
        if source.remote or file is None or self.on_threads:
            return source.remote
        if self._client is None:  # of a plan: local processes are not started for it
            return True
        from scalemani.engine.workers.clients import all_see

        return all_see(self._client, file)

    def compute(
        self, graph: TaskGraph, targets: Sequence[Key], at_once: int | None = None, batch: Batch = ANY_BATCH
    ) -> list[Any]:
        """Return the results of some tasks of a graph, which Dask computes where tasks run.

        `at_once` is how many run side by side on threads; a cluster runs as many as its workers have room for.
        """
        return self._compute(self._client, graph, targets, at_once, batch)

    def compute_here(self, graph: TaskGraph, targets: Sequence[Key], at_once: int | None = None) -> list[Any]:
        """Do what `compute` does, on threads of this process: for what only this process holds."""
        calls = Calls(self._counted, lambda combine: functools.partial(combined, combine))
        packed, keys = graph.as_dask(calls), list(targets)
        if at_once == 1 or len(graph.unit_keys) <= 1:  # a thread would be started and waited for
            return list(dask.get(packed, keys))
        with self._pool(at_once) as pool:
            return list(dask.threaded.get(packed, keys, pool=pool))

    def fold(
        self,
        function: UnitFunction,
        combine: Combine,
        units: Sequence[Any],
        at_once: int | None = None,
        batch: Batch = ANY_BATCH,
    ) -> Any:
        """Return function(unit) of all units, combined in the order of the units; None without units."""
        graph = TaskGraph(batch.stage)
        root = graph.tree(combine, graph.units(function, units))
        return self.compute(graph, [root], at_once, batch)[0] if root else None

    def fold_here(
        self, function: UnitFunction, combine: Combine, units: Sequence[Any], sequential: bool = False
    ) -> Any:
        """Do what `fold` does, on threads of this process; one by one in their order if `sequential`."""
        graph = TaskGraph(HERE)
        root = graph.tree(combine, (graph.units_in_turn if sequential else graph.units)(function, units))
        return self.compute_here(graph, [root], 1 if sequential else None)[0] if root else None

    def map_here(
        self, function: UnitFunction, units: Sequence[Any], sequential: bool = False, at_once: int | None = None
    ) -> list[Any]:
        """Return function(unit) of every unit, for what only this process holds; in their order if `sequential`."""
        graph = TaskGraph(HERE)
        keys = (graph.units_in_turn if sequential else graph.units)(function, units)
        graph.all_of(keys)  # so that Dask computes near units one after the other
        return self.compute_here(graph, keys, 1 if sequential else at_once)

    def shares_scheduler(self, client: "Client") -> bool:
        """Return whether the tasks run on the cluster of a client."""
        ours, its = (getattr(one and one.scheduler, "address", None) for one in (self._client, client))
        return ours is not None and ours == its

    def compute_values(
        self, values: Sequence[Delayed], at_once: int, stage: str, holder: "Client | None" = None
    ) -> None:
        """Compute lazy values of Dask, whose results are nothing, where tasks run.

        `holder` is a client of the same cluster that holds what the values are made from, if any.
        """
        graph = TaskGraph(stage)
        done = graph.all_of(graph.units(as_it_is, values))
        client = self._client and (holder or self._client)
        self._compute(client, graph, [done] if done else [], at_once, Batch(stage))

    def over(self, function: UnitFunction, units: Sequence[Any]) -> list[Any]:
        """As the builtin `map`, on this process's threads: for steps too small to be shown."""
        if len(units) == 1:
            return [function(units[0])]
        with threads(self.workers) as side_by_side:
            return side_by_side.over(function, units)

    def _compute(
        self, client: "Client | None", graph: TaskGraph, targets: Sequence[Key], at_once: int | None, batch: Batch
    ) -> list[Any]:
        if client is None:
            return self.compute_here(graph, targets, at_once)
        from scalemani.engine.workers.cluster import Computation

        return Computation(client, graph, targets, batch, self._advance, self.on_cluster, self.timeouts).results()

    def _advance(self) -> None:
        with self._lock:
            self.progress.advance()

    def _counted(self, function: UnitFunction) -> Callable[..., Any]:
        def counted(unit: Any, *_: Any) -> Any:
            result = function(unit)
            self._advance()
            return result

        return counted

    def _pool(self, at_once: int | None) -> ThreadPoolExecutor:
        """Return threads of one call: where a task fails, none of the others still writes when they have ended.

        Those that Dask keeps for all calls are not there in a process that was forked.
        """
        return ThreadPoolExecutor(max(1, min(at_once or self.workers, self.workers)))


def combined(combine: Combine, *parts: Any) -> Any:
    """Return parts combined in their order."""
    return functools.reduce(combine, parts)


def as_it_is(value: Any) -> Any:
    """Return a value."""
    return value


def bytes_of(size: str | int) -> int:
    """Return the bytes of a size such as "4GB" or 4 * 10**9, or raise ConfigError."""
    refusal = ConfigError(f"memory takes a size such as 4GB or a number of bytes, got {size!r}")
    # A unit alone is one of it to Dask, and no text at all one byte.
    if isinstance(size, bool) or not isinstance(size, str | int) or not any(map(str.isdigit, str(size))):
        raise refusal
    try:
        n_bytes = int(parse_bytes(size))
    except (ValueError, OverflowError) as error:
        raise refusal from error
    if isinstance(size, str) and size.strip().isdigit() and 0 < n_bytes < LEAST_MEMORY:
        raise ConfigError(f"memory {size} is {size} bytes: give a unit, such as {size}GB")
    return n_bytes
