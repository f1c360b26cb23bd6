"""The seconds in which this process has compiled kernels: what is slow the first time, and not again."""

import threading
import time
from typing import Any

from numba.core import event


class CompileSeconds(event.Listener):
    """Adds up the time in which at least one thread compiles; what is loaded from a cache is not compiled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work, self._since, self._total = 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        """Take note that a thread compiles, or that what it compiles calls what is to be compiled."""
        with self._lock:
            self._at_work += 1
            if self._at_work == 1:
                self._since = time.monotonic()

    def on_end(self, event: Any) -> None:
        """Take note that one of these is done."""
        with self._lock:
            self._at_work -= 1
            if self._at_work == 0:
                self._total += time.monotonic() - self._since

    @property
    def total(self) -> float:
        """The seconds until this moment."""
        with self._lock:
            return self._total + (time.monotonic() - self._since if self._at_work else 0.0)


COMPILING = CompileSeconds()
event.register("numba:compile", COMPILING)
