"""Rows of points in the order in which a run works, the rows that an audit draws, and passes over all of them.

A pass reads panels of rows within a budget of memory, several at a time; sparse rows become dense where they are few.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from scalemani.audit.stored import StoredGroup, StoredRun, block_folder, processors, side_by_side

PRECOMPUTED = "precomputed"
FEWEST_PANEL_ROWS = 64
COPIES_OF_PANEL = 3  # as read, in float64, and what is made of it
Result = TypeVar("Result")


@dataclass
class Audit:
    """What all checks share: the run, the rows drawn, the budget."""

    run: StoredRun
    n_rows: int
    seed: int
    memory: int

    @cached_property
    def generator(self) -> np.random.Generator:
        """What rows are drawn by: no generator of any run."""
        return np.random.default_rng([self.seed, 0x617564697400])

    @cached_property
    def sample(self) -> np.ndarray:
        """The work rows (m,) that are drawn, ascending."""
        n_points = self.run.n_points
        return np.sort(self.generator.choice(n_points, min(self.n_rows, n_points), replace=False))

    @cached_property
    def order(self) -> np.ndarray:
        """The input row (N,) of each work row."""
        if not self.run.has("work_points"):
            return np.arange(self.run.n_points)
        return self.run.groups["work_points"].read("input_rows").astype(np.int64)

    @property
    def order_is_whole(self) -> bool:
        """Whether every input row is one work row."""
        counts_fit = len(self.order) == self.run.n_points
        inside = counts_fit and self.order.min() >= 0 and self.order.max() < self.run.n_points
        return bool(inside and np.bincount(self.order, minlength=self.run.n_points).max() == 1)

    @property
    def sample_error(self) -> float:
        """The factor on a standard error that sampling without replacement leaves."""
        drawn, n_points = len(self.sample), self.run.n_points
        return float(np.sqrt(max(0.0, 1.0 - drawn / n_points)))

    @cached_property
    def points(self) -> "Points | None":
        """The points in work order; None where neighbours or affinities were precomputed."""
        if self.run.param("points", "metric") == PRECOMPUTED or self.run.param("affinities", "kind") == PRECOMPUTED:
            return None
        stage = "work_points" if self.run.has("work_points") else "points"
        return Points(self.run, self.run.groups[stage], "rows" if stage == "work_points" else "")

    @cached_property
    def sampled_points(self) -> np.ndarray:
        """The points (m, D) float64 of the rows that are drawn."""
        assert self.points is not None
        return self.points.gather(self.sample)

    @cached_property
    def weights(self) -> np.ndarray | None:
        """The weights (N,) of the points in work order; None where each is one."""
        return self.run.groups["weights"].read("weights") if self.run.has("weights") else None

    def mean(self, values: np.ndarray) -> tuple[float, float]:
        """Return the mean of values (m,) of the rows drawn, and its standard error."""
        error = float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else 0.0
        return float(values.mean()), error * self.sample_error

    def panels(self, bytes_a_row: int) -> list[tuple[int, int]]:
        """Return ranges of rows that as many threads as there are processors hold within the budget.

        No range crosses blocks, which are decoded whole.
        """
        at_once = self.memory // (2 * processors())
        rows = max(FEWEST_PANEL_ROWS, at_once // max(1, COPIES_OF_PANEL * bytes_a_row))
        return [
            (first, min(first + rows, stop)) for start, stop in self.run.blocks for first in range(start, stop, rows)
        ]

    def over(self, act: Callable[[tuple[int, int]], Result], bytes_a_row: int) -> list[Result]:
        """Return act(range) of all panels of rows, by threads."""
        return side_by_side(act, self.panels(bytes_a_row))

    def summed(self, act: Callable[[tuple[int, int]], tuple[Any, ...]], bytes_a_row: int) -> tuple[Any, ...]:
        """Return the sums of the arrays act(range) over all panels of rows; as many are in memory as threads."""
        panels, total = self.panels(bytes_a_row), None
        for first in range(0, len(panels), processors()):
            for part in side_by_side(act, panels[first : first + processors()]):
                total = part if total is None else tuple(one + other for one, other in zip(total, part, strict=True))
        assert total is not None
        return total

    def rows_of(self, group: StoredGroup, name: str, rows: np.ndarray) -> np.ndarray:
        """Return rows (m,) of a row array, in the requested order; each block is read once."""
        array = group.array(name)
        values = np.empty((len(rows), *array.shape[1:]), array.dtype)
        for block, places in by_block(rows, self.run.block_rows):
            start = block * self.run.block_rows
            values[places] = group.read(name, start, start + self.run.block_rows)[rows[places] - start]
        return values


def by_block(rows: np.ndarray, block_rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the blocks that rows (m,) lie in, and the places (n,) of those that do."""
    order = np.argsort(rows, kind="stable")
    blocks, starts = np.unique(rows[order] // block_rows, return_index=True)
    yield from zip(blocks.tolist(), np.split(order, starts[1:]), strict=True)


class Points:
    """Points of a group, dense or as sparse parts of blocks: rows come dense, in float64."""

    def __init__(self, run: StoredRun, group: StoredGroup, step: str) -> None:
        self.run, self.group, self.step = run, group, step
        self.sparse = group.holds("n_features")

    def rows(self, start: int, stop: int) -> Any:
        """Return rows [start, stop) of one block, as an array in their dtype or as a sparse matrix."""
        if not self.sparse:
            return self.group.read("points", start, stop)
        block = start // self.run.block_rows
        first = block * self.run.block_rows
        return self.block(block)[start - first : stop - first]

    def block(self, block: int) -> sp.csr_matrix:
        """Return the sparse rows (n, D) of one block, in their dtype."""
        folder = block_folder(block, self.step)
        indptr, indices, values = (self.group.read(f"{folder}/{part}") for part in ("indptr", "indices", "values"))
        shape = (len(indptr) - 1, self.run.n_features)
        return sp.csr_matrix((values, indices.astype(np.int64), indptr), shape=shape)

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Return rows (m, D) float64, in the requested order."""
        gathered = np.empty((len(rows), self.run.n_features))
        for block, places in by_block(rows, self.run.block_rows):
            start = block * self.run.block_rows
            stop = min(start + self.run.block_rows, self.run.n_points)
            gathered[places] = dense(self.rows(start, stop)[rows[places] - start])
        return gathered


def dense(rows: Any) -> np.ndarray:
    """Return rows (n, D), dense or sparse, as an array in float64."""
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
