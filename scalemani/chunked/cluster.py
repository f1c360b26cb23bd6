"""One task a unit on the workers of a Dask cluster, by a driver that outlives them.

The driver says which worker runs which unit, so that it knows how many run side by side in the memory of each, how
often a unit was tried, and which units went with a worker that died. A task is a few kilobytes: what to do, as bytes
that each worker unpacks once, and the unit. No result is kept on the cluster once it was seen.
"""

import collections
import functools
import pickle
import queue
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
from distributed import Client, Future, KilledWorker
from threadpoolctl import threadpool_limits

from scalemani.chunked.resident import enter
from scalemani.errors import PoisonTaskError, ScalemaniError, SchedulerLostError, WorkersLostError

TASKS_AT_HAND = 2  # for each thread: one at work, one waiting, so that no thread waits for the driver
LOOKS_APART_SECONDS = 1.0
ANSWER_SECONDS = 10.0
SCHEDULER_LOST_SECONDS = 30.0
WORKERS_LOST_SECONDS = 75.0
MOST_ATTEMPTS = 4
MOST_UNLUCKY_ATTEMPTS = 12  # of a unit whose workers died beside others that died as well
SETTLED_SECONDS = 4.0
SUSPECT_AFTER = 2  # attempts; from then on a unit has a worker to itself, so that no other unit is blamed with it


@dataclass(frozen=True)
class Needs:
    """What the tasks of a stage take: its name, a name for what its processes keep, and bytes a process and a task."""

    stage: str = "a stage"
    scope: str = ""
    shared: int = 0
    each: int = 0


def slots(threads: int, memory: int | None, needs: Needs) -> int:
    """Return how many tasks run side by side in a process of so many threads and bytes (None or 0: no limit)."""
    return threads if not memory else max(0, min(threads, (memory - needs.shared) // max(needs.each, 1)))


@dataclass
class Worker:
    """A worker as the driver knows it: how many tasks it runs side by side, how many it may have, and which it has."""

    at_once: int
    most: int
    units: set[int] = field(default_factory=set)
    since: float = field(default_factory=time.monotonic)

    @property
    def settled(self) -> bool:
        """Whether its nanny has had time to take it for running: one that ends before is not started again."""
        return time.monotonic() - self.since > SETTLED_SECONDS


@dataclass
class ClusterMap:
    """A function on every unit, on the workers that there are at any moment.

    `restore` is called while workers are looked at: it may bring lost workers back. Without `wanted`, results are not
    fetched.
    """

    client: Client
    function: Callable[[Any], Any]
    units: Sequence[Any]
    needs: Needs
    advance: Callable[[], None]
    restore: Callable[[], None]
    wanted: bool = True

    def __post_init__(self) -> None:
        self._content = cloudpickle.dumps(self.function)
        self._name = f"{self.needs.stage}-{uuid.uuid4().hex[:12]}"
        self._waiting = collections.deque(range(len(self.units)))
        self._workers: dict[str, Worker] = {}
        self._flying: dict[str, tuple[int, str, Future]] = {}
        self._landed: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._results: dict[int, Any] = {}
        self._tries = 0
        self._failures: collections.Counter[int] = collections.Counter()
        self._blamed: dict[int, list[int]] = {}  # unit -> how many units were done at each death of its worker
        self._streaks: dict[int, int] = {}
        self._knock: Future | None = None
        self._answered = self._peopled = time.monotonic()
        self._looked = -LOOKS_APART_SECONDS

    def run(self) -> list[Any]:
        """Return function(unit) of every unit, in order."""
        try:
            while len(self._results) < len(self.units):
                if time.monotonic() - self._looked >= LOOKS_APART_SECONDS:
                    self._look()
                    self._looked = time.monotonic()
                self._submit()
                self._collect()
        finally:
            if self.client.status == "running":
                for _, _, future in self._flying.values():
                    future.cancel()
        return [self._results[index] for index in range(len(self.units))]

    # Workers

    def _look(self) -> None:
        """Find out which workers there are; blame and hand out anew what the lost ones had."""
        threads = self._asked("ncores")
        if threads is None:
            return
        self._answered = time.monotonic()
        self.restore()
        for address in self._workers.keys() - threads.keys():
            self._bury(self._workers.pop(address).units)
        new = threads.keys() - self._workers.keys()
        described = (self._asked("identity", n_workers=-1) or {}).get("workers", {}) if new else {}
        for address in new & described.keys():
            limit = described[address].get("memory_limit")
            at_once = slots(threads[address], limit, self.needs)
            most = at_once * TASKS_AT_HAND if at_once == threads[address] else at_once
            self._workers[address] = Worker(at_once, most)
        self._refuse_emptiness(bool(threads))

    def _asked(self, operation: str, **arguments: Any) -> Any:
        """Return the scheduler's answer, or None while there is none; raise SchedulerLostError once it is too long."""
        if self.client.status == "running":
            try:
                call = getattr(self.client.scheduler, operation)
                return self.client.sync(call, callback_timeout=ANSWER_SECONDS, **arguments)
            except (OSError, TimeoutError):
                pass
        if self.client.status == "closed" or time.monotonic() - self._answered > SCHEDULER_LOST_SECONDS:
            raise SchedulerLostError(
                f"the scheduler has not answered for {time.monotonic() - self._answered:.0f} s: start one again; the "
                "same command with its address goes on where this one ended"
            )
        return None

    def _refuse_emptiness(self, peopled: bool) -> None:
        now = time.monotonic()
        if any(worker.at_once for worker in self._workers.values()):
            self._peopled, self._knock = now, None
            return
        if self._knock is None and not peopled:  # a cluster that starts workers by need has to see one
            self._knock = self.client.submit(int, pure=False)
        if now - self._peopled > WORKERS_LOST_SECONDS:
            lost = "none has the memory for one task" if peopled else "none is there"
            raise WorkersLostError(
                f"stage {self.needs.stage} has no worker: {lost}, for {now - self._peopled:.0f} s; start workers (of "
                "enough memory), the same command goes on where this one ended"
            )

    def _bury(self, units: Iterable[int]) -> None:
        """Note the death of a worker with the units it had, and hand these out anew."""
        units = set(units)
        for index in [index for index in self._streaks if index not in units]:
            del self._streaks[index]  # workers die without it as well
        for index in units:
            self._streaks[index] = self._streaks.get(index, 0) + 1
            self._blamed.setdefault(index, []).append(len(self._results))
        for key in [key for key, flight in self._flying.items() if flight[0] in units]:
            self._flying.pop(key)[2].release()
        self._waiting.extendleft(sorted(units, reverse=True))
        for index in units:
            if self._poisonous(index):
                raise poison_error(self.needs.stage, self.units[index], len(self._blamed[index]))

    def _poisonous(self, index: int) -> bool:
        """Return whether a unit ends its workers: each death of late was one of its own, or nothing else got done."""
        deaths = self._blamed[index]
        if len(deaths) < MOST_ATTEMPTS:
            return False
        stuck = deaths[-MOST_ATTEMPTS] == len(self._results)
        return self._streaks[index] >= MOST_ATTEMPTS or stuck or len(deaths) >= MOST_UNLUCKY_ATTEMPTS

    # Tasks

    def _submit(self) -> None:
        """Give waiting units to the workers that have least to do."""
        if self.client.status != "running":
            return
        for index in [index for index in self._waiting if len(self._blamed.get(index, ())) >= SUSPECT_AFTER]:
            idle = [address for address, worker in self._workers.items() if worker.at_once and not worker.units]
            free = [address for address in idle if self._workers[address].settled]
            if not free:
                return  # until a worker has nothing else
            self._waiting.remove(index)
            self._send(index, free[0])
        # With as few left as there are threads, nothing waits behind another task.
        at_hand = len(self._waiting) > sum(worker.at_once for worker in self._workers.values())
        while self._waiting:
            open_to = [
                (len(worker.units) / worker.at_once, address)
                for address, worker in self._workers.items()
                if len(worker.units) < (worker.most if at_hand else worker.at_once) and not self._holds_suspect(worker)
            ]
            if not open_to:
                return
            self._send(self._waiting.popleft(), min(open_to)[1])

    def _holds_suspect(self, worker: Worker) -> bool:
        return any(len(self._blamed.get(index, ())) >= SUSPECT_AFTER for index in worker.units)

    def _send(self, index: int, address: str) -> None:
        self._tries += 1
        key = f"{self._name}-{self._tries}"
        arguments = (self._content, self.needs.scope, self.units[index])
        future = self.client.submit(run_unit, *arguments, key=key, workers=[address], pure=False)
        self._workers[address].units.add(index)
        self._flying[key] = (index, address, future)
        future.add_done_callback(lambda landed: self._landed.put(landed.key))

    def _collect(self) -> None:
        """Wait for tasks to end, at most until it is time to look at the workers."""
        keys = set()
        try:
            keys.add(self._landed.get(timeout=max(0.0, self._looked + LOOKS_APART_SECONDS - time.monotonic())))
            while True:
                keys.add(self._landed.get_nowait())
        except queue.Empty:
            pass
        finished = []
        for key in keys & self._flying.keys():
            index, _, future = self._flying[key]
            status = future.status
            if status == "finished":
                finished.append(key)
            elif status == "error":
                error = future.exception(timeout=ANSWER_SECONDS)
                self._take(key)
                self._failed(index, error)
            elif status in ("cancelled", "lost"):  # with the connection to the scheduler
                self._take(key)
                self._waiting.appendleft(index)
        self._finish(finished)

    def _finish(self, keys: Sequence[str]) -> None:
        futures = [self._flying[key][2] for key in keys]
        results: Sequence[Any] = [None] * len(keys)
        if self.wanted and keys:
            try:
                results = self.client.sync(self.client._gather, futures, callback_timeout=ANSWER_SECONDS)
            except (OSError, TimeoutError):
                for key in keys:  # a worker that died with a result is seen at the next look
                    self._landed.put(key)
                return
        for key, result in zip(keys, results, strict=True):
            self._results[self._take(key)] = result
            self.advance()

    def _take(self, key: str) -> int:
        index, address, future = self._flying.pop(key)
        if address in self._workers:
            self._workers[address].units.discard(index)
        future.release()
        return index

    def _failed(self, index: int, error: BaseException) -> None:
        """Try a unit again after what may pass; raise everything else."""
        if isinstance(error, KilledWorker):  # counted by a scheduler that was started with a limit of its own
            raise poison_error(self.needs.stage, self.units[index], error.allowed_failures + 1) from error
        self._failures[index] += 1
        passing = isinstance(error, OSError) and not isinstance(error, ScalemaniError)
        if not passing or self._failures[index] >= MOST_ATTEMPTS:
            raise error
        self._waiting.appendleft(index)


def poison_error(stage: str, unit: Any, deaths: int) -> PoisonTaskError:
    """Return the error of a unit that ends its workers."""
    blocks = ", ".join(map(str, unit)) if isinstance(unit, list) else str(unit)
    return PoisonTaskError(
        f"stage {stage}, block {blocks}: {deaths} workers ended while they worked on it: it needs more memory than "
        "they have, or compiled code crashed (their logs say which); give workers more memory, or start a new run with "
        "smaller blocks (--block-rows)"
    )


@functools.lru_cache(maxsize=4)
def unpacked(content: bytes) -> Callable[[Any], Any]:
    """Return the function of a map, unpacked once a process."""
    return pickle.loads(content)


def run_unit(content: bytes, scope: str, unit: Any) -> Any:
    """Run a task on a worker, with BLAS at one thread for good: products do not depend on the machine's cores."""
    enter(scope)
    function = unpacked(content)
    threadpool_limits(1)
    return function(unit)
