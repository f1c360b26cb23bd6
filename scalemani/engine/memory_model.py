"""What a stage takes of memory and of the disk: bytes by what they are of, as sums of the shapes of arrays.

What is far below a hundredth of what its stage takes, for any points and parameters, is no term.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from scalemani.kernels.machine.code_cache import installed_code
from scalemani.kernels.machine.compile import PLAIN

Terms = Mapping[str, float]  # bytes by what they are of: the name that `scalemani plan --explain` prints
# Anonymous memory. With all machine code loaded, t-SNE with its doubt of 300 points takes 135 MB, and what allocators
# hold of earlier stages adds 80 MB for 30,000. Compiling its kernels adds 210 MB or more, held to the end.
LIBRARIES_BYTES, COMPILING_BYTES = 250 * 10**6, 250 * 10**6


@functools.cache
def of_process() -> Terms:
    """Return what a process takes before any array: room for a compiler where no wheel brings the machine code.

    Which kernels a cache lacks is known when they are called alone, so a cache saves no room.
    """
    libraries: Terms = {"Python and its libraries": LIBRARIES_BYTES}
    if PLAIN or installed_code().level is not None:
        return libraries
    return {**libraries, "compiling kernels (a reserve)": COMPILING_BYTES}


def process_bytes() -> int:
    """Return the bytes that a process takes before any array."""
    return int(sum(of_process().values()))


def array(dtype: DTypeLike, *shape: float) -> float:
    """Return the bytes of an array, of expected lengths too."""
    return float(np.prod(shape)) * np.dtype(dtype).itemsize


def entries(count: float, values: DTypeLike = np.float64) -> float:
    """Return the bytes of so many nonzeros of a sparse matrix: values, and columns as int32."""
    return array(values, count) + array("int32", count)


def _summed(*terms: Terms) -> Terms:
    """Return the terms of all, those of one name in sum."""
    some = [one for one in terms if one]
    if len(some) < 2:  # most of the hundreds that a plan adds
        return dict(some[0]) if some else {}
    return {
        name: sum(one.get(name, 0) for one in terms) for name in dict.fromkeys(name for one in terms for name in one)
    }


@dataclass(frozen=True)
class Memory:
    """What is in memory of a process: once, by each task at work, with a row a point, and in a cache if it has room.

    `points` are in files where memory has no room for them. `steps` follow each other; what one of them
    alone takes is released before the next: the largest counts.
    """

    process: Terms = field(default_factory=dict)
    task: Terms = field(default_factory=dict)
    points: Terms = field(default_factory=dict)
    cache: Terms = field(default_factory=dict)
    steps: Mapping[str, "Memory"] = field(default_factory=dict)

    def __add__(self, other: "Memory") -> "Memory":
        process, task, points, cache = map(_summed, self._terms, other._terms)
        names = dict.fromkeys([*self.steps, *other.steps])
        steps = {name: self.steps.get(name, Memory()) + other.steps.get(name, Memory()) for name in names}
        return Memory(process, task, points, cache, steps)

    @property
    def _terms(self) -> tuple[Terms, Terms, Terms, Terms]:
        return self.process, self.task, self.points, self.cache

    @property
    def by_step(self) -> dict[str, "Memory"]:
        """What is held in each step; one without a name where there are none."""
        common = Memory(*self._terms)
        return {name: common + step for name, step in self.steps.items()} or {"": common}

    @property
    def cached(self) -> int:
        """The bytes that a cache can put to use."""
        return int(max(sum(step.cache.values()) for step in self.by_step.values()))

    def total(self, n_tasks: int = 1) -> int:
        """Return the bytes of a process in which so many tasks are at work, without a cache."""
        if self.steps:
            return max(step.total(n_tasks) for step in self.by_step.values())
        return int(sum(self.process.values()) + sum(self.points.values()) + n_tasks * sum(self.task.values()))

    def with_cache(self, limit: int, in_memory: bool = True) -> "Memory":
        """Return what is held with a cache of so many bytes, and without what is in files if not `in_memory`."""
        return Memory(
            steps={
                name: Memory(
                    _summed(step.process, {"cache": min(limit, sum(step.cache.values()))}),
                    step.task,
                    step.points if in_memory else {},
                )
                for name, step in self.by_step.items()
            }
        )

    def listed(self, step: str = "") -> Iterator[tuple[str, float, str]]:
        """Yield name, bytes, and how often they are held, of each term, for people."""
        words = "a process", "a task", "a process, or in a file", "a cache"
        for word, terms in zip(words, self._terms, strict=True):
            for name, n_bytes in terms.items():
                yield name, n_bytes, f"{word}, step: {step}" if step else word
        for name, memory in self.steps.items():
            yield from memory.listed(name)


@dataclass(frozen=True)
class Disk:
    """What a stage writes, at most: what stays, and what goes when it ends, checkpoints say.

    `mapped` is what each process maps of the input where its cache has no room for it.
    """

    stored: Terms = field(default_factory=dict)
    passing: Terms = field(default_factory=dict)
    mapped: Terms = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The bytes that it takes of a disk while it runs, but for what is mapped."""
        return int(sum(self.stored.values()) + sum(self.passing.values()))

    def listed(self) -> Iterator[tuple[str, float, str]]:
        """Yield name, bytes, and how long they stay, of each term, for people."""
        words = "stored", "until the stage ends", "mapped by each process whose cache has no room"
        for word, terms in zip(words, (self.stored, self.passing, self.mapped), strict=True):
            for name, n_bytes in terms.items():
                yield name, n_bytes, word


class Budget(NamedTuple):
    """The threads of a process and the bytes it may use; None or 0 bytes: no limit."""

    threads: int
    memory: int | None

    def fit(self, memory: Memory) -> int:
        """Return how many tasks run side by side."""
        if not self.memory:
            return self.threads
        return next((n_tasks for n_tasks in range(self.threads, 0, -1) if memory.total(n_tasks) <= self.memory), 0)


@dataclass(frozen=True)
class Batch:
    """The tasks that an executor receives together: their stage, the cache they share, and what they take.

    `cache` names what a process keeps between tasks: a worker drops it when the first task of another cache comes.
    """

    stage: str = "a stage"
    cache: str = ""
    memory: Memory = field(default_factory=Memory)
