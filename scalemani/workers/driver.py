"""One task a unit on the workers of a Dask cluster, by a driver that outlives them.

The driver says which worker runs which unit, so that it knows how many run side by side in the memory of each, and
which units went with a worker that died. One that went twice is tried in a process of its own below a worker, which
tells units that end processes from workers that are killed from outside. A task is a few kilobytes: what to do, as
bytes that each worker unpacks once, and the unit. No result is kept on the cluster once it was seen.
"""

import collections
import queue
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
from distributed import Client, Future, KilledWorker

from scalemani.errors import ScalemaniError, SchedulerLostError, WorkersLostError
from scalemani.memory.process import PROCESS
from scalemani.workers.budget import Batch, Budget
from scalemani.workers.own_process import EndedApartError, poison_error, run_alone, run_apart, unlucky_error

TASKS_AT_HAND = 2  # for each thread: one at work, one waiting, so that no thread waits for the driver
LOOKS_APART_SECONDS = 1.0
ANSWER_SECONDS = 10.0
SCHEDULER_LOST_SECONDS = 30.0
WORKERS_LOST_SECONDS = 75.0
MOST_ATTEMPTS = 4
SETTLED_SECONDS = 4.0
APART_AFTER = 2  # workers that went with a unit; from then on it has a process of its own
MOST_APART = 2  # processes that a unit may end
MOST_LOST = 12  # workers that may go with a unit that ends no process of its own


@dataclass
class Worker:
    """A worker as the driver knows it: tasks side by side, how many it may have, bytes (0: no limit), what it has."""

    at_once: int
    most: int
    memory: int
    units: set[int] = field(default_factory=set)
    since: float = field(default_factory=time.monotonic)

    @property
    def settled(self) -> bool:
        """Whether its nanny has had time to take it for running: one that ends before is not started again."""
        return time.monotonic() - self.since > SETTLED_SECONDS


@dataclass
class ClusterMap:
    """A function on every unit, on the workers that there are at any moment.

    `restore` is called while workers are looked at: it may bring lost workers back. `keep` is given the number of each
    unit and its result, in the order in which they come; without it, results are not fetched.
    """

    client: Client
    function: Callable[[Any], Any]
    units: Sequence[Any]
    batch: Batch
    advance: Callable[[], None]
    restore: Callable[[], None]
    keep: Callable[[int, Any], Any] | None = None

    def __post_init__(self) -> None:
        self._content = cloudpickle.dumps(self.function)
        self._name = f"{self.batch.stage}-{uuid.uuid4().hex[:12]}"
        self._waiting = collections.deque(range(len(self.units)))
        self._again: set[int] = set()  # units whose workers went
        self._workers: dict[str, Worker] = {}
        self._flying: dict[str, tuple[int, str, Future]] = {}
        self._landed: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._done = 0
        self._tries = 0
        self._failures: collections.Counter[int] = collections.Counter()
        self._lost: collections.Counter[int] = collections.Counter()  # workers that went with a unit
        self._ended: collections.Counter[int] = collections.Counter()  # processes of its own that a unit has ended
        self._knock: Future | None = None
        self._answered = self._peopled = time.monotonic()
        self._looked = -LOOKS_APART_SECONDS

    def run(self) -> None:
        """Have function(unit) of every unit done."""
        try:
            while self._done < len(self.units):
                if time.monotonic() - self._looked >= LOOKS_APART_SECONDS:
                    self._look()
                    self._looked = time.monotonic()
                self._submit()
                self._collect()
        finally:
            if self.client.status == "running":
                for _, _, future in self._flying.values():
                    future.cancel()

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
            at_once = Budget(threads[address], limit).fit(self.batch.need)
            most = at_once * TASKS_AT_HAND if at_once == threads[address] else at_once
            self._workers[address] = Worker(at_once, most, limit or 0)
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
                f"stage {self.batch.stage} has no worker: {lost}, for {now - self._peopled:.0f} s; start workers (of "
                "enough memory), the same command goes on where this one ended"
            )

    def _bury(self, units: set[int]) -> None:
        """Note that a worker went with the units it had, and hand these out anew."""
        for key in [key for key, flight in self._flying.items() if flight[0] in units]:
            self._flying.pop(key)[2].release()
        self._lost.update(units)
        self._again |= units
        for index in sorted(units):
            if self._lost[index] >= MOST_LOST:
                raise unlucky_error(self.batch.stage, self.units[index], self._lost[index])

    # Tasks

    def _submit(self) -> None:
        """Give waiting units to the workers that have least to do."""
        if self.client.status != "running":
            return
        for index in sorted(self._again):
            apart = self._lost[index] >= APART_AFTER
            free = [
                address
                for address, worker in self._workers.items()
                if worker.at_once and (not worker.units if apart else worker.settled and self._open(worker, True))
            ]
            if free:
                self._again.remove(index)
                self._send(index, free[0])
            elif apart:
                return  # until a worker has nothing else
        # With as few left as there are threads, nothing waits behind another task.
        at_hand = len(self._waiting) > sum(worker.at_once for worker in self._workers.values())
        while self._waiting:
            open_to = [
                (len(worker.units) / worker.at_once, address)
                for address, worker in self._workers.items()
                if self._open(worker, at_hand)
            ]
            if not open_to:
                return
            self._send(self._waiting.popleft(), min(open_to)[1])

    def _open(self, worker: Worker, at_hand: bool) -> bool:
        """Return whether a worker may have one more unit: not beside one that has a process of its own."""
        return len(worker.units) < (worker.most if at_hand else worker.at_once) and not any(
            self._lost[index] >= APART_AFTER for index in worker.units
        )

    def _send(self, index: int, address: str) -> None:
        self._tries += 1
        key, worker = f"{self._name}-{self._tries}", self._workers[address]
        submitted: tuple[Any, ...]
        if self._lost[index] >= APART_AFTER:
            submitted = (run_apart, self._content, self.units[index], worker.memory)
        else:
            submitted = (run_unit, self._content, self.batch.cache, self.units[index])
        future = self.client.submit(*submitted, key=key, workers=[address], pure=False)
        worker.units.add(index)
        self._flying[key] = (index, address, future)
        future.add_done_callback(lambda landed: self._landed.put(landed.key))

    def _put_back(self, index: int) -> None:
        """Hand out a unit anew."""
        if self._lost[index]:
            self._again.add(index)
        else:
            self._waiting.appendleft(index)

    def _collect(self) -> None:
        """Wait for tasks to end, at most until it is time to look at the workers."""
        keys, finished = set(), []
        try:
            keys.add(self._landed.get(timeout=max(0.0, self._looked + LOOKS_APART_SECONDS - time.monotonic())))
            while True:
                keys.add(self._landed.get_nowait())
        except queue.Empty:
            pass
        for key in keys & self._flying.keys():
            index, _, future = self._flying[key]
            if future.status == "finished":
                finished.append(key)
            elif future.status == "error":
                error = future.exception(timeout=ANSWER_SECONDS)
                self._take(key)
                self._failed(index, error)
            elif future.status in ("cancelled", "lost"):  # with the connection to the scheduler
                self._take(key)
                self._put_back(index)
        self._finish(finished)

    def _finish(self, keys: Sequence[str]) -> None:
        futures = [self._flying[key][2] for key in keys]
        results: Sequence[Any] = [None] * len(keys)
        if self.keep is not None and keys:
            try:
                results = self.client.sync(self.client._gather, futures, callback_timeout=ANSWER_SECONDS)
            except (OSError, TimeoutError):
                for key in keys:  # a worker that died with a result is seen at the next look
                    self._landed.put(key)
                return
        for key, result in zip(keys, results, strict=True):
            index = self._take(key)
            if self.keep is not None:
                self.keep(index, result)
            self._done += 1
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
            self._bury({index})
            return
        if isinstance(error, EndedApartError):
            self._ended[index] += 1
            if self._ended[index] >= MOST_APART:
                ended = self._lost[index] + self._ended[index]
                raise poison_error(self.batch.stage, self.units[index], ended, str(error)) from error
        else:
            self._failures[index] += 1
            passing = isinstance(error, OSError) and not isinstance(error, ScalemaniError)
            if not passing or self._failures[index] >= MOST_ATTEMPTS:
                raise error
        self._put_back(index)


def run_unit(content: bytes, cache: str, unit: Any) -> Any:
    """Run a task on a worker."""
    PROCESS.start_scope(cache)
    return run_alone(content, unit)
