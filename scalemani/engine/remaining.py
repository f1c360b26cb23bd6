"""How long a run still takes: what is expected of its stages, corrected by how long those took that have ended."""

import time
from collections.abc import Callable, Mapping

TRUSTED_SECONDS = 1.0  # of expectation and of measurement that stand for as much as each other at the start
LEFT_SHARE = 0.1  # of the time that a stage has taken which takes longer than expected


class RunClock:
    """Told when the stages of a run begin and end, it tells how long the rest takes.

    Parameters
    ----------
    expected : seconds of each stage to do, on whatever machine; what they are to each other counts
    now : the clock, in seconds
    """

    def __init__(self, expected: Mapping[str, float], now: Callable[[], float] = time.monotonic) -> None:
        self._expected, self._now = dict(expected), now
        self._stage, self._began = "", now()
        self._measured = self._foreseen = TRUSTED_SECONDS

    def begin(self, stage: str) -> None:
        """Take note that a stage begins."""
        self._began = self._now()
        self._stage = stage  # last: who reads it finds when it began

    def end(self) -> None:
        """Take note that the stage at work has ended."""
        self._measured += self._now() - self._began
        self._foreseen += self._expected.get(self._stage, 0.0)
        # A new one: another thread may read the one before.
        self._expected = {stage: seconds for stage, seconds in self._expected.items() if stage != self._stage}
        self._stage = ""

    def remaining(self) -> float:
        """Return about how many seconds the run still takes; another thread than that of the run may ask."""
        expected, at_work = self._expected, self._expected.get(self._stage)
        elapsed = self._now() - self._began
        if at_work is None:  # between two stages
            return self._measured / self._foreseen * sum(expected.values())
        overdue = (self._measured + elapsed) / (self._foreseen + at_work)
        factor = max(self._measured / self._foreseen, overdue)
        return factor * (sum(expected.values()) - at_work) + max(factor * at_work - elapsed, LEFT_SHARE * elapsed)
