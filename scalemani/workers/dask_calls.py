"""What is asked of Dask's `distributed` beyond its public calls.

On the driver these wait for as long as a cluster is silent. The private coroutine `Client._run` and operations of the
scheduler take a limit. On workers none of them tells whether messages were sent, which `Worker.batched_stream` does.
They are called here and nowhere else, and tests hold them to what is said below.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from distributed import Client, Future, get_worker

LOOK_SECONDS = 0.001
SEND_SECONDS = 0.1  # after which a scheduler is gone, or slow


def ask_scheduler(client: Client, operation: str, seconds: float, **arguments: Any) -> Any:
    """Return the answer of the scheduler to one of its operations, such as `ncores`.

    Raises OSError or TimeoutError where there is none in time.
    """
    return client.sync(getattr(client.scheduler, operation), callback_timeout=seconds, **arguments)


def results_at_hand(client: Client, futures: Sequence[Future], seconds: float) -> dict[str, Any]:
    """Return the results of finished futures by their keys; those that went with a worker are left out.

    `Client.gather` would wait for these until they are computed again, and keep the others back for as long.
    Raises OSError or TimeoutError where no answer comes in time.
    """
    keys = {future.key for future in futures}
    while keys:
        answer = ask_scheduler(client, "gather", seconds, keys=sorted(keys))
        if answer["status"] == "OK":
            return dict(answer["data"])
        keys -= set(answer["keys"])
    return {}


def run_on_workers(client: Client, function: Callable[..., Any], *arguments: Any, seconds: float) -> dict[str, Any]:
    """Return what function(*arguments) returns on each worker, by its address; what it raises is returned as well.

    Raises OSError or TimeoutError where a worker does not answer in time.
    """
    asked: dict[str, Any] = {"on_error": "return", "callback_timeout": seconds}
    return dict(client.sync(client._run, function, *arguments, **asked))


def send_messages() -> None:
    """Wait, in a task, until its worker has sent what it had to say of earlier ones.

    A worker says some milliseconds later that a task has ended, and begins the next at once. Where that ends the
    worker, nobody would know which of them did.
    """
    worker, sent = get_worker(), threading.Event()

    def look() -> None:
        if worker.batched_stream.buffer:
            worker.loop.call_later(LOOK_SECONDS, look)
        else:
            sent.set()

    worker.loop.add_callback(look)
    sent.wait(SEND_SECONDS)
