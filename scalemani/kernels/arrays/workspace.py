"""Where a kernel works: the threads that run its panels side by side, and where its large arrays lie.

Large arrays have a row for every point or node. A caller that is short of memory has them made in mapped files. That
changes what a computation costs, and no bit of its result.
"""

import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from scalemani.kernels.arrays.tiles import Mapper

Empty = Callable[[tuple[int, ...], DTypeLike], np.ndarray]

LEAST_BYTES = 2**18  # of smaller arrays the allocator keeps the memory itself


class Workspace(NamedTuple):
    """What a caller lends to a kernel.

    `over` has the signature of the builtin `map` and runs panels of rows, side by side where it can; `empty` has that
    of `numpy.empty` and makes large arrays. The default is one thread, and memory.
    """

    over: Mapper = map
    empty: Empty = np.empty

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return a large array of zeros."""
        made = self.empty(shape, dtype)
        made[...] = 0
        return made

    def as_large(self, values: np.ndarray) -> np.ndarray:
        """Return values as a large array: themselves where these are ordinary ones, else a copy."""
        if self.empty is np.empty:
            return values
        made = self.empty(values.shape, values.dtype)
        made[...] = values
        return made

    def concatenate(self, arrays: Sequence[np.ndarray], dtype: DTypeLike | None = None) -> np.ndarray:
        """Return arrays one after the other as a large array, by default of the dtype of the first."""
        made = self.empty((sum(map(len, arrays)), *arrays[0].shape[1:]), arrays[0].dtype if dtype is None else dtype)
        return np.concatenate(arrays, out=made, casting="unsafe")


IN_MEMORY = Workspace()


class Recycled:
    """Makes arrays whose memory is used again: its method `empty` stands in for `numpy.empty`.

    Memory that is freed goes back to the system, which hands out cleared pages for the next array: at ten million
    points that is a fifth of a descent. Here it waits for an array of as many bytes: of each size there is as much as
    was in use at one time. All goes back when the object and its arrays are gone.
    """

    def __init__(self) -> None:
        self._left: dict[int, list[np.ndarray]] = defaultdict(list)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return an array of any values; its memory comes back when it and all views of it are gone."""
        n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if n_bytes < LEAST_BYTES:
            return np.empty(shape, dtype)
        left = self._left[n_bytes]
        try:
            memory = left.pop()
        except IndexError:
            memory = np.empty(n_bytes, np.uint8)
        # Views of an array refer to the one that lies over a memoryview, and keep it.
        made = np.frombuffer(memoryview(memory), dtype)
        weakref.finalize(made, left.append, memory).atexit = False
        return made.reshape(shape)


def recycling(over: Mapper = map) -> Workspace:
    """Return a workspace whose large arrays take the memory that earlier ones have left."""
    return Workspace(over, Recycled().empty)


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
