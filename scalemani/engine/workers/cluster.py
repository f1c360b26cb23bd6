"""One task a unit on the workers of a Dask cluster.

Dask queues tasks, balances them, and runs those of lost workers again. Where workers died each time, it gives a task up
with `KilledWorker`; another task of theirs may have ended them. Such a unit is tried once more when nothing else of the
stage is at work, and named where its workers die again. With more than MOST_SUSPECTS of them the others wait meanwhile.
"""

import collections
import functools
import itertools
import pickle
import queue
import time
import uuid
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
from dask.delayed import Delayed
from distributed import Client, Future, KilledWorker

from scalemani.engine.memory.process import PROCESS
from scalemani.engine.workers.blas import BLAS
from scalemani.engine.workers.budget import Batch
from scalemani.engine.workers.connections import RESOURCE, budget_of
from scalemani.errors import PoisonTaskError, ScalemaniError, SchedulerLostError, WorkersLostError

MOST_ATTEMPTS = 4  # at a unit that fails with errors that may pass
MOST_SUSPECTS = 4  # whose workers died each time, before they are retried alone and the other units wait
POLL_SECONDS = 1.0  # between two looks at the workers
ANSWER_SECONDS = 10.0
SCHEDULER_LOST_SECONDS = 30.0
WORKERS_LOST_SECONDS = 75.0


class Workers:
    """The workers of a cluster as they were seen last.

    `limit` is how many tasks may be in flight, None for all; `options` are the workers or the resources of a task.
    """

    def __init__(self, client: Client, batch: Batch) -> None:
        self._client, self._batch = client, batch
        self._answered = self._able = time.monotonic()
        self.limit: int | None = 1
        self.options: dict[str, Any] = {}

    def look(self) -> None:
        """Find out which workers there are, and what fits into their memory.

        Raises SchedulerLostError or WorkersLostError where there was no answer, or no room for a task, for too long.
        """
        workers, now = self._ask(), time.monotonic()
        if workers is None:
            if self._client.status == "closed" or now - self._answered > SCHEDULER_LOST_SECONDS:
                raise SchedulerLostError(
                    f"the scheduler has not answered for {now - self._answered:.0f} s: start one again; the same "
                    "command with its address goes on where this one ended"
                )
            return
        self._answered = now
        need, threads = self._batch.need, {name: one["nthreads"] for name, one in workers.items()}
        fits = {name: budget_of(one).fit(need) for name, one in workers.items()}
        # Dask pauses workers at four fifths of their limit: one whose tables take as much stays so.
        able = [name for name, fit in fits.items() if fit and workers[name].get("status") != "paused"]
        if able:
            self._able = now
        elif now - self._able > WORKERS_LOST_SECONDS:
            lost = "none has the memory for one task" if workers else "none is there"
            raise WorkersLostError(
                f"stage {self._batch.stage} has no worker: {lost}, for {now - self._able:.0f} s; start workers (of "
                "enough memory), the same command goes on where this one ended"
            )
        if able and any(RESOURCE in one.get("resources", {}) for one in workers.values()):
            share = need.per_task + -(-need.shared // min(fits[name] for name in able))
            self.limit, self.options = None, {"resources": {RESOURCE: share}}
        else:
            self.limit = None if able and fits == threads else sum(fits.values()) if workers else 1
            self.options = {"workers": able} if 0 < len(able) < len(fits) else {}

    def _ask(self) -> dict[str, Any] | None:
        """Return what the scheduler says of its workers, as `Client.scheduler_info`; None where no answer comes."""
        scheduler: Any = self._client.scheduler
        if self._client.status == "running":
            try:
                answer = self._client.sync(scheduler.identity, n_workers=-1, callback_timeout=ANSWER_SECONDS)
                return dict(answer["workers"])
            except (OSError, CancelledError):
                pass
        return None


@dataclass
class Tasks:
    """Units of work on their way through a cluster: waiting, running, done.

    `send` submits the units of some numbers with options of `Client.map`, and returns a future each; `units` give
    their names in messages. `advance` is called for each unit that is done, and `keep` given its number and result, in
    the order in which they come; without it, results are not fetched.
    """

    client: Client
    batch: Batch
    send: Callable[..., list[Future]]
    units: Sequence[Any]
    advance: Callable[[], None]
    keep: Callable[[int, Any], Any] | None = None

    def __post_init__(self) -> None:
        self._workers = Workers(self.client, self.batch)
        self._waiting = collections.deque(range(len(self.units)))
        self._suspects: collections.deque[int] = collections.deque()  # to be tried alone, after all others
        self._killed: set[int] = set()
        self._poisoned: PoisonTaskError | None = None  # raised once all others are done
        self._failures: collections.Counter[int] = collections.Counter()
        self._running: dict[Any, tuple[int, Future]] = {}
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()

    def run(self) -> None:
        """Have all units done; errors of the system may pass, and are raised after several attempts, others at once.

        Raises PoisonTaskError where a unit ends the workers that work on it, and what `Workers.look` does.
        """
        next_look = time.monotonic()
        try:
            while self._waiting or self._suspects or self._running:
                if time.monotonic() >= next_look:
                    self._workers.look()
                    next_look = time.monotonic() + POLL_SECONDS
                if self.client.status == "running":
                    self._submit()
                try:
                    future = self._ended.get(timeout=max(0.0, next_look - time.monotonic()))
                except queue.Empty:
                    continue
                if future.key in self._running:
                    self._take(future)
        finally:
            if self._running and self.client.status == "running":
                self.client.cancel([future for _, future in self._running.values()])
        if self._poisoned is not None:
            raise self._poisoned

    def _poison(self, number: int, error: KilledWorker) -> PoisonTaskError:
        """Return the error of a unit whose workers died each time."""
        poisoned = PoisonTaskError(
            f"stage {self.batch.stage}, block {self._place(number)}: workers died whenever they worked on it, also "
            "with nothing else of the stage at work: it needs more memory than a worker has, or compiled code crashed; "
            "give workers more memory, or start a new run with smaller blocks (--block-rows)"
        )
        poisoned.__cause__ = error
        return poisoned

    def _place(self, number: int) -> str:
        """Return the name of a unit, and its rows where it is a block or a block range."""
        unit = self.units[number]
        if self.batch.rows is None:
            return unit_name(unit)
        first, last = (unit[0], unit[-1]) if isinstance(unit, list | range) else (unit, unit)
        return f"{unit_name(unit)} (rows {self.batch.rows(first)[0]} to {self.batch.rows(last)[1] - 1} of its arrays)"

    def _recall(self) -> None:
        """Have the units that have not ended wait again."""
        recalled = [(number, future) for number, future in self._running.values() if future.status == "pending"]
        self.client.cancel([future for _, future in recalled])
        for number, future in recalled:
            del self._running[future.key]
            self._waiting.append(number)

    def _submit(self) -> None:
        limit = len(self.units) if self._workers.limit is None else self._workers.limit
        count = 0 if len(self._suspects) > MOST_SUSPECTS else min(len(self._waiting), limit - len(self._running))
        numbers = [self._waiting.popleft() for _ in range(count)]
        if not numbers and not self._running and self._suspects:
            numbers.append(self._suspects.popleft())
        if numbers:
            for number, future in zip(numbers, self.send(numbers, **self._workers.options), strict=True):
                self._running[future.key] = number, future
                future.add_done_callback(self._ended.put)

    def _take(self, future: Future) -> None:
        """Keep the result of a future that has ended, or have its unit tried again."""
        number, result = self._running[future.key][0], None
        if future.status == "finished" and self.keep is not None:
            try:
                result = future.result(timeout=ANSWER_SECONDS)
            except (OSError, CancelledError):  # its worker was lost with it: Dask computes it again
                future.add_done_callback(self._ended.put)
                return
        del self._running[future.key]
        if future.status == "finished":
            if self.keep is not None:
                self.keep(number, result)
            self.advance()
        elif future.status == "error":
            self._try_again(number, future.exception())
        else:  # cancelled, with the connection to the scheduler
            (self._suspects if number in self._killed else self._waiting).append(number)

    def _try_again(self, number: int, error: BaseException) -> None:
        """Have a failed unit tried again; raise its error where that is of no use."""
        if isinstance(error, KilledWorker):
            if number in self._killed:
                self._poisoned = self._poisoned or self._poison(number, error)
                if len(self._suspects) >= MOST_SUSPECTS:  # each may cost as many workers
                    raise self._poisoned
                return
            self._killed.add(number)
            self._suspects.append(number)
            if len(self._suspects) > MOST_SUSPECTS:
                self._recall()
            return
        self._failures[number] += 1
        may_pass = isinstance(error, OSError) and not isinstance(error, ScalemaniError)
        if not may_pass or self._failures[number] >= MOST_ATTEMPTS:
            raise error
        self._waiting.append(number)


def map_on_cluster(
    client: Client,
    function: Callable[[Any], Any],
    units: Sequence[Any],
    batch: Batch,
    advance: Callable[[], None],
    keep: Callable[[int, Any], Any] | None = None,
) -> None:
    """Call a function on every unit; parameters and errors are those of `Tasks`."""
    task = functools.partial(run_unit, cloudpickle.dumps(function), batch.cache)
    sent = itertools.count()
    prefix = f"{batch.stage}-{uuid.uuid4().hex[:8]}"

    def send(numbers: Sequence[int], **options: Any) -> list[Future]:
        keys = [(prefix, unit_name(units[number]), next(sent)) for number in numbers]
        return client.map(task, [units[number] for number in numbers], key=keys, pure=False, **options)

    Tasks(client, batch, send, units, advance, keep).run()


def compute_on_cluster(client: Client, values: Sequence[Delayed], stage: str, advance: Callable[[], None]) -> None:
    """Compute lazy values of Dask, whose results are small, in one go; errors are those of `Tasks`."""

    def send(numbers: Sequence[int], **options: Any) -> list[Future]:
        return client.compute([values[number] for number in numbers], **options)

    Tasks(client, Batch(stage), send, range(len(values)), advance).run()


@functools.lru_cache(maxsize=4)
def unpack(content: bytes) -> Callable[[Any], Any]:
    """Return a function from its bytes, unpacked once a process."""
    return pickle.loads(content)


def run_unit(content: bytes, scope: str, unit: Any) -> Any:
    """Return function(unit) on a worker; what tasks of another scope have shared is freed before."""
    PROCESS.start_scope(scope)
    function = unpack(content)
    BLAS.set_to_one()
    return function(unit)


def unit_name(unit: Any) -> str:
    """Return the number of a block, or the first and the last number of a run of blocks."""
    if not isinstance(unit, list | range):
        return str(unit)
    return f"{unit[0]} to {unit[-1]}" if len(unit) > 1 else str(unit[0])
