"""The workers of a cluster as a driver knows them: which there are, what each may do and has in hand."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future

from scalemani.errors import SchedulerLostError, WorkersLostError
from scalemani.workers.budget import Batch, Budget
from scalemani.workers.dask_calls import ask_scheduler

TASKS_IN_HAND = 2  # for each thread: one at work, one waiting, so that no thread waits for the driver
ANSWER_SECONDS = 10.0
SCHEDULER_LOST_SECONDS = 30.0
WORKERS_LOST_SECONDS = 75.0
STARTED_SECONDS = 4.0  # after which a nanny has seen its worker run


@dataclass
class Worker:
    """One worker: `at_once` tasks fit side by side, `most` may be in hand, `memory` bytes (0: no limit).

    `units` are those in hand, in the order in which they were given and are done; `isolated`, whether one of these has
    a process of its own, which bears no company; `reserved`, whether it is given no more until such a unit can have it.
    """

    at_once: int
    most: int
    memory: int
    units: list[int] = field(default_factory=list)
    isolated: bool = False
    reserved: bool = False
    since: float = field(default_factory=time.monotonic)

    @property
    def started(self) -> bool:
        """Whether its nanny has had time to see it run: a worker that ends before is not started again."""
        return time.monotonic() - self.since > STARTED_SECONDS

    def has_room(self, queued: bool) -> bool:
        """Whether it may have one more unit: beyond what it can work on where tasks may be `queued`."""
        return not self.isolated and not self.reserved and len(self.units) < (self.most if queued else self.at_once)


class Roster:
    """The workers there are, found out now and then.

    Parameters
    ----------
    client : Client
        The cluster.
    batch : Batch
        What the tasks need: it decides how many fit into a worker.
    restore : callable
        Called while workers are looked at; it may bring lost ones back.
    """

    def __init__(self, client: Client, batch: Batch, restore: Callable[[], None]) -> None:
        self._client, self._batch, self._restore = client, batch, restore
        self._workers: dict[str, Worker] = {}
        self._n_present = 0
        self._probe: Future | None = None
        self._last_answer = self._last_capacity = time.monotonic()

    @property
    def capacity(self) -> int:
        """How many tasks fit side by side."""
        return sum(worker.at_once for worker in self._workers.values())

    def __getitem__(self, address: str) -> Worker:
        return self._workers[address]

    def refresh(self) -> list[Worker] | None:
        """Find out which workers there are; return the lost ones, None where no answer came.

        Raises SchedulerLostError once no answer has come for too long.
        """
        threads = self._ask("ncores")
        if threads is None:
            return None
        self._last_answer, self._n_present = time.monotonic(), len(threads)
        self._restore()
        lost = [self._workers.pop(address) for address in self._workers.keys() - threads.keys()]
        new = threads.keys() - self._workers.keys()
        described = (self._ask("identity", n_workers=-1) or {}).get("workers", {}) if new else {}
        for address in new & described.keys():
            limit = described[address].get("memory_limit")
            at_once = Budget(threads[address], limit).fit(self._batch.need)
            most = at_once * TASKS_IN_HAND if at_once == threads[address] else at_once
            self._workers[address] = Worker(at_once, most, limit or 0)
        return lost

    def check_capacity(self) -> None:
        """Raise WorkersLostError where no worker has had room for a task for too long."""
        now = time.monotonic()
        if self.capacity:
            self._last_capacity, self._probe = now, None
            return
        if self._probe is None and not self._n_present:  # a cluster that starts workers by need has to see a task
            self._probe = self._client.submit(int, pure=False)
        if now - self._last_capacity > WORKERS_LOST_SECONDS:
            lost = "none has the memory for one task" if self._n_present else "none is there"
            raise WorkersLostError(
                f"stage {self._batch.stage} has no worker: {lost}, for {now - self._last_capacity:.0f} s; start "
                "workers (of enough memory), the same command goes on where this one ended"
            )

    def least_busy(self, queued: bool) -> str | None:
        """Return the address of the worker that has least to do, None where none has room."""
        busy = [
            (len(worker.units) / worker.at_once, address)
            for address, worker in self._workers.items()
            if worker.has_room(queued)
        ]
        return min(busy)[1] if busy else None

    def for_retry(self, isolate: bool) -> str | None:
        """Return the address of a worker for a unit of a lost one, None for none; one without units to `isolate` it."""
        for address, worker in self._workers.items():
            if worker.at_once and (not worker.units if isolate else worker.started and worker.has_room(True)):
                return address
        return None

    def reserve(self) -> None:
        """Give the worker that has least to do no more, until a unit can have it alone; the others go on."""
        workers = [worker for worker in self._workers.values() if worker.at_once and not worker.isolated]
        if workers and not any(worker.reserved for worker in workers):
            min(workers, key=lambda worker: len(worker.units) / worker.at_once).reserved = True

    def assign(self, address: str, unit: int, isolate: bool) -> None:
        """Note that a worker has a unit."""
        worker = self._workers[address]
        worker.units.append(unit)
        worker.isolated = worker.isolated or isolate
        if isolate:
            for other in self._workers.values():
                other.reserved = False

    def unassign(self, address: str, unit: int) -> None:
        """Note that a worker, if it is still there, has a unit no more."""
        if address in self._workers:
            worker = self._workers[address]
            worker.units = [other for other in worker.units if other != unit]
            worker.isolated = worker.isolated and bool(worker.units)

    def _ask(self, operation: str, **arguments: Any) -> Any:
        """Return the scheduler's answer, None where there is none yet; raise SchedulerLostError once it is too long."""
        if self._client.status == "running":
            try:
                return ask_scheduler(self._client, operation, ANSWER_SECONDS, **arguments)
            except (OSError, TimeoutError):
                pass
        silent = time.monotonic() - self._last_answer
        if self._client.status == "closed" or silent > SCHEDULER_LOST_SECONDS:
            raise SchedulerLostError(
                f"the scheduler has not answered for {silent:.0f} s: start one again; the same command with its "
                "address goes on where this one ended"
            )
        return None
