"""The context of a stage: its task, the points where it reads these, and the ways to map and fold over blocks."""

import contextlib
import functools
import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np

from scalemani.engine.graph import Combine, Key, TaskGraph
from scalemani.engine.memory.files import MappedArrays
from scalemani.engine.memory_model import Batch
from scalemani.engine.task import StageTask
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ScalemaniWarning
from scalemani.io.sources import PointsSource
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.store.groups import BlockRows, block_unit
from scalemani.store.schema import ArrayDescription

MOST_PARTS = 512  # of a sum: more than the tasks that most clusters run at once
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


BlockFunction = Callable[[StageTask, int], BlockRows]
RangeFunction = Callable[[StageTask, Sequence[int]], Iterable[tuple[int, BlockRows]]]
FoldFunction = Callable[[StageTask, Any], Any]
BlocksOf = Callable[[int], Iterable[int]]
ALL_BLOCKS = range(0)  # of a layer: an object that stands for them


@dataclass(frozen=True)
class StageContext:
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

    @functools.cached_property
    def workspace(self) -> Workspace:
        """Where kernels work: on this process's threads, with large arrays mapped where memory has no room."""
        if self.task.in_memory:
            return Workspace(self.executor.over)
        return Workspace(self.executor.over, MappedArrays(self.task.output.objects.scratch_folder).empty)

    def take_earlier_blocks(self, stays: Callable[[int], bool] | None = None) -> None:
        """Commit the blocks that hold rows of the earlier run alone as its group has them; none is decoded.

        Where that cannot be, as where one is damaged, a block is left to be computed as any other.

        Parameters
        ----------
        stays : says whether a block is what it was; None: all are
        """
        task = self.task
        if task.earlier is None:
            return
        earlier = task.earlier.groups[task.stage]
        whole = range(task.earlier.n_points // task.dimensions.block_rows)
        missing = [block for block in whole if not task.output.committed(block_unit(block))]
        same = missing if stays is None else list(filter(stays, missing))
        self.executor.over(functools.partial(task.output.take_block, other=earlier), same)

    def compute(self, tasks: "AddTasks") -> Any:
        """Have Dask compute what a function adds to an empty graph; return the result of the fold that it returns."""
        graph = StageGraph(self)
        return graph.compute(tasks(graph))

    def map_blocks(self, function: BlockFunction, step: str = "", count: int | None = None) -> None:
        """Compute and write every block that is missing; `function` returns the arrays of its block.

        These are rows of arrays, or parts that are as long as they happen to be, of which a step may have a `count`.
        """
        self.compute(lambda graph: graph.map_blocks(function, step, count))

    def map_blocks_here(self, function: BlockFunction, sequential: bool = False) -> None:
        """As `map_blocks`, on threads of this process: for blocks of what only this process holds.

        `sequential` computes them one by one, in their order.
        """
        write = functools.partial(write_blocks, functools.partial(one_by_one, function), "", self.task)
        missing = self.missing_ranges("", 1, self.task.dimensions.n_blocks)
        self.executor.progress.start(self.task.stage, len(missing), "block")
        self.executor.map_here(write, missing, sequential, self.at_once)
        self.task.output.refresh()

    def fold(self, function: FoldFunction, combine: Combine, ranges: Sequence[Any], shown: str = "") -> Any:
        """Return function(task, range) of all ranges of blocks or tiles combined in order; None without ranges."""
        return self.compute(lambda graph: graph.fold(function, combine, ranges, shown=shown))

    def fold_blocks(self, function: Callable[[StageTask, int], Any], combine: Combine, shown: str = "") -> Any:
        """Return function(task, block) of all blocks, combined in order."""
        return self.compute(lambda graph: graph.fold_blocks(function, combine, shown))

    def blocks_per_range(self, bytes_per_block: int) -> int:
        """Return how many blocks a range has: as many as the cache of a process holds, and a range for every task."""
        fit = max(1, self.task.cache_bytes // self.in_one_process // bytes_per_block)
        return min(fit, -(-self.task.dimensions.n_blocks // self.at_once))

    def missing_ranges(self, step: str, together: int, count: int) -> list[list[int]]:
        """Return which of so many blocks of a step are missing, in ranges of so many `together`."""
        missing = [block for block in range(count) if not self.task.output.committed(block_unit(block, step))]
        return [list(blocks) for _, blocks in itertools.groupby(missing, lambda block: block // together)]


class StageGraph:
    """What a stage has Dask compute together: layers of blocks that are missing, and sums over what is then there.

    Methods add layers of tasks, and `compute` has Dask compute them all. A task waits for those of the last layer of
    blocks that write what it reads, and for no others: what is in the store already is written by none.
    """

    def __init__(self, context: StageContext) -> None:
        self.context, self.tasks = context, TaskGraph(f"{name_of_run(context.task)}.{context.task.stage}")
        self._step, self._writers = "", dict[int, Key]()  # of the last layer of blocks, and the task that writes each
        self._ends = list[Key]()  # what is done once all blocks of a layer are written
        self._shown, self._unit, self._count = "", "block", 0

    def map_blocks(
        self, function: BlockFunction, step: str = "", count: int | None = None, reads: BlocksOf | None = None
    ) -> None:
        """Add the blocks that are missing, as `StageContext.map_blocks` computes them.

        `reads` returns the blocks of the last layer that a block reads.
        """
        self._map(functools.partial(one_by_one, function), step, 1, count, reads)

    def map_block_ranges(
        self, function: RangeFunction, blocks: int, step: str = "", reads: BlocksOf | None = None
    ) -> None:
        """Add the blocks that are missing, so many in a task: for work that has to read all its input."""
        self._map(function, step, blocks, None, reads)

    def fold(
        self,
        function: FoldFunction,
        combine: Combine,
        ranges: Sequence[Any],
        rows_each: int | None = None,
        shown: str = "",
    ) -> Key | None:
        """Add function(task, range) of all ranges, combined in their order; return the key of the result.

        Parameters
        ----------
        ranges : of blocks or tiles, from a `start`
        rows_each : rows of a tile; None: of a block
        """
        dimensions, name = self.context.task.dimensions, shown or "part"
        blocks_of = functools.partial(blocks_of_rows, rows_each or dimensions.block_rows, dimensions.block_rows)
        parts = self._add(
            functools.partial(part_of_fold, function, name),
            ranges,
            name,
            blocks_of if self._writers else None,
            None if rows_each else dimensions.rows,
        )
        self._note(shown, len(ranges), "part")
        return self.tasks.tree(combine, parts)

    def fold_blocks(self, function: Callable[[StageTask, int], Any], combine: Combine, shown: str = "") -> Key | None:
        """Add function(task, block) of all blocks, combined in their order; return the key of the result."""
        ranges = ranges_of(self.context.task.dimensions.n_blocks)
        return self.fold(functools.partial(folded, function, combine), combine, ranges, shown=shown)

    def compute(self, target: Key | None = None) -> Any:
        """Have Dask compute all; return the result of a fold."""
        context, targets = self.context, [*self._ends, *([target] if target else [])]
        context.executor.progress.start(self._shown or context.task.stage, self._count, self._unit)
        results = context.executor.compute(self.tasks, targets, context.at_once, context.batch) if targets else []
        context.task.output.refresh()
        return results[-1] if target else None

    def _map(
        self, function: RangeFunction, step: str, together: int, count: int | None, reads: BlocksOf | None
    ) -> None:
        dimensions = self.context.task.dimensions
        missing = self.context.missing_ranges(step, together, dimensions.n_blocks if count is None else count)
        keys = self._add(
            functools.partial(write_blocks, function, step),
            missing,
            step,
            functools.partial(blocks_of_each, reads) if reads else None,
            dimensions.rows if count is None else None,
        )
        self._step = step
        self._writers = {block: key for key, blocks in zip(keys, missing, strict=True) for block in blocks}
        self._ends += filter(None, [self.tasks.all_of(keys)])
        self._note("", len(missing), "part" if together > 1 or count is not None else "block")

    def _add(
        self,
        function: Callable[[StageTask, Any], Any],
        units: Sequence[Any],
        name: str,
        reads: Callable[[Any], Iterable[int]] | None,
        rows: Callable[[int], tuple[int, int]] | None,
    ) -> list[Key]:
        """Add function(task, unit) of all units, which read blocks of the last layer."""
        task, step, writers, ends = self.context.task, self._step, self._writers, self._ends[-1:]

        def needs(unit: Any) -> Iterable[Key]:
            if reads is None:
                return ()
            blocks = reads(unit)
            return ends if blocks is ALL_BLOCKS else dict.fromkeys(writers[one] for one in blocks if one in writers)

        reading = functools.partial(reading_blocks, function, step, reads, task)
        return self.tasks.units(reading, units, name, needs, rows)

    def _note(self, shown: str, count: int, unit: str) -> None:
        """Note what is added, for the progress: tasks of several kinds are parts."""
        self._shown, self._unit = self._shown or shown, unit if not self._count else "part"
        self._count += count


AddTasks = Callable[[StageGraph], Key | None]  # adds tasks to a graph; returns the key of a fold, or None
Steps = Iterator[AddTasks | str]  # what a stage has Dask compute, graph after graph, and what its driver does between


def name_of_run(task: StageTask) -> str:
    """Return the name of the folder of a run as a word, which Dask's pages do not take apart."""
    return re.sub(r"\W", "_", PurePosixPath(task.output.root).name)


def reading_blocks(
    function: Callable[[StageTask, Any], Any],
    step: str,
    reads: Callable[[Any], Iterable[int]] | None,
    task: StageTask,
    unit: Any,
) -> Any:
    """Return function(task, unit), which `reads` blocks of a step that other tasks may just have written."""
    blocks = () if reads is None else reads(unit)
    if blocks is ALL_BLOCKS:
        task.output.refresh()
    else:
        task.output.find(block_unit(block, step) for block in blocks)
    return function(task, unit)


def all_blocks(block: int) -> Iterable[int]:
    """Return that a block reads all blocks of the last layer."""
    return ALL_BLOCKS


def blocks_of_each(reads: BlocksOf, blocks: Sequence[int]) -> Iterable[int]:
    """Return the blocks that any of some blocks reads."""
    read = [reads(block) for block in blocks]
    return ALL_BLOCKS if any(one is ALL_BLOCKS for one in read) else itertools.chain.from_iterable(read)


def blocks_of_rows(rows_each: int, block_rows: int, part: Any) -> Iterable[int]:
    """Return the blocks that hold the rows of a range of blocks, or of tiles of so many rows each."""
    return range(part[0] * rows_each // block_rows, -(-(part[-1] + 1) * rows_each // block_rows))


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


def one_by_one(function: BlockFunction, task: StageTask, blocks: Sequence[int]) -> Iterator[tuple[int, BlockRows]]:
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
