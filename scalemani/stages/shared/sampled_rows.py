"""Rows of the points by number, of which each may lie in another block: tasks read the blocks, the driver the rows."""

import operator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.engine.context import MOST_PARTS, StageContext
from scalemani.engine.task import StageTask
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.kernels.rows.compressed import Points, dense_rows
from scalemani.stages.arrays.points import StoredPoints

FEW_BLOCKS = 16  # are read by the driver: tasks would take as long to start


class RowsOfBlocks(NamedTuple):
    """Ascending rows (n,) int64 of the blocks from `start` to `last` that have some."""

    start: int
    last: int
    rows: np.ndarray

    def __str__(self) -> str:
        """Return the blocks, as messages and keys of tasks name them."""
        return f"{self.start} to {self.last}"


@dataclass(frozen=True)
class SampledRows:
    """Points (N, D) that are indexed by row numbers (n,), as an array in memory is; sparse ones become dense."""

    context: StageContext

    def __len__(self) -> int:
        return self.context.task.dimensions.n_points

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return dense_rows(gathered_rows(self.context, rows))


def gathered_rows(context: StageContext, rows: np.ndarray) -> Points:
    """Return the points (n, D) at row numbers (n,) int in any order: those of each block are read by one task."""
    task = context.task
    blocks = np.unique(rows // task.dimensions.block_rows)
    if len(blocks) <= FEW_BLOCKS:
        return StoredPoints(task.inputs["points"]).points.gather(rows)
    order = np.argsort(rows, kind="stable")
    ascending = rows[order]
    together = np.array_split(blocks, min(MOST_PARTS, len(blocks)))
    bounds = np.searchsorted(ascending, [part[0] * task.dimensions.block_rows for part in together])
    parts = np.split(ascending, bounds[1:])
    ranges = [RowsOfBlocks(int(part[0]), int(part[-1]), chosen) for part, chosen in zip(together, parts, strict=True)]
    points = context.fold(rows_of_blocks, operator.add, ranges)
    places = inverse_order(order)
    return sp.vstack(points, format="csr")[places] if sp.issparse(points[0]) else np.concatenate(points)[places]


def rows_of_blocks(task: StageTask, part: RowsOfBlocks) -> list[Points]:
    """Return a list of the points at the rows of a `RowsOfBlocks`."""
    return [StoredPoints(task.inputs["points"]).points.gather(part.rows)]
