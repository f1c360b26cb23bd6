"""What must hold of every stored array, as data: stated where the array is declared, checked with NumPy alone.

An `Invariant` is a sum over the blocks of an array, and the number of rows or entries that break it by that sum. So the
invariants of an array are checked in one pass, in bounded memory, in any order of blocks: see `count_broken`. Nothing
of a run evaluates one.

A check reads arrays as they are stored and shares no code with what wrote them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

OF_BLOCK = re.compile(r"block-(\d+)$")  # what the folders of parts end with


class StoredArray(Protocol):
    """A stored array, read by consecutive rows: one of zarr, or one in memory."""

    shape: tuple[int, ...]
    dtype: Any

    def __getitem__(self, rows: Any, /) -> Any:
        """Return rows from `rows.start` to `rows.stop` as a NumPy array, `...` for all."""


class StoredRun(Protocol):
    """The group that is checked, and those of the same run that it was computed from.

    `params` are the parameters of the run by stage, as in `plan.json`; `block_rows` the rows of a block, `n_points` the
    rows of its points.
    """

    n_points: int
    block_rows: int
    params: Mapping[str, Mapping[str, Any]]

    def stored(self, stage: str, path: str) -> StoredArray | None:
        """Return the array at a path below `arrays/` of the group of a stage; None where there is none."""


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a stored array: `values` (n, ...) from row `start` on; a part is one block, from row 0 on.

    `path` is that of the array below `arrays/` of the group of `stage`. Arrays without a dimension are a block of one
    value.
    """

    run: StoredRun
    stage: str
    path: str
    start: int
    values: np.ndarray

    @property
    def folder(self) -> str:
        """The folder of the array below `arrays/`, such as that of a round or a block; empty for none."""
        return self.path.rpartition("/")[0]

    @property
    def first_point(self) -> int:
        """The point that the first row is of: of a row array, or of the matrix of a part."""
        part = OF_BLOCK.search(self.folder)
        return self.start + (int(part[1]) * self.run.block_rows if part else 0)

    def has(self, name: str) -> bool:
        """Return whether another array is stored in the same folder."""
        return self.run.stored(self.stage, below(self.folder, name)) is not None

    def array(self, name: str) -> StoredArray:
        """Return another array of the same folder, to be read by rows; it must be stored."""
        return stored(self.run, self.stage, below(self.folder, name))

    def rows_of(self, name: str) -> np.ndarray:
        """Return the same rows of another array of the same folder."""
        return np.asarray(self.array(name)[self.start : self.start + len(self.values)])

    def all_of(self, name: str) -> np.ndarray:
        """Return all values of another array of the same folder, in its stored dtype; it must be stored."""
        return np.asarray(self.array(name)[...])


def below(folder: str, name: str) -> str:
    """Return the path of an array in a folder of a group, or in none."""
    return f"{folder}/{name}" if folder else name


def stored(run: StoredRun, stage: str, path: str) -> StoredArray:
    """Return an array that a run stores; KeyError where it does not."""
    array = run.stored(stage, path)
    if array is None:
        raise KeyError(f"array {path} of stage {stage} is not stored, and another array needs it to be checked")
    return array


def total_is_count(total: Any, run: StoredRun) -> int:
    """Return a sum that is itself the number of rows or entries that break an invariant."""
    return int(total)


@dataclass(frozen=True)
class Invariant:
    """What must hold of an array.

    `text` continues the name of the array, in `FORMAT.md` and in messages: "distinct in each row". `part` returns
    what a block adds to a sum, and `broken` how many rows or entries break the invariant by that sum: as they stand,
    where the block counts them.
    """

    text: str
    part: Callable[[Block], Any]
    broken: Callable[[Any, StoredRun], int] = total_is_count


def count_broken(invariants: Sequence[Invariant], blocks: Iterable[Block]) -> dict[str, int]:
    """Return by text how many rows or entries of an array break each invariant; none of an array without rows.

    Parameters
    ----------
    invariants : those of one array
    blocks : all blocks of the array, each once, in any order; of parts (`block-N`): those of all blocks of the run
    """
    totals: list[Any] = [None] * len(invariants)
    run = None
    for block in blocks:
        run = block.run
        for place, invariant in enumerate(invariants):
            part = invariant.part(block)
            totals[place] = part if totals[place] is None else totals[place] + part
    if run is None:
        return {invariant.text: 0 for invariant in invariants}
    return {one.text: one.broken(total, run) for one, total in zip(invariants, totals, strict=True)}
