"""How long a run still takes: what is expected of each stage, corrected by how long those took that are done."""

import threading
import time
from collections.abc import Callable, Mapping

TRUSTED_SECONDS = 1.0  # of expectation and of measurement that stand for as much as each other at the start
LEFT_SHARE = 0.1  # of a stage that takes longer than expected and does not tell how far it is


class RunClock:
    """Told what is expected of a run and when its stages begin and end, it tells how long the rest takes.

    One thread may tell it while another asks.

    Parameters
    ----------
    now : callable
        The clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._expected: dict[str, float] = {}  # of stages that have not ended
        self._stage, self._started = "", 0.0
        self._measured = self._foreseen = TRUSTED_SECONDS

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Take note of the stages to do, and about how many seconds each takes, on whatever machine."""
        with self._lock:
            self._expected = dict(seconds)

    def begin(self, stage: str) -> None:
        """Take note that a stage begins."""
        with self._lock:
            self._stage, self._started = stage, self._now()

    def end(self, stage: str, compiling: float = 0.0) -> float:
        """Take note that a stage has ended, and return its seconds; those spent on compiling say nothing of others."""
        with self._lock:
            seconds = self._now() - self._started if stage == self._stage else 0.0
            foreseen = self._expected.pop(stage, None)
            if foreseen is not None and stage == self._stage:
                self._measured += max(seconds - compiling, 0.0)
                self._foreseen += foreseen
            self._stage = ""
        return seconds

    def remaining(self, share: float = 0.0) -> float | None:
        """Return about how many seconds the run still takes; None where nothing was expected of the stage at work.

        Parameters
        ----------
        share : of the units of the stage at work that are done; what is above 1 is all of them
        """
        with self._lock:
            if self._stage not in self._expected:
                return None
            factor = self._measured / self._foreseen
            rest = factor * sum(seconds for stage, seconds in self._expected.items() if stage != self._stage)
            elapsed, foreseen = self._now() - self._started, factor * self._expected[self._stage]
        share = min(share, 1.0)
        by_clock = max(foreseen - elapsed, LEFT_SHARE * foreseen)
        by_units = elapsed * (1 - share) / share if share else by_clock
        return rest + share * by_units + (1 - share) * by_clock


def duration_text(seconds: float) -> str:
    """Return seconds as people say them: 45 s, 2 min 10 s, 3 h 20 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
