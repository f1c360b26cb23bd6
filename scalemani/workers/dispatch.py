"""The units of a map on their way through a cluster: waiting, running on a worker, finished."""

import collections
import contextlib
import queue
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cloudpickle
from distributed import Client, Future, KilledWorker

from scalemani.workers.attempts import Attempts
from scalemani.workers.budget import Batch
from scalemani.workers.dask_calls import results_at_hand
from scalemani.workers.own_process import run_in_own_process
from scalemani.workers.roster import ANSWER_SECONDS, Roster, Worker
from scalemani.workers.tasks import run_unit


class Running(NamedTuple):
    """A task that was given to a worker: the number of its unit, the worker's address, the future of its result."""

    unit: int
    address: str
    future: Future


class Dispatch:
    """Gives units to the workers of a roster and takes them back.

    Parameters
    ----------
    client : Client
        The cluster.
    function : callable
        What is done with each unit. It travels once, as bytes.
    units : sequence
        Small and picklable; they are known by their numbers.
    divisible : bool
        Whether a unit that is a list stands for its items, so that its halves may be done in its place.
    batch : Batch
        The stage, and the scope of what its tasks share.
    roster : Roster
        The workers.
    """

    def __init__(
        self,
        client: Client,
        function: Callable[[Any], Any],
        units: Sequence[Any],
        batch: Batch,
        roster: Roster,
        divisible: bool = False,
    ) -> None:
        self._client, self._units, self._batch, self._roster = client, list(units), batch, roster
        self._divisible = divisible
        self._content = cloudpickle.dumps(function)
        self._name = f"{batch.stage}-{uuid.uuid4().hex[:12]}"
        self._attempts = Attempts(batch.stage, self._units)
        self._waiting = collections.deque(range(len(units)))
        self._retries: set[int] = set()  # units whose workers were lost
        self._running: dict[str, Running] = {}
        self._finished: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._unfetched: set[str] = set()  # finished tasks whose results did not come
        self._n_submitted = 0

    @property
    def n_units(self) -> int:
        """How many units there are; halves of those that were lost come on top of those that were given."""
        return len(self._units)

    def requeue_lost(self, workers: Sequence[Worker]) -> None:
        """Have the units of lost workers tried again, and count each loss against those that were being worked on.

        Dask's workers do tasks of one priority in the order in which they were given, and ours tell the end of one
        before they begin the next: at work were the first that have no end, as many as fit side by side. What waited
        behind them has ended no worker.
        """
        for worker in workers:
            pending = [unit for unit in worker.units if self._drop(unit) == "pending"]
            at_work = pending[: worker.at_once]
            for unit in reversed(worker.units):
                if unit in at_work:
                    self._blame(unit)
                else:
                    self._requeue(unit)

    def submit(self) -> None:
        """Give waiting units to the workers that have least to do; those of lost workers first."""
        if self._client.status != "running":
            return
        self._submit_retries()
        # With as few left as there are threads, nothing waits behind another task.
        queued = len(self._waiting) > self._roster.capacity
        while self._waiting:
            address = self._roster.least_busy(queued)
            if address is None:
                return
            self._send(self._waiting.popleft(), address)

    def collect(self, seconds: float, fetch: bool) -> list[tuple[int, Any]]:
        """Wait for tasks to end, `seconds` at most; return the numbers of finished units and their results.

        The results are None unless they are to be fetched. Tasks that failed are tried again, or their error is raised.
        """
        done = []
        for key in (self._ended_tasks(seconds) | self._unfetched) & self._running.keys():
            future = self._running[key].future
            if future.status == "finished":
                done.append(key)
            elif future.status == "error":
                error = future.exception(timeout=ANSWER_SECONDS)
                self._retry_failed(self._take(key), error)
            elif future.status in ("cancelled", "lost"):  # with the connection to the scheduler
                self._requeue(self._take(key))
        results = self._fetch(done) if fetch else dict.fromkeys(done)
        return [(self._take(key), result) for key, result in results.items()]

    def cancel(self) -> None:
        """Cancel what is running."""
        if self._client.status == "running":
            for running in self._running.values():
                running.future.cancel()

    def _fetch(self, keys: list[str]) -> dict[str, Any]:
        """Return the results of finished tasks that are to be had; the others are asked for again.

        A worker that died with one is seen when the roster is refreshed.
        """
        results: dict[str, Any] = {}
        if keys:
            with contextlib.suppress(OSError, TimeoutError):
                futures = [self._running[key].future for key in keys]
                results = results_at_hand(self._client, futures, ANSWER_SECONDS)
        self._unfetched.update(keys)
        return results

    def _drop(self, unit: int) -> str:
        """Take the task of a unit back from a worker that is gone; return the status that it had."""
        (key,) = (key for key, running in self._running.items() if running.unit == unit)
        self._unfetched.discard(key)
        future = self._running.pop(key).future
        status = str(future.status)
        future.release()
        return status

    def _blame(self, unit: int) -> None:
        """Count a lost worker against a unit, which is tried again.

        A run of blocks is divided instead: its halves take less time and memory, and a worker that is lost with one
        loses less.
        """
        self._retries.add(unit)
        if self._divisible and isinstance(self._units[unit], list) and len(self._units[unit]) > 1:
            self._divide(unit)
        else:
            self._attempts.note_lost_worker(unit)

    def _divide(self, unit: int) -> None:
        blocks = self._units[unit]
        half = len(blocks) // 2
        self._retries.add(self.n_units)
        self._units[unit] = blocks[:half]
        self._units.append(blocks[half:])

    def _submit_retries(self) -> None:
        """Give units of lost workers to others; one that is to be alone waits for a worker that is given no more."""
        for unit in sorted(self._retries):
            isolate = self._attempts.needs_own_process(unit)
            address = self._roster.for_retry(isolate)
            if address is not None:
                self._retries.remove(unit)
                self._send(unit, address)
            elif isolate:
                self._roster.reserve()

    def _send(self, unit: int, address: str) -> None:
        self._n_submitted += 1
        key, isolate = f"{self._name}-{self._n_submitted}", self._attempts.needs_own_process(unit)
        call: tuple[Any, ...]
        if isolate:
            call = run_in_own_process, self._content, self._units[unit], self._roster[address].memory
        else:
            call = run_unit, self._content, self._batch.cache, self._units[unit]
        future = self._client.submit(*call, key=key, workers=[address], pure=False)
        self._roster.assign(address, unit, isolate)
        self._running[key] = Running(unit, address, future)
        future.add_done_callback(lambda ended: self._finished.put(ended.key))

    def _ended_tasks(self, seconds: float) -> set[str]:
        keys = set()
        try:
            keys.add(self._finished.get(timeout=max(0.0, seconds)))
            while True:
                keys.add(self._finished.get_nowait())
        except queue.Empty:
            return keys

    def _take(self, key: str) -> int:
        unit, address, future = self._running.pop(key)
        self._unfetched.discard(key)
        self._roster.unassign(address, unit)
        future.release()
        return unit

    def _requeue(self, unit: int) -> None:
        if self._attempts.was_lost(unit):
            self._retries.add(unit)
        else:
            self._waiting.appendleft(unit)

    def _retry_failed(self, unit: int, error: BaseException) -> None:
        if isinstance(error, KilledWorker):  # counted by a scheduler that was started with a limit of its own
            self._blame(unit)
            return
        self._attempts.note_failure(unit, error)
        self._requeue(unit)
