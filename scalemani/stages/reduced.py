"""The reduced problem Z^T (D - W) Z and Z^T D Z, summed over blocks in a fixed order."""

from typing import Any

from scalemani.chunked.graph import matrix_arrays, read_matrix, symmetric_block, weights_matrix
from scalemani.chunked.work import Arrays, Dimensions, MemoryNeed, StageTask, StageWork
from scalemani.kernels.reduced import TreeSum, diagonal_product, reduced_laplacian, weighted_product
from scalemani.params import Parameters

BYTES_PER_ENTRY = 12  # float64 and int32
PARTS_IN_MEMORY = 12  # partial sums on the way up the tree, of A~ and B~


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of Z, of the sums, and of a block's products."""
    width, n_landmarks = params.landmark_weights.n_neighbors, params.landmarks.n_landmarks
    weights = dimensions.n_points * width * 2 * BYTES_PER_ENTRY
    full = n_landmarks * n_landmarks
    total = min(full, dimensions.n_points * width * width)
    spread = min(n_landmarks, 2 * params.n_neighbors * width)
    block = (
        2 * dimensions.block_rows * params.n_neighbors
        + 2 * 8192 * spread
        + 3 * min(full, dimensions.block_rows * width * spread)
    )
    return MemoryNeed(weights + PARTS_IN_MEMORY * total * BYTES_PER_ENTRY // 2, block * BYTES_PER_ENTRY)


def run(work: StageWork) -> dict[str, Any]:
    """Compute every block's part, then their sum."""
    task = work.task
    work.map_parts(reduced_part)
    sums = {name: TreeSum() for name in ("affinity", "mass")}
    for block in range(task.dimensions.n_blocks):
        for name, total in sums.items():
            total.add(read_matrix(task.output, name, task.params.landmarks.n_landmarks, block))
    reduced = reduced_laplacian([sums["affinity"].total()], [sums["mass"].total()])
    task.output.write_whole({**matrix_arrays("laplacian", reduced.laplacian), **matrix_arrays("mass", reduced.mass)})
    return {"nonzeros": int(reduced.laplacian.nnz), "density": reduced.laplacian.nnz / reduced.laplacian.shape[0] ** 2}


def reduced_part(task: StageTask, block: int) -> Arrays:
    """Return one block's part of the sums."""
    n_landmarks = task.params.landmarks.n_landmarks
    weights = weights_matrix(task.inputs["landmark_weights"], n_landmarks)
    start, stop = task.dimensions.rows(block)
    affinities, degrees = symmetric_block(task.inputs["symmetric_affinities"], block, task.dimensions.n_points)
    own = weights[start:stop]
    affinity, mass = weighted_product(own, affinities, weights), diagonal_product(own, degrees)
    return {**matrix_arrays("affinity", affinity), **matrix_arrays("mass", mass)}
