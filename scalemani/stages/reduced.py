"""The reduced problem Z^T (D - W) Z and Z^T D Z, summed over blocks in a fixed order."""

import functools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.chunked.work import Arrays, Dimensions, DiskNeed, StageTask, StageWork
from scalemani.kernels.spectral.reduced import TreeSum, diagonal_product, laplacian_of, symmetric_part, weighted_product
from scalemani.memory.process import PROCESS
from scalemani.params import Parameters
from scalemani.records.affinities import StoredSymmetricAffinities
from scalemani.records.landmarks import StoredLandmarkWeights, StoredReduced, sparse_weights
from scalemani.records.reading import MatrixDescription
from scalemani.workers.budget import MemoryNeed

BYTES_PER_ENTRY = 12  # float64 and int32
PARTS = (StoredReduced.AFFINITY_PART, StoredReduced.MASS_PART)
SUMMED_TOGETHER = 64  # parts, by a worker; a power of two, so that the tree of all sums is that of one process
PARTS_IN_MEMORY = 7  # partial sums on the way up the tree of one of A~ and B~, and the other
DISTINCT = 1.2  # of the products by the root of how many points use a landmark, the share on entries of their own
REPEATED = 1.5  # by the root of the number of blocks, how many of these meet the same entry
WITH_SUMS = 1.7  # of the entries of parts, with those of their sum
ROWS_REACHED = 3  # rows of Z that the neighbours of a block are, for each row of the block


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the sums where they exceed those of a block's products, of these, and of Z."""
    width, n_landmarks = params.landmark_neighbors, params.n_landmarks
    full = n_landmarks * n_landmarks
    total = min(full, dimensions.n_points * width * width)
    spread = min(n_landmarks, 2 * params.n_neighbors * width)
    block = (
        2 * dimensions.block_rows * params.n_neighbors
        + 3 * min(dimensions.n_points, ROWS_REACHED * dimensions.block_rows) * width
        + 2 * 8192 * spread
        + 3 * min(full, dimensions.block_rows * width * spread)
    )
    # Sums are taken one at a time when all products were made.
    sums, products = PARTS_IN_MEMORY * total * BYTES_PER_ENTRY // 2, block * BYTES_PER_ENTRY
    return MemoryNeed(max(0, sums - products), products, growing=dimensions.n_points * width * BYTES_PER_ENTRY)


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of all parts and of their sums.

    How many of the products of two rows of Z fall on the same entry, and in how many blocks an entry is met, goes by
    what was seen of 20,000 to 1,020,000 digits: at most 0.62 and 0.8 of what is taken here.
    """
    width, n_landmarks = params.landmark_neighbors, params.n_landmarks
    uses = dimensions.n_points * width / n_landmarks
    products = 2 * params.n_neighbors * dimensions.n_points * width**2
    full = REPEATED * math.sqrt(dimensions.n_blocks) * n_landmarks**2
    entries = min(products * min(1.0, DISTINCT / math.sqrt(uses)), full) + dimensions.n_points * width**2 / 2
    return DiskNeed(int(WITH_SUMS * entries * BYTES_PER_ENTRY))


def run(work: StageWork) -> dict[str, Any]:
    """Compute every block's part, sums of parts while there are many, and the sum of these."""
    task = work.task
    work.map_parts(reduced_part)
    PROCESS.free()  # Z is not needed any more
    # A sum takes what is planned once a process.
    batch = replace(work.batch, need=MemoryNeed(per_task=work.batch.need.total(1)))
    alone, level = replace(work, at_once=1, batch=batch), 0
    while n_parts(task, level) > SUMMED_TOGETHER:
        level += 1
        alone.map_parts(functools.partial(summed_part, level), step_of(level), n_parts(task, level))
    affinity, mass = (symmetric_part(summed(task, level, part, range(n_parts(task, level)))) for part in PARTS)
    laplacian = laplacian_of(affinity, mass)
    task.output.write_whole({**StoredReduced.LAPLACIAN.arrays(laplacian), **StoredReduced.MASS.arrays(mass)})
    return {"nonzeros": int(laplacian.nnz), "density": laplacian.nnz / laplacian.shape[0] ** 2}


def n_parts(task: StageTask, level: int) -> int:
    """Return the number of parts after so many rounds of summing."""
    return -(-task.dimensions.n_blocks // SUMMED_TOGETHER**level)


def step_of(level: int) -> str:
    """Return the name of a round of summing; the parts of blocks have none."""
    return f"sum_{level}" if level else ""


def summed(task: StageTask, level: int, described: MatrixDescription, parts: range) -> sp.csr_matrix:
    """Return the sum of parts of a round."""
    total, output = TreeSum(), StoredReduced(task.output)
    for part in parts:
        total.add(output.read_part_of(described, part, step_of(level)))
    return total.total()


def summed_part(level: int, task: StageTask, part: int) -> Arrays:
    """Return a part of a round of summing: consecutive parts of the round before."""
    before = range(part * SUMMED_TOGETHER, min((part + 1) * SUMMED_TOGETHER, n_parts(task, level - 1)))
    return part_arrays(*(summed(task, level - 1, described, before) for described in PARTS))


def part_arrays(affinity: sp.csr_matrix, mass: sp.csr_matrix) -> Arrays:
    """Return parts of the two sums as they are stored."""
    return {**StoredReduced.AFFINITY_PART.arrays(affinity), **StoredReduced.MASS_PART.arrays(mass)}


def reduced_part(task: StageTask, block: int) -> Arrays:
    """Return one block's part of the sums."""
    n_landmarks, weights = task.params.n_landmarks, StoredLandmarkWeights(task.inputs["landmark_weights"])
    graph = StoredSymmetricAffinities(task.inputs["symmetric_affinities"])
    affinities, degrees = graph.read_matrix(block, task.dimensions.n_points), graph.read_block_degrees(block)
    reached, places = np.unique(affinities.indices, return_inverse=True)
    renumbered = sp.csr_matrix((affinities.data, places, affinities.indptr), shape=(len(degrees), len(reached)))
    own = weights.read_matrix(block, n_landmarks)
    indices, values = task.read_table(weights.indices)[reached], task.read_table(weights.values)[reached]
    affinity = weighted_product(own, renumbered, sparse_weights(indices, values, n_landmarks))
    return part_arrays(affinity, diagonal_product(own, degrees))
