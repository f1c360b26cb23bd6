"""The context of a stage: its task, the points where it reads these, and the ways to map and fold over blocks."""

import contextlib
import functools
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from scalemani.engine.memory.files import MappedArrays
from scalemani.engine.needs import Batch
from scalemani.engine.task import StageTask
from scalemani.engine.workers.executor import Combine, Executor
from scalemani.errors import ScalemaniWarning
from scalemani.io.sources import PointsSource
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.store.groups import block_unit
from scalemani.store.schema import ArrayDescription

MOST_PARTS = 512  # of a sum that reach the driver: more than the tasks that most clusters run at once
LEDGER_VARIABLE, PARTS_LEDGER = "SCALEMANI_LEDGER", ".parts"
DIMENSIONS, EXTREMES = "dimensions.json", "extremes.json"  # of the points, in their stage
Arrays = Mapping[ArrayDescription, np.ndarray]
Part = TypeVar("Part")


@dataclass(frozen=True)
class PointsInput:
    """What the stage `points` ingests: a source, and of its survey tiles, constant features and extremes as stored."""

    source: PointsSource
    tile_digests: tuple[str, ...]
    constant_features: int
    extremes: Mapping[str, Any] | None = None


BlockFunction = Callable[[StageTask, int], Arrays]
RangeFunction = Callable[[StageTask, Sequence[int]], Iterable[tuple[int, Arrays]]]
FoldFunction = Callable[[StageTask, Any], Any]


@dataclass(frozen=True)
class StageWork:
    """A stage at work: its task, where tasks run, how many at once in all and in one process, and of which batch.

    `points` is what the stage `points` reads; all other stages read groups of the store alone. `warnings` are the kinds
    and texts of those issued so far.
    """

    task: StageTask
    executor: Executor
    at_once: int
    in_one_process: int = 1
    batch: Batch = field(default_factory=Batch)
    points: PointsInput | None = None
    warnings: list[tuple[str, str]] = field(default_factory=list)

    def warn(self, message: str, kind: type[ScalemaniWarning] = ScalemaniWarning) -> None:
        """Warn users of the result, and note the warning for its record."""
        self.executor.progress.warn(message, kind)
        self.warnings.append((kind.__name__, message))

    def workspace(self) -> Workspace:
        """Return where kernels work: on this process's threads, with large arrays mapped where memory has no room."""
        if self.task.in_memory:
            return Workspace(self.executor.over)
        return Workspace(self.executor.over, MappedArrays(self.task.output.objects.scratch_folder).empty)

    def map_blocks(self, function: BlockFunction, step: str = "", count: int | None = None) -> None:
        """Compute and write every block that is missing; `function` returns the arrays of its block.

        These are rows of arrays, or parts that are as long as they happen to be, of which a step may have a `count`.
        """
        self._map(functools.partial(one_by_one, function), step, count=count)

    def map_blocks_here(self, function: BlockFunction, sequential: bool = False) -> None:
        """As `map_blocks`, on threads of this process: for blocks of what only this process holds.

        `sequential` computes them one by one, in their order.
        """
        write = functools.partial(write_blocks, functools.partial(one_by_one, function), "", self.task)
        self.executor.map_locally(write, self._missing(), sequential, self.at_once)
        self.task.output.refresh()

    def map_block_ranges(self, function: RangeFunction, blocks: int, step: str = "") -> None:
        """Compute and write missing blocks, `blocks` at a time in one task: for work that has to read all its input."""
        self._map(function, step, blocks)

    def fold(
        self,
        function: FoldFunction,
        combine: Combine,
        ranges: Sequence[Any],
        shown: str = "",
        batch: Batch | None = None,
    ) -> Any:
        """Return function(task, range) of all ranges of blocks or tiles, which have a `start`, combined in order."""
        self.executor.progress.start(shown or self.task.stage, len(ranges), "part")
        part = functools.partial(part_of_fold, function, shown or "part", self.task)
        return self.executor.fold(part, combine, ranges, self.at_once, batch or self.batch)

    def fold_blocks(self, function: Callable[[StageTask, int], Any], combine: Combine, shown: str = "") -> Any:
        """Return function(task, block) of all blocks, combined in order, for the most part where it is computed."""
        ranges = ranges_of(self.task.dimensions.n_blocks)
        return self.fold(functools.partial(folded, function, combine), combine, ranges, shown, self._block_batch)

    def blocks_per_range(self, bytes_per_block: int) -> int:
        """Return how many blocks a range has: as many as the cache of a process holds, and a range for every task."""
        fit = max(1, self.task.cache_bytes // self.in_one_process // bytes_per_block)
        return min(fit, -(-self.task.dimensions.n_blocks // self.at_once))

    @property
    def _block_batch(self) -> Batch:
        """The batch of tasks that are blocks or block ranges: their rows can be named."""
        return replace(self.batch, rows=self.task.dimensions.rows)

    def _map(self, function: RangeFunction, step: str, together: int = 1, count: int | None = None) -> None:
        write = functools.partial(write_blocks, function, step, self.task)
        batch = self._block_batch if count is None else self.batch
        self.executor.each(write, self._missing(step, together, count), self.at_once, batch)
        self.task.output.refresh()

    def _missing(self, step: str = "", together: int = 1, count: int | None = None) -> list[list[int]]:
        """Return the blocks that are missing, in ranges of so many `together`, and start their progress.

        `count` is that of the parts of a step, None that of the blocks.
        """
        blocks = range(self.task.dimensions.n_blocks if count is None else count)
        missing = [block for block in blocks if not self.task.output.committed(block_unit(block, step))]
        ranges = [list(blocks) for _, blocks in itertools.groupby(missing, lambda block: block // together)]
        self.executor.progress.start(self.task.stage, len(ranges), "part" if together > 1 else "block")
        return ranges


def part_of_fold(function: FoldFunction, name: str, task: StageTask, part: Any) -> Any:
    """Compute what a range of blocks or tiles adds to a fold."""
    with write_ledger(task.stage, f"{task.output.path}/{block_unit(part.start, name)}", PARTS_LEDGER):
        return function(task, part)


@contextlib.contextmanager
def write_ledger(stage: str, unit: str, suffix: str = "") -> Iterator[None]:
    """Append a line to the ledger of finished units, where the environment names one: process, begin and seconds.

    What is not stored, and is computed again when a run is resumed, has a separate ledger, with a `suffix`.
    """
    started = time.time()
    yield
    path = os.environ.get(LEDGER_VARIABLE)
    if path:
        with Path(path + suffix).open("ab", buffering=0) as file:  # a line by one call: processes append in parallel
            file.write(f"{stage} {unit} {os.getpid()}:{started:.3f}:{time.time() - started:.3f}\n".encode())


def one_by_one(function: BlockFunction, task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, Arrays]]:
    """Yield blocks and their arrays."""
    for block in blocks:
        yield block, function(task, block)


def write_blocks(function: RangeFunction, step: str, task: StageTask, blocks: Sequence[int]) -> None:
    """Compute blocks in one go and commit each; the first one's seconds hold what was computed for all of them.

    A task may run twice: when its worker died after the commit, or was taken for dead. Committed blocks are skipped.

    Parameters
    ----------
    function : yields blocks and their arrays, in the order of its argument `blocks`
    step : of the stage, in the names of what it writes; empty where it has one
    """
    missing = [block for block in blocks if not task.output.committed_by_now(block_unit(block, step))]
    computed = iter(function(task, missing) if missing else ())
    for block in missing:
        with write_ledger(task.stage, f"{task.output.path}/{block_unit(block, step)}"):
            task.output.write_block(*next(computed), step)


def ranges_of(count: int, together: int = 1) -> list[range]:
    """Return the numbers below `count` as at most MOST_PARTS ranges of at least `together`, a function of both."""
    width = max(together, -(-count // MOST_PARTS))
    return [range(start, min(start + width, count)) for start in range(0, count, width)]


def folded(
    function: Callable[[Any, int], Part], combine: Callable[[Part, Part], Part], task: Any, part: Sequence[int]
) -> Part:
    """Return function(task, number) of the numbers of a range, combined in order."""
    return functools.reduce(combine, (function(task, number) for number in part))
