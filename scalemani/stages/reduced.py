"""The reduced problem Z^T (D - W) Z and Z^T D Z, summed over blocks in a fixed order."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.chunked.graph import gathered_weights, matrix_arrays, read_matrix, symmetric_block, weights_block
from scalemani.chunked.work import Arrays, Dimensions, MemoryNeed, StageTask, StageWork
from scalemani.kernels.reduced import TreeSum, diagonal_product, reduced_laplacian, weighted_product
from scalemani.params import Parameters

BYTES_PER_ENTRY = 12  # float64 and int32
PARTS_IN_MEMORY = 7  # partial sums on the way up the tree of one of A~ and B~, and the other
ROWS_REACHED = 3  # rows of Z that the neighbours of a block are, for each row of the block


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the sums, of a block's products, and of Z, of which blocks are kept where they fit."""
    width, n_landmarks = params.landmark_weights.n_neighbors, params.landmarks.n_landmarks
    full = n_landmarks * n_landmarks
    total = min(full, dimensions.n_points * width * width)
    spread = min(n_landmarks, 2 * params.n_neighbors * width)
    block = (
        2 * dimensions.block_rows * params.n_neighbors
        + 3 * min(dimensions.n_points, ROWS_REACHED * dimensions.block_rows) * width
        + 2 * 8192 * spread
        + 3 * min(full, dimensions.block_rows * width * spread)
    )
    return MemoryNeed(
        PARTS_IN_MEMORY * total * BYTES_PER_ENTRY // 2,
        block * BYTES_PER_ENTRY,
        dimensions.n_points * width * BYTES_PER_ENTRY,
    )


def run(work: StageWork) -> dict[str, Any]:
    """Compute every block's part, then their sum."""
    task = work.task
    work.map_parts(reduced_part)
    reduced = reduced_laplacian([summed_parts(task, "affinity")], [summed_parts(task, "mass")])
    task.output.write_whole({**matrix_arrays("laplacian", reduced.laplacian), **matrix_arrays("mass", reduced.mass)})
    return {"nonzeros": int(reduced.laplacian.nnz), "density": reduced.laplacian.nnz / reduced.laplacian.shape[0] ** 2}


def summed_parts(task: StageTask, name: str) -> sp.csr_matrix:
    """Return the sum of the blocks' parts of one of the two matrices (L, L)."""
    total = TreeSum()
    for block in range(task.dimensions.n_blocks):
        total.add(read_matrix(task.output, name, task.params.landmarks.n_landmarks, block))
    return total.total()


def reduced_part(task: StageTask, block: int) -> Arrays:
    """Return one block's part of the sums."""
    n_landmarks, group = task.params.landmarks.n_landmarks, task.inputs["landmark_weights"]
    affinities, degrees = symmetric_block(task.inputs["symmetric_affinities"], block, task.dimensions.n_points)
    reached, places = np.unique(affinities.indices, return_inverse=True)
    renumbered = sp.csr_matrix((affinities.data, places, affinities.indptr), shape=(len(degrees), len(reached)))
    own = weights_block(group, block, n_landmarks)
    affinity = weighted_product(own, renumbered, gathered_weights(group, reached, n_landmarks, task.cache_bytes))
    return {**matrix_arrays("affinity", affinity), **matrix_arrays("mass", diagonal_product(own, degrees))}
