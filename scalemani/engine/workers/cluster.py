"""Tasks on the workers of a Dask cluster, as many at once as fit into their memory.

Dask queues tasks, balances them, and runs those of lost workers again. Where workers died each time, it gives a task up
with `KilledWorker`; another task of theirs may have ended them. The unit of such a task is tried once more before any
other is sent, once those at work have ended, and named where its workers die again.
"""

import collections
import contextlib
import functools
import itertools
import pickle
import queue
import time
import uuid
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import cloudpickle
from dask.delayed import Delayed
from distributed import Client, Future, KilledWorker

from scalemani.engine.memory.process import PROCESS
from scalemani.engine.needs import Batch, Memory
from scalemani.engine.workers.blas import BLAS
from scalemani.engine.workers.clients import ANSWER_SECONDS, RESOURCE, budget_of, described_workers
from scalemani.errors import PoisonTaskError, ScalemaniError, SchedulerLostError, WorkersLostError

MOST_ATTEMPTS = 4  # at a unit that fails with errors that may pass
MOST_SUSPECTS = 4  # units that Dask ended with KilledWorker; of more, the first that ends its workers ends the stage
QUEUED = 2  # tasks for each that runs, where Dask does not queue them itself but gives all to workers
POLL_SECONDS = 1.0  # between two looks at the workers
WORKERS_LOST_SECONDS = 75.0
RESUME = "run the same command again to resume"
LOST = f"the scheduler has not answered: start one again, and with its address {RESUME}"
Result = TypeVar("Result")


@dataclass
class Tasks:
    """Units of work on their way through a cluster: waiting, running, done.

    `send` submits the units of some numbers with options of `Client.map`, and returns a future each; `units` give
    their names in messages. `advance` is called for each unit that is done; results are fetched where `fetch`.
    """

    client: Client
    batch: Batch
    send: Callable[..., list[Future]]
    units: Sequence[Any]
    advance: Callable[[], None]
    fetch: bool = False

    def __post_init__(self) -> None:
        self._waiting = collections.deque(range(len(self.units)))
        self._running: dict[Future, int] = {}
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._failures: collections.Counter[int] = collections.Counter()
        self._killed: set[int] = set()  # units that Dask ended with KilledWorker, once
        self._suspects: collections.deque[int] = collections.deque()  # those of them to be tried alone
        self._poisoned: PoisonTaskError | None = None  # raised once all others are done
        self._limit: int | None = 1  # of tasks in flight; None: none
        self._options: dict[str, Any] = {}
        self._able, self._next_look = time.monotonic(), 0.0

    def run(self) -> Iterator[tuple[int, Any]]:
        """Yield the numbers of units as they are done, and their results.

        Errors of the system may pass, and are raised after several attempts, others at once. Raises PoisonTaskError
        where a unit ends the workers that work on it, SchedulerLostError and WorkersLostError where there are none.
        """
        try:
            while self._waiting or self._suspects or self._running:
                if self.client.status == "closed":  # as Dask does where it cannot connect again
                    raise SchedulerLostError(LOST)
                if self.client.status == "running":
                    self._look()
                    self._submit()
                with contextlib.suppress(queue.Empty):
                    yield from self._take(self._ended.get(timeout=POLL_SECONDS))
        finally:
            if self._running and self.client.status == "running":
                self.client.cancel(list(self._running))
        if self._poisoned is not None:
            raise self._poisoned

    def _look(self) -> None:
        """Find out, every POLL_SECONDS, which workers there are, and have tasks in flight follow."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + POLL_SECONDS
        try:
            workers = described_workers(self.client)
        except (OSError, CancelledError) as error:
            if now - self._able > WORKERS_LOST_SECONDS:
                raise SchedulerLostError(LOST) from error
            return
        before, (self._limit, self._options) = self._options, room_of(workers, self.batch.memory)
        # Dask pauses workers at four fifths of their limit: one whose tables take as much stays so.
        if any(budget_of(one).fit(self.batch.memory) and one.get("status") != "paused" for one in workers.values()):
            self._able = now
        elif now - self._able > WORKERS_LOST_SECONDS:
            lost = "none has the memory for one task" if workers else "none is there"
            raise WorkersLostError(
                f"stage {self.batch.stage} has no worker: {lost}, for {now - self._able:.0f} s; start workers (of "
                f"enough memory), and {RESUME}"
            )
        if self._options != before:
            self._recall()

    def _submit(self) -> None:
        """Send as many units as may run; a suspect alone, once nothing else runs, and nothing next to it."""
        if self._suspects:
            numbers = [] if self._running else [self._suspects.popleft()]
        elif len(self._running) == 1 and self._killed.intersection(self._running.values()):
            numbers = []
        else:
            room = len(self._waiting) if self._limit is None else self._limit - len(self._running)
            numbers = [self._waiting.popleft() for _ in range(min(len(self._waiting), room))]
        if numbers:
            for number, future in zip(numbers, self.send(numbers, **self._options), strict=True):
                self._running[future] = number
                future.add_done_callback(self._ended.put)

    def _recall(self) -> None:
        """Have the units wait again that no worker has received: what one works on cannot be taken from it."""
        with contextlib.suppress(OSError):
            processing = {key for keys in self.client.processing().values() for key in keys}
            recalled = [one for one in self._running if one.status == "pending" and one.key not in processing]
            self.client.cancel(recalled)
            for future in reversed(recalled):
                number = self._running.pop(future)
                self._queue_of(number).appendleft(number)

    def _queue_of(self, number: int) -> collections.deque[int]:
        return self._suspects if number in self._killed else self._waiting

    def _take(self, future: Future) -> Iterator[tuple[int, Any]]:
        """Yield the unit of a future that has ended, and its result, or have it tried again."""
        if future not in self._running:  # recalled
            return
        try:
            result = future.result(timeout=ANSWER_SECONDS) if self.fetch and future.status == "finished" else None
        except (OSError, CancelledError):  # its worker was lost with it: Dask computes it again
            future.add_done_callback(self._ended.put)
            return
        number = self._running.pop(future)
        if future.status == "finished":
            self.advance()
            yield number, result
        elif future.status == "error":
            self._try_again(number, future.exception())
        else:  # cancelled, with the connection to the scheduler
            self._queue_of(number).appendleft(number)

    def _try_again(self, number: int, error: BaseException) -> None:
        """Have a failed unit tried again; raise its error where that is of no use."""
        if isinstance(error, KilledWorker) and number not in self._killed:
            self._killed.add(number)
            self._suspects.append(number)
            self._recall()
        elif isinstance(error, KilledWorker):
            self._poisoned = self._poisoned or self._poison(number, error)
            if len(self._killed) > MOST_SUSPECTS:  # each may cost as many workers
                raise self._poisoned
        else:
            self._failures[number] += 1
            may_pass = isinstance(error, OSError) and not isinstance(error, ScalemaniError)
            if not may_pass or self._failures[number] >= MOST_ATTEMPTS:
                raise error
            self._queue_of(number).append(number)

    def _poison(self, number: int, error: KilledWorker) -> PoisonTaskError:
        """Return the error of a unit whose workers died each time."""
        poisoned = PoisonTaskError(
            f"stage {self.batch.stage}, block {unit_name(self.units[number], self.batch.rows)}: workers died whenever "
            "they worked on it, also with nothing else of the stage at work: it needs more memory than a worker has, "
            "or compiled code crashed; give workers more memory, or start a new run with smaller blocks (--block-rows)"
        )
        poisoned.__cause__ = error
        return poisoned


def room_of(workers: Mapping[str, Any], memory: Memory) -> tuple[int | None, dict[str, Any]]:
    """Return how many tasks may be in flight (None: all) on the workers that a scheduler describes, and their options.

    Where workers declare `bytes`, Dask divides these among tasks; elsewhere no more are sent than fit.
    """
    fits = {name: budget_of(one).fit(memory) for name, one in workers.items()}
    roomy, room = [name for name, fit in fits.items() if fit], sum(fits.values())
    if roomy and any(RESOURCE in one.get("resources", {}) for one in workers.values()):
        least = min(fits[name] for name in roomy)
        share = -(-memory.total(least) // least)
        return QUEUED * room, {"resources": {RESOURCE: share}}
    if 0 < len(roomy) < len(fits):
        return room, {"workers": roomy}
    if roomy and all(fits[name] == one["nthreads"] for name, one in workers.items()):
        return None, {}
    return room if workers else 1, {}


def map_on_cluster(
    client: Client,
    function: Callable[[Any], Any],
    units: Sequence[Any],
    batch: Batch,
    advance: Callable[[], None],
    fetch: bool = False,
) -> Iterator[Any]:
    """Yield function(unit) of every unit, in their order, or nothing but None; what else is said of `Tasks` holds."""
    task = functools.partial(run_unit, cloudpickle.dumps(function), batch.cache)
    sent, prefix = itertools.count(), f"{batch.stage}-{uuid.uuid4().hex[:8]}"

    def send(numbers: Sequence[int], **options: Any) -> list[Future]:
        keys = [(prefix, unit_name(units[number]), next(sent)) for number in numbers]
        return client.map(task, [units[number] for number in numbers], key=keys, pure=False, **options)

    return in_order(Tasks(client, batch, send, units, advance, fetch).run())


def compute_on_cluster(client: Client, values: Sequence[Delayed], stage: str, advance: Callable[[], None]) -> None:
    """Compute lazy values of Dask, whose results are not fetched; errors are those of `Tasks`."""

    def send(numbers: Sequence[int], **options: Any) -> list[Future]:
        return client.compute([values[number] for number in numbers], **options)

    collections.deque(Tasks(client, Batch(stage), send, range(len(values)), advance).run(), maxlen=0)


def in_order(results: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Yield numbered results in the order of their numbers; they come in any order."""
    early: dict[int, Result] = {}
    following = 0
    for number, result in results:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1


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


def unit_name(unit: Any, rows: Callable[[int], tuple[int, int]] | None = None) -> str:
    """Return the number of a block, or the first and last of a block range; with `rows` of blocks, these too."""
    first, last = (unit[0], unit[-1]) if isinstance(unit, list | range) else (unit, unit)
    name = str(first) if first == last else f"{first} to {last}"
    return name if rows is None else f"{name} (rows {rows(first)[0]} to {rows(last)[1] - 1} of its arrays)"
