"""What a stage holds in memory and what it writes: lists of arrays with names, which one function each adds up.

Steps of a stage follow each other, and what one of them holds alone is gone in the next: the largest step counts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

PROCESS_BYTES = 650 * 10**6  # the interpreter with numpy, scipy, numba, zarr and Dask loaded and the kernels compiled


class Span(StrEnum):
    """How often an array is held: the word that a user reads."""

    EACH_PROCESS = "a process"  # once, while the stage runs
    EACH_TASK = "a task"  # by each task at work
    CACHE = "a cache"  # as much as there is room for
    GROWING = "a process, or mapped"  # with a row a point: in mapped files where memory has no room
    LOOKED_UP = "a process, or in a file"  # the same of which tasks copy out rows: in files that are not mapped


class Stay(StrEnum):
    """What becomes of what is written: the word that a user reads."""

    STORED = "stored"
    PASSING = "until the stage ends"  # checkpoints
    ENCODED = "stored, as the survey saw it encoded"  # rows of the points
    MAPPED = "mapped by each process whose cache has no room"  # input that is looked up by row


EACH_PROCESS, EACH_TASK, CACHE, GROWING, LOOKED_UP = Span
STORED, PASSING, ENCODED, MAPPED = Stay


class Arrays:
    """Arrays of one kind: `copies` of (rows, columns)."""

    rows: float
    columns: float
    dtype: DTypeLike
    copies: float

    @property
    def bytes(self) -> int:
        """The bytes of all copies."""
        return int(self.rows * self.columns * self.copies * np.dtype(self.dtype).itemsize)


@dataclass(frozen=True)
class Held(Arrays):
    """Arrays of one kind that are in memory: `copies` of (rows, columns), in all steps of the stage or in one."""

    name: str
    span: Span
    rows: float
    columns: float = 1
    dtype: DTypeLike = np.float64
    copies: float = 1
    step: str = ""


def entries_held(
    name: str, span: Span, count: float, copies: float = 1, step: str = "", values: DTypeLike = np.float64
) -> list[Held]:
    """List the values of so many nonzeros of a sparse matrix, and their columns as int32."""
    return [
        Held(f"values of {name}", span, count, 1, values, copies, step),
        Held(f"columns of {name}", span, count, 1, "int32", copies, step),
    ]


@dataclass(frozen=True)
class Written(Arrays):
    """Arrays of one kind that are written: `copies` of (rows, columns), before they are compressed."""

    name: str
    stay: Stay
    rows: float
    columns: float = 1
    dtype: DTypeLike = np.float64
    copies: float = 1


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


class DiskNeed(NamedTuple):
    """Bytes a stage writes, at most: what stays, and what goes when it ends, checkpoints say.

    `points` are rows of the points that it stores as they are, which the plan knows the encoded size of; `uncached`,
    bytes of its input that each process maps where its cache has no room for them.
    """

    stored: int = 0
    passing: int = 0
    points: int = 0
    uncached: int = 0


def memory_need(held: Sequence[Held]) -> MemoryNeed:
    """Return what a stage needs of memory, which covers each of its steps for any number of tasks."""
    steps = [span_bytes(held, step) for step in steps_of(held)]
    per_task = max(step[EACH_TASK] for step in steps)
    with_task = max(step[EACH_PROCESS] + step[EACH_TASK] for step in steps)
    with_all = max(step[EACH_PROCESS] + step[EACH_TASK] + step[GROWING] + step[LOOKED_UP] for step in steps)
    cache = max(step[CACHE] for step in steps)
    return MemoryNeed(with_task - per_task, per_task, cache, with_all - with_task)


def steps_of(held: Iterable[Held]) -> list[str]:
    """Return the steps of a stage in order; the empty name where it has none."""
    return list(dict.fromkeys(record.step for record in held if record.step)) or [""]


def span_bytes(held: Iterable[Held], step: str) -> dict[Span, int]:
    """Return the bytes in memory in a step, by how often they are held."""
    sums = dict.fromkeys(Span, 0)
    for record in held:
        if record.step in ("", step):
            sums[record.span] += record.bytes
    return sums


def disk_need(written: Iterable[Written]) -> DiskNeed:
    """Return what a stage needs of the disk."""
    sums = dict.fromkeys(Stay, 0)
    for record in written:
        sums[record.stay] += int(record.rows * record.copies) if record.stay == ENCODED else record.bytes
    return DiskNeed(sums[STORED], sums[PASSING], sums[ENCODED], sums[MAPPED])
