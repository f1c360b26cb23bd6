"""Asking again: servers throttle, fail and restart, and a run of hours outlives that."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 5.0
GIVE_UP_SECONDS = 90.0
# Names of what the clients of object stores raise for themselves, beside errors of the operating system.
PASSING_NAMES = ("Connect", "Timeout", "HTTPClient", "Incomplete", "ResponseParser", "ServerDisconnected", "Payload")


def retried(
    ask: Callable[[], Answer], passing: Callable[[Exception], bool], give_up_seconds: float = GIVE_UP_SECONDS
) -> Answer:
    """Return what `ask` returns; ask again while its error is `passing`, for `give_up_seconds` at the most.

    Waits double from a tenth of a second to five seconds, each drawn between half of itself and all of it, so that
    many workers do not come back in step.
    """
    started, wait = time.monotonic(), FIRST_WAIT_SECONDS
    while True:
        try:
            return ask()
        except Exception as error:
            if not passing(error) or time.monotonic() - started + wait > give_up_seconds:
                raise
        time.sleep(wait * random.uniform(0.5, 1.0))
        wait = min(2 * wait, LONGEST_WAIT_SECONDS)


def may_pass(error: Exception) -> bool:
    """Return whether an error of a file system behind a URL may pass: all but what is missing, forbidden or damaged."""
    if isinstance(error, FileNotFoundError | PermissionError):
        return False
    return isinstance(error, OSError) or any(word in type(error).__name__ for word in PASSING_NAMES)
