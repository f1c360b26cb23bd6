"""Threads that work panels off: each takes the next one when it is done with its last."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


class Threads:
    """Threads for panels: the calling one, and others that wait between calls.

    A call hands one job to every other thread, however many panels there are. To hand over each panel by itself takes
    20 to 40 us, as long as many a panel does: a quarter of an iteration of a descent of 70,000 points.
    """

    def __init__(self, count: int, others: ThreadPoolExecutor) -> None:
        self.count, self._others = count, others

    def over(self, function: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        """Return function(unit) of all units, in order, as the builtin `map` does.

        Where a call fails, no further unit is begun. Calls from within a call work off their units too.
        """
        results: list[Any] = [None] * len(units)
        numbers = iter(range(len(units)))  # threads share it: none gets a number that another one has

        def work_off() -> None:
            try:
                for number in numbers:
                    results[number] = function(units[number])
            except BaseException:
                _exhaust(numbers)
                raise

        jobs = [self._others.submit(work_off) for _ in range(min(self.count, len(units)) - 1)]
        try:
            work_off()
        finally:
            errors = [error for job in jobs if (error := _error_of(job))]
        if errors:
            raise errors[0]
        return results


def _exhaust(numbers: Iterator[int]) -> None:
    for _ in numbers:
        pass


def _error_of(job: Future[None]) -> BaseException | None:
    """Return what a job ended with; one that no thread has begun has nothing left to do."""
    return None if job.cancel() else job.exception()


@contextmanager
def threads(count: int) -> Iterator[Threads]:
    """Yield so many threads, the calling one among them; the others end with the block.

    They are no threads that a process keeps: those are not there in one that was forked.
    """
    with ThreadPoolExecutor(max(count - 1, 1), thread_name_prefix="panels") as others:
        yield Threads(count, others)
