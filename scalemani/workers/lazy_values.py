"""Lazy values of Dask, computed in one go: what several of them are made from is then computed once."""

import queue
import time
from collections.abc import Callable, Sequence
from typing import Any

import dask
from dask.callbacks import Callback
from dask.delayed import Delayed
from distributed import Client, Future

from scalemani.errors import SchedulerLostError
from scalemani.workers.budget import Batch
from scalemani.workers.roster import ANSWER_SECONDS, Roster

POLL_SECONDS = 1.0  # between two looks at the workers


def compute_on_threads(values: Sequence[Delayed], threads: int, advance: Callable[[], None]) -> None:
    """Compute values on threads of this process; `advance` is called for each that is done."""
    keys = {value.key for value in values}

    def tell(key: Any, *_: Any) -> None:
        if key in keys:
            advance()

    with Callback(posttask=tell):
        dask.compute(*values, scheduler="threads", num_workers=threads)


def compute_on_cluster(
    client: Client, values: Sequence[Delayed], stage: str, advance: Callable[[], None], restore: Callable[[], None]
) -> None:
    """Compute values on the workers of a cluster, whose scheduler orders them.

    Parameters
    ----------
    client : of the cluster.
    values : what is computed; their results stay on the workers until all are done, so they are to be small.
    stage : for messages.
    advance : called for each value that is done.
    restore : called while workers are looked at; it may bring lost ones back.

    Raises
    ------
    WorkersLostError, SchedulerLostError
        Where there are no workers for long, or the scheduler does not answer or drops values.
    Exception
        What computing a value raises.
    """
    ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
    roster = Roster(client, Batch(stage), restore)
    futures = client.compute(list(values))
    try:
        for future in futures:
            future.add_done_callback(ended.put)
        n_left, next_look = len(futures), time.monotonic()
        while n_left:
            if time.monotonic() >= next_look:
                roster.refresh()
                roster.check_capacity()
                next_look = time.monotonic() + POLL_SECONDS
            try:
                check_finished(ended.get(timeout=POLL_SECONDS))
            except queue.Empty:
                continue
            advance()
            n_left -= 1
    finally:
        if client.status == "running":
            client.cancel(futures)


def check_finished(future: Future) -> None:
    """Raise what a value has raised, and SchedulerLostError where the scheduler has dropped it."""
    if future.status == "error":
        raise future.exception(timeout=ANSWER_SECONDS)
    if future.status != "finished":
        raise SchedulerLostError("the scheduler has dropped what it was to compute: run the same command again")
