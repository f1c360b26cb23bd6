"""What a stage needs of memory, and how many of its tasks run side by side in the budget of a process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

PROCESS_BYTES = 650 * 10**6  # the interpreter with numpy, scipy, numba, zarr and Dask loaded and the kernels compiled


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes a stage needs: once a process, for each task at work, and what a cache of blocks can put to use.

    `growing` are those of arrays with a row a point: in memory in each process where that leaves room for all tasks,
    in files where it does not.
    """

    fixed: int = 0
    per_task: int = 0
    cache: int = 0
    growing: int = 0

    @property
    def shared(self) -> int:
        """Bytes of a process, however many tasks are at work."""
        return self.fixed + self.cache + self.growing

    def total(self, n_tasks: int) -> int:
        """Return the bytes of a process in which so many tasks are at work."""
        return self.shared + n_tasks * self.per_task


class Budget(NamedTuple):
    """The threads of a process and the bytes it may use; None or 0 bytes: no limit."""

    threads: int
    memory: int | None

    def fit(self, need: MemoryNeed) -> int:
        """Return how many tasks run side by side."""
        if not self.memory:
            return self.threads
        room = self.memory - need.shared
        if need.per_task == 0:
            return self.threads if room >= 0 else 0
        return max(0, min(self.threads, room // need.per_task))


@dataclass(frozen=True)
class Batch:
    """The tasks that an executor is given together: their stage, the cache they share, and what they need.

    `cache` names what a process keeps between tasks: a worker drops it when the first task of another cache comes.
    `rows` gives the first row of a block and the one after its last, where tasks are blocks or block ranges.
    """

    stage: str = "a stage"
    cache: str = ""
    need: MemoryNeed = MemoryNeed()
    rows: Callable[[int], tuple[int, int]] | None = None
