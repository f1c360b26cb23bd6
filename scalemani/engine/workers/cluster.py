"""A graph of tasks on a Dask cluster, as many at once as fit into the memory of the workers.

Dask orders, queues and balances tasks, divides the memory of workers among them, and runs those of lost workers again.
Where workers died each time, it gives a unit up with `KilledWorker`; another task of theirs may have ended them. Such a
unit runs once more alone, once those at work have ended, and is named where its workers die again.
"""

import contextlib
import functools
import pickle
import queue
import time
import uuid
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle
from dask.order import order
from distributed import Client, Future, KilledWorker

from scalemani.config.limits import CLUSTER_TIMEOUTS, ClusterTimeouts
from scalemani.engine.graph import Calls, Combine, Key, Task, TaskGraph, UnitFunction, suffixed
from scalemani.engine.memory.process import PROCESS
from scalemani.engine.memory_model import Batch, Memory
from scalemani.engine.workers.blas import BLAS
from scalemani.engine.workers.clients import RESOURCE, budget_of, declare_memory, described_workers
from scalemani.errors import PoisonTaskError, ScalemaniError, SchedulerLostError, WorkersLostError

MOST_ATTEMPTS = 4  # at a unit that fails with errors that may pass
SECONDS_BETWEEN = 0.5  # attempts
MOST_POISONED = 4  # units whose workers die when they run alone; more end the stage at once
MOST_ALONE = 16  # of them that run alone: those that Dask begins first, which were at work when their worker died
POLL_SECONDS = 1.0  # without a task that ends, until one looks at the workers
UNCALLED = Calls(lambda function: function, lambda combine: combine)  # of a graph that is looked at alone
RESUME = "run the same command again to resume"
LOST = f"the scheduler has not answered: start one again, and with its address {RESUME}"


@dataclass
class Computation:
    """A graph on its way through a cluster, of which some tasks are the `targets`.

    `advance` is called for each unit that is done. `limited` says whether tasks wait for the memory of their workers.
    """

    client: Client
    graph: TaskGraph
    targets: Sequence[Key]
    batch: Batch
    advance: Callable[[], None]
    limited: bool = True
    timeouts: ClusterTimeouts = CLUSTER_TIMEOUTS

    def __post_init__(self) -> None:
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._waiting: dict[Future, Key] = {}
        self._done: set[Key] = set()
        self._known: dict[Key, Any] = {}  # results of units that ran alone
        self._killed: dict[Key, KilledWorker] = {}  # what Dask has given up, once
        self._poisoned: dict[Key, PoisonTaskError] = {}  # of which the first is raised once all others are done
        self._able = time.monotonic()

    def results(self) -> list[Any]:
        """Return the results of the targets.

        Errors of the system may pass, and are raised after several attempts, others at once. Raises PoisonTaskError
        where a unit ends the workers that work on it, SchedulerLostError and WorkersLostError where there are none.
        """
        while True:
            try:
                results, killed = self._compute(self.graph, self.targets)
                if not killed and self._poisoned:
                    raise next(iter(self._poisoned.values()))
                if not killed:
                    return results
                self._try_alone(killed)
            except CancelledError:  # the connection to the scheduler was lost, and may be there again
                self._look()
                time.sleep(POLL_SECONDS)

    def _compute(self, graph: TaskGraph, targets: Sequence[Key]) -> tuple[list[Any], dict[Key, KilledWorker]]:
        """Have Dask compute a graph; return the results of targets, or the tasks that Dask abandoned."""
        self._await_scheduler()
        suffix = f"-{uuid.uuid4().hex[:8]}"
        keys = list(dict.fromkeys([*graph.unit_keys, *targets]))
        if not keys:
            return [], {}
        try:
            packed = graph.as_dask(self._calls(), suffix, self._known)
            futures = self.client.get(packed, [suffixed(key, suffix) for key in keys], sync=False)
        except OSError as error:
            raise CancelledError from error
        self._waiting = dict(zip(futures, keys, strict=True))
        wanted = [futures[keys.index(key)] for key in targets]
        for future in futures:
            future.add_done_callback(self._ended.put)
        del futures, future  # a result is held for those who need it, and for nobody else
        try:
            killed = self._wait()
            return [] if killed else [self._fetch(future) for future in wanted], killed
        finally:
            self._release(list(self._waiting))

    def _calls(self) -> Calls:
        """Return how workers call the functions of a graph, and how much memory of its worker a unit waits for."""
        annotations = {}
        if self.limited:
            share = share_of(described_workers(self.client, self.timeouts.answer), self.batch.memory)
            if share:
                declare_memory(self.client)
                annotations = {"resources": {RESOURCE: share}}

        def unit(function: UnitFunction) -> Callable[..., Any]:
            return functools.partial(run_unit, cloudpickle.dumps(function), self.batch.cache)

        def combine(function: Combine) -> Callable[..., Any]:
            return functools.partial(combine_parts, cloudpickle.dumps(function))

        return Calls(unit, combine, annotations)

    def _wait(self) -> dict[Key, KilledWorker]:
        """Wait until all has ended; return the tasks that Dask abandoned, after which no further one begins."""
        killed = dict[Key, KilledWorker]()
        while self._waiting:
            try:
                future = self._ended.get(timeout=POLL_SECONDS)
            except queue.Empty:
                self._look()
                continue
            key = self._waiting.pop(future, None)
            if key is None:  # recalled, or of an earlier graph
                continue
            self._able = time.monotonic()
            if future.status == "finished":
                self._note_done(key)
            elif future.status == "error":
                error = future.exception()
                if not isinstance(error, KilledWorker):
                    raise error
                killed[without_suffix(error.task)] = error
                self._recall()
            elif not killed:
                raise CancelledError
        return killed

    def _note_done(self, key: Key) -> None:
        """Count a unit that is done, once."""
        if key not in self._done and not self.graph.layers[key[0]].combines:
            self._done.add(key)
            self.advance()

    def _recall(self) -> None:
        """Recall what no worker works on: what one works on cannot be taken from it, and ends."""
        with contextlib.suppress(OSError):
            processing = {key for keys in self.client.processing().values() for key in keys}
            pending = [future for future in self._waiting if future.status == "pending"]
            self._release([future for future in pending if future.key not in processing])

    def _release(self, futures: Sequence[Future]) -> None:
        """Have Dask forget tasks: to cancel one together with those that wait for it is an error in its scheduler."""
        for future in futures:
            del self._waiting[future]
            future.release()

    def _try_alone(self, killed: Mapping[Key, KilledWorker]) -> None:
        """Run units that Dask abandoned once more, each alone; leave one out whose workers die again.

        A sum that was abandoned is computed again with its parts.
        """
        for key in killed.keys() & self._killed.keys():
            raise self._poison(key, killed[key])
        self._killed |= killed
        ranks = order(dict(self.graph.as_dask(UNCALLED)))
        for key in sorted(killed.keys() & set(self.graph.unit_keys), key=ranks.__getitem__)[:MOST_ALONE]:
            layer = self.graph.layers[key[0]]
            alone = TaskGraph(self.graph.name, {key[0]: replace(layer, tasks={key: Task(layer.tasks[key].unit, ())})})
            results, ended = self._compute(alone, [key])
            if not ended:
                self._known[key] = results[0]
                continue
            self._poisoned[key] = self._poison(key, ended[key])
            if len(self._poisoned) > MOST_POISONED:
                raise next(iter(self._poisoned.values()))
        if self._poisoned:
            self.graph, self.targets = self.graph.without(self._poisoned), []

    def _fetch(self, future: Future) -> Any:
        """Return the result of a target; where its worker is lost with it, Dask computes it again."""
        end = time.monotonic() + self.timeouts.lost_workers
        while True:
            try:
                return future.result(timeout=self.timeouts.answer)
            except OSError as error:
                if self.client.status == "closed" or time.monotonic() > end:
                    raise SchedulerLostError(LOST) from error

    def _await_scheduler(self) -> None:
        """Wait until the scheduler is connected."""
        while self.client.status != "running":
            self._look()
            time.sleep(POLL_SECONDS)

    def _look(self) -> None:
        """Raise an error where the scheduler, or a worker with the memory for a task, has not been there for long."""
        silent = time.monotonic() - self._able
        if self.client.status == "closed":  # as Dask does where it cannot connect again
            raise SchedulerLostError(LOST)
        try:
            workers = described_workers(self.client, self.timeouts.answer)
        except (OSError, CancelledError) as error:
            if silent > self.timeouts.lost_workers:
                raise SchedulerLostError(LOST) from error
            return
        # Dask pauses workers at four fifths of their limit: one whose tables take as much stays so.
        memory = self.batch.memory
        if any(budget_of(one).fit(memory) and one.get("status") != "paused" for one in workers.values()):
            self._able = time.monotonic()
        elif silent > self.timeouts.lost_workers:
            lost = "none has the memory for one task" if workers else "none is there"
            raise WorkersLostError(
                f"stage {self.batch.stage} has no worker: {lost}, for {silent:.0f} s; start workers (of "
                f"enough memory), and {RESUME}"
            )

    def _poison(self, key: Key, error: KilledWorker) -> PoisonTaskError:
        """Return the error of what ended its workers each time."""
        poisoned = PoisonTaskError(
            f"stage {self.batch.stage}, {self.graph.layers[key[0]].name_of(key)}: workers died whenever "
            "they worked on it, also with nothing else of the stage at work: it needs more memory than a worker has, "
            "or compiled code crashed; give workers more memory, or start a new run with smaller blocks (--block-rows)"
        )
        poisoned.__cause__ = error
        return poisoned


def without_suffix(key: Any) -> Key:
    """Return the key of a task from the one that Dask has."""
    return key[0].rpartition("-")[0], key[1]


def share_of(workers: Mapping[str, Any], memory: Memory) -> int:
    """Return the memory of its worker that a task waits for, such that all that run side by side fit.

    It is 0 where a task fits for every thread that there is: Dask queues tasks that wait for nothing, and gives those
    that wait for memory to workers, whose deaths it then counts against all of them.

    Parameters
    ----------
    workers : as a scheduler describes them
    """
    budgets = [budget_of(one) for one in workers.values()]
    fits = [budget.fit(memory) for budget in budgets]
    if fits and fits == [budget.threads for budget in budgets]:
        return 0
    side_by_side = min(fits) if fits and all(fits) else 1
    return -(-memory.total(side_by_side) // side_by_side)


@functools.lru_cache(maxsize=16)
def unpack(content: bytes) -> Callable[..., Any]:
    """Return a function from its bytes, unpacked once a process."""
    function: Callable[..., Any] = pickle.loads(content)
    return function


def run_unit(content: bytes, scope: str, unit: Any, *_: Any) -> Any:
    """Return function(unit) on a worker; what tasks of another scope have shared is freed before."""
    PROCESS.start_scope(scope)
    function = unpack(content)
    BLAS.set_to_one()
    return attempted(function, unit)


def attempted(function: UnitFunction, unit: Any) -> Any:
    """Return function(unit), at the last of several attempts where errors of the system pass."""
    for attempt in range(1, MOST_ATTEMPTS):
        try:
            return function(unit)
        except OSError as error:
            if isinstance(error, ScalemaniError):
                raise
            time.sleep(SECONDS_BETWEEN * attempt)
    return function(unit)


def combine_parts(content: bytes, *parts: Any) -> Any:
    """Return parts combined in their order, on a worker."""
    return functools.reduce(unpack(content), parts)
