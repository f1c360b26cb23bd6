"""What one task of a stage knows: the shape of the data, its parameters, and the groups it reads and writes."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, TypeVarTuple

import numpy as np
from numpy.typing import DTypeLike

from scalemani.config.params import Resolved
from scalemani.engine.memory.files import RowsInFile, Table
from scalemani.engine.memory.process import PROCESS, Key
from scalemani.engine.reading import ArrayReader, Stored
from scalemani.store.groups import StageGroup

INDEX_BYTES, BOUND_BYTES = 4, 8  # of the column of a nonzero, and of where a sparse row begins
Made = TypeVar("Made")
Arguments = TypeVarTuple("Arguments")


@dataclass(frozen=True)
class Dimensions:
    """The shape and type of the points, and the rows a block that were fixed when they were ingested.

    `nonzeros` counts the values of points that are stored as sparse rows; None for dense ones.
    """

    n_points: int
    n_features: int
    dtype: str
    block_rows: int
    nonzeros: int | None = None

    @property
    def sparse(self) -> bool:
        """Whether the points are stored as sparse rows."""
        return self.nonzeros is not None

    @property
    def n_blocks(self) -> int:
        """The number of row blocks."""
        return -(-self.n_points // self.block_rows)

    @property
    def row_bytes(self) -> int:
        """The bytes of one point, of sparse ones on average."""
        size = np.dtype(self.dtype).itemsize
        if self.nonzeros is None:
            return self.n_features * size
        return BOUND_BYTES + -(-self.nonzeros * (size + INDEX_BYTES) // self.n_points)

    def as_dict(self) -> dict[str, Any]:
        """Return what a store holds; dense points have no count of nonzeros."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @property
    def distance_dtype(self) -> np.dtype:
        """The type of stored distances: as exact as the points are."""
        return np.dtype(np.float64 if self.dtype == "float64" else np.float32)

    def rows(self, block: int) -> tuple[int, int]:
        """Return the first row of a block and the one after its last."""
        return self.rows_of(range(block, block + 1))

    def rows_of(self, blocks: Sequence[int]) -> tuple[int, int]:
        """Return the first row of consecutive blocks and the one after their last."""
        return blocks[0] * self.block_rows, min((blocks[-1] + 1) * self.block_rows, self.n_points)


@dataclass(frozen=True)
class EarlierResults:
    """What a stage continues where points were appended to a run: groups by stage, of the `n_points` first ones."""

    n_points: int
    groups: Mapping[str, StageGroup]

    def stored(self, kind: type[Stored]) -> Stored:
        """Return the reader of the results of a stage."""
        return kind(self.groups[kind.STAGE])


@dataclass(frozen=True)
class StageTask:
    """What one task of a stage knows; it travels to other processes."""

    stage: str
    dimensions: Dimensions
    params: Resolved
    inputs: Mapping[str, StageGroup]
    output: StageGroup
    cache_bytes: int
    in_memory: bool = True
    earlier: EarlierResults | None = None

    def stored(self, kind: type[Stored]) -> Stored:
        """Return the reader of an input."""
        return kind(self.inputs[kind.STAGE])

    @property
    def earlier_results(self) -> EarlierResults:
        """What the stage continues; raises ValueError where nothing was appended."""
        if self.earlier is None:
            raise ValueError(f"the stage `{self.stage}` was to continue an earlier run, and there is none")
        return self.earlier

    def read_table(self, array: ArrayReader) -> Table:
        """Return an array with a row a point, shared until the stage ends: in memory if it has room, else in a file."""
        return array.read_once() if self.in_memory else array.keep_in_file()

    def once(self, make: "Callable[[StageTask, *Arguments], Made]", *arguments: *Arguments) -> Made:
        """Return make(task, *arguments), computed once a process and shared by its tasks until the stage ends.

        Parameters
        ----------
        make : function of a module
            What is shared is known by its name: two functions never get each other's result.
        *arguments
            Hashable; other arguments give another result.
        """
        return PROCESS.once(Key.of(make, arguments, self.output), functools.partial(make, self, *arguments))

    def latest(self, make: "Callable[[StageTask, *Arguments], Made]", *arguments: *Arguments) -> Made:
        """As `once`, for what is large: what was made with other arguments is dropped before."""
        return PROCESS.latest(Key.of(make, arguments, self.output), functools.partial(make, self, *arguments))

    def in_turn(self, make: "Callable[[StageTask, *Arguments], Made]", *arguments: *Arguments) -> Made:
        """As `latest`; where memory has no room for all tables, what other functions have made so is dropped before."""
        if self.in_memory:
            return self.latest(make, *arguments)
        version = Key.of(make, arguments).function, *arguments
        return PROCESS.latest(
            Key.of(StageTask.in_turn, version, self.output), functools.partial(make, self, *arguments)
        )

    def has_room(self, n_bytes: int) -> bool:
        """Return whether tables of so many bytes are in memory: all of them, or instead of a cache of blocks."""
        return self.in_memory or n_bytes <= self.cache_bytes

    def table(self, shape: tuple[int, ...], dtype: DTypeLike) -> Table:
        """Return a random-access array with a row a point, to be filled, in memory or in a file."""
        return (
            np.empty(shape, dtype) if self.in_memory else RowsInFile(self.output.objects.scratch_folder, shape, dtype)
        )
