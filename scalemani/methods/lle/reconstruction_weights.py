"""What each point takes of its neighbours: the rows of R, by blocks, bridges between components included."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.engine.context import Arrays, StageContext, StageTask
from scalemani.engine.memory_model import Disk, Memory, array, entries
from scalemani.engine.reading import Parts, RowsOfArray, StoredStage
from scalemani.engine.sizes import Sizes, written
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.methods.lle.kernels import neighbor_weights
from scalemani.methods.lle.parameters import LocalReconstructionParams
from scalemani.stages.arrays.affinities import StoredComponents
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.store.invariants.matrices import bounds, columns_distinct, row_shares
from scalemani.store.invariants.values import POINTS, in_count

POINTS_TOGETHER = 256  # whose neighbours are read at once: a tile of wide points has too many of them


class StoredReconstructionWeights(StoredStage, stage="reconstruction_weights"):
    """R by blocks of rows in work order, each a sparse matrix in CSR form: what points take of their neighbours."""

    indptr = Parts(
        "row_bound", "int64", "where each row of the block begins and ends among its nonzeros", "nonzero"
    ).with_invariants(bounds("indices", "values"), row_shares("indptr", "values"))
    indices = Parts(
        "nonzero", "int32", "the neighbours of each point, those across bridges last", "work row"
    ).with_invariants(in_count(POINTS), columns_distinct("indptr"))
    values = Parts("nonzero", "float64", "what the point takes of each; those of a point sum to one").of_any_numbers(
        "their sums are checked with `indptr`"
    )

    def read_matrix(self, block: int, n_points: int) -> sp.csr_matrix:
        """Return one block's rows of R (n, N)."""
        indptr = self.indptr(block)
        return sp.csr_matrix((self.values(block), self.indices(block), indptr), shape=(len(indptr) - 1, n_points))


def memory(sizes: Sizes) -> Memory:
    """Return what the points take, the neighbours of some of them, and R in a block."""
    dimensions, k, rows = sizes.dimensions, sizes.params.n_neighbors, sizes.dimensions.block_rows
    reached = min(dimensions.n_points, POINTS_TOGETHER * (k + 1))
    return Memory(
        task={
            "points of a block, and their neighbours": 2 * rows * dimensions.row_bytes + array("int32", rows, k),
            # As decoded, as read, and as they are compared.
            "neighbours of some points": 3 * array("float64", reached, dimensions.n_features),
            "rows of R: of some points, of a block, and as written": 3 * entries(rows * k),
        },
        cache={"points of all blocks": dimensions.n_points * dimensions.row_bytes},
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: R."""
    nonzeros = sizes.dimensions.n_points * sizes.params.n_neighbors
    return Disk(written(StoredReconstructionWeights.ARRAYS, sizes, nonzero=nonzeros))


def run(context: StageContext) -> dict[str, Any]:
    """Write R by blocks; certify nothing: each row solves a separate small system."""
    context.map_blocks(weights_of_block)
    return {}


def weights_of_block(task: StageTask, block: int) -> Arrays:
    """Return the rows of R of a block."""
    graph, (start, stop) = task.stored(StoredNeighbors), task.dimensions.rows(block)
    rows, indices = np.arange(start, stop), graph.indices(graph.final_step).read_block(block)
    points = task.stored(StoredWorkPoints).points.read_block(block)
    lists: list[np.ndarray] = [np.empty(0)] * len(rows)
    values = list(lists)
    for some, near in neighbors_with_bridges(rows, indices, task.once(other_ends)):
        weights = weights_of(task, dense_rows(points[some]), near)
        for position, listed, taken in zip(some.tolist(), near, weights, strict=True):
            lists[position], values[position] = listed, taken
    stored = StoredReconstructionWeights
    return {
        stored.indptr: np.concatenate([np.zeros(1, np.int64), np.cumsum([len(listed) for listed in lists])]),
        stored.indices: np.concatenate(lists).astype(np.int32),
        stored.values: np.concatenate(values),
    }


def other_ends(task: StageTask) -> dict[int, list[int]]:
    """Return the work rows to which bridges between components lead, by the work row from which they do."""
    ends: dict[int, list[int]] = {}
    for one, other in task.stored(StoredComponents).bridge_rows.read().tolist():
        ends.setdefault(one, []).append(other)
        ends.setdefault(other, []).append(one)
    return ends


def neighbors_with_bridges(
    rows: np.ndarray, indices: np.ndarray, bridges: Mapping[int, Sequence[int]]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield positions (m,) among some points, and their neighbours (m, k'): those across a bridge are further ones.

    Parameters
    ----------
    rows : (n,) int, work rows of the points
    indices : (n, k) int32, work rows of their neighbours
    """
    joined = np.array([row in bridges for row in rows.tolist()])
    alone = np.flatnonzero(~joined)
    for some in slices(len(alone), POINTS_TOGETHER):
        yield alone[some], indices[alone[some]]
    for position in np.flatnonzero(joined).tolist():
        further = np.array(bridges[int(rows[position])], indices.dtype)
        yield np.array([position]), np.concatenate([indices[position], further])[np.newaxis]


def weights_of(task: StageTask, points: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return what points (n, D) take of their neighbours at work rows (n, k): (n, k) float64."""
    reached, places = np.unique(indices, return_inverse=True)
    stored = task.stored(StoredWorkPoints).points
    others = RowsOfArray(stored, task.dimensions.n_points, task.cache_bytes)[reached]
    reg = task.params.part(LocalReconstructionParams).reg
    return neighbor_weights(points, others, places.reshape(indices.shape), reg)
