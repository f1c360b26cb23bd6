"""Rows of the points by number, of which each may lie in another block: these are read side by side."""

import functools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from scalemani.engine.work import StageWork
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.kernels.rows.compressed import Points, dense_rows
from scalemani.stages.arrays.points import StoredPoints


@dataclass(frozen=True)
class SampledRows:
    """Points (N, D) that are indexed by row numbers (n,), as an array in memory is; sparse ones become dense."""

    work: StageWork

    def __len__(self) -> int:
        return self.work.task.dimensions.n_points

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return dense_rows(gathered_rows(self.work, rows))


def gathered_rows(work: StageWork, rows: np.ndarray) -> Points:
    """Return the points (n, D) at row numbers (n,) int in any order."""
    task, order = work.task, np.argsort(rows, kind="stable")
    bounds = np.arange(1, task.dimensions.n_blocks) * task.dimensions.block_rows
    parts = filter(len, np.split(rows[order], np.searchsorted(rows[order], bounds)))
    gather = functools.partial(StoredPoints(task.inputs["points"]).points.gather, cache_bytes=task.cache_bytes)
    found = list(work.executor.over(gather, list(parts)))
    joined = sp.csr_matrix(sp.vstack(found, format="csr")) if sp.issparse(found[0]) else np.concatenate(found)
    return joined[inverse_order(order)]
