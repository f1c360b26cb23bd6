"""Z of the variational Nystrom method: every point by its affinities to the landmarks that are its neighbours."""

import functools
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.engine.needs import EACH_PROCESS, EACH_TASK, Held, Written
from scalemani.engine.sizes import Sizes, written
from scalemani.engine.work import StageTask, StageWork
from scalemani.errors import ConfigError
from scalemani.methods.variational.kernels import MOST_LANDMARKS, completed_weights, direct_weights, landmark_numbers
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.landmarks import StoredAffinityWeights, StoredLandmarks
from scalemani.stages.arrays.points import StoredWorkPoints

COPIES_OF_BLOCK = 2  # as read, and what of it leads to landmarks
COPIES_OF_WEIGHTS = 3  # by block, put together, and with the rows of a further step


def weight_entries(sizes: Sizes) -> int:
    """Return the nonzeros of Z, at most: columns of W, and a row of few landmarks for every other point."""
    n_points, n_landmarks = sizes.dimensions.n_points, sizes.params.n_landmarks
    return n_landmarks + 2 * n_landmarks * sizes.params.affinity_neighbors + MOST_LANDMARKS * n_points


def memory(sizes: Sizes) -> list[Held]:
    """List the rows that are landmarks, W by blocks, and Z."""
    n_points, entries = sizes.dimensions.n_points, sizes.weight_entries
    return [
        Held("rows by work and by input order, and landmarks by row", EACH_PROCESS, n_points, 3, "int64"),
        Held("values of a block of W", EACH_TASK, sizes.block_nonzeros, 1, "float64", COPIES_OF_BLOCK),
        Held("columns of a block of W", EACH_TASK, sizes.block_nonzeros, 1, "int64", COPIES_OF_BLOCK),
        Held("values of Z", EACH_PROCESS, entries, 1, "float64", COPIES_OF_WEIGHTS),
        Held("columns of Z", EACH_PROCESS, entries, 1, "int64", COPIES_OF_WEIGHTS),
    ]


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: Z."""
    return written(StoredAffinityWeights.ARRAYS, sizes, nonzero=sizes.weight_entries)


def run(work: StageWork) -> dict[str, Any]:
    """Read W once, then again the rows of points without a landmark among their neighbours; certify their number."""
    task, dimensions = work.task, work.task.dimensions
    numbers = numbers_of(task)
    blocks = range(dimensions.n_blocks)
    work.executor.progress.start(task.stage, dimensions.n_blocks)
    direct = work.executor.map_locally(functools.partial(block_weights, task, numbers), blocks)
    graph = affinity_graph(task.inputs)

    def rows_of_w(rows: np.ndarray) -> sp.csr_matrix:
        return graph.read_at(rows, dimensions)

    found = completed_weights(sp.vstack(list(direct), format="csr"), rows_of_w)
    task.output.write_whole(
        {
            StoredAffinityWeights.indptr: found.weights.indptr.astype(np.int64),
            StoredAffinityWeights.indices: found.weights.indices.astype(np.int32),
            StoredAffinityWeights.values: found.weights.data,
        }
    )
    mean = found.weights.nnz / dimensions.n_points
    return {"landmarks_a_point": mean, "points_without_landmark": found.unreached, "further_steps": found.steps}


def numbers_of(task: StageTask) -> np.ndarray:
    """Return the number (N,) int32 of the landmark that each work row is, -1 for none."""
    landmarks = task.stored(StoredLandmarks)
    if landmarks.off_data:
        raise ConfigError(
            f"embedding.solver={task.params.embedding.solver} takes landmarks that are points, and those given are "
            "not: give rows of the points, or take another solver"
        )
    rows = landmarks.rows.read()
    input_rows = task.stored(StoredWorkPoints).input_rows.read()
    return landmark_numbers(rows, len(input_rows))[input_rows]


def block_weights(task: StageTask, numbers: np.ndarray, block: int) -> sp.csr_matrix:
    """Return the rows of Z of a block that lead to landmarks at once."""
    affinities = affinity_graph(task.inputs).read_matrix(block, task.dimensions.n_points)
    return direct_weights(affinities, numbers, task.dimensions.rows(block)[0], task.params.n_landmarks)
