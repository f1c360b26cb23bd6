"""Z of the variational Nystrom method: every point by its affinities to the landmarks that are its neighbours."""

import functools
from typing import Any

import numpy as np
import scipy.sparse as sp

from scalemani.engine.context import StageContext, StageTask
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.sizes import Sizes, written
from scalemani.errors import ConfigError
from scalemani.methods.variational.kernels import MOST_LANDMARKS, completed_weights, direct_weights, landmark_numbers
from scalemani.stages.arrays.affinities import affinity_graph
from scalemani.stages.arrays.landmarks import StoredAffinityWeights, StoredLandmarks
from scalemani.stages.arrays.points import StoredWorkPoints


def weight_entries(sizes: Sizes) -> int:
    """Return the nonzeros of Z, at most: columns of W, and a row of few landmarks for every other point."""
    n_points, n_landmarks = sizes.dimensions.n_points, sizes.params.n_landmarks
    return n_landmarks + 2 * n_landmarks * sizes.params.affinity_neighbors + MOST_LANDMARKS * n_points


def memory(sizes: Sizes) -> Memory:
    """Return what the rows that are landmarks take, W by blocks, and Z."""
    of_rows = array("int64", sizes.dimensions.n_points, 3)
    return Memory(
        process={
            "rows by work and by input order, and landmarks by row": of_rows,
            # By block, put together, and with the rows of a further step.
            "Z": 3 * array("float64", sizes.weight_entries, 2),
        },
        task={"a block of W, and what leads to landmarks": 2 * array("float64", sizes.block_nonzeros, 2)},
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: Z."""
    return Disk(written(StoredAffinityWeights.ARRAYS, sizes, nonzero=sizes.weight_entries))


def run(context: StageContext) -> dict[str, Any]:
    """Read W once, then again the rows of points without a landmark among their neighbours; certify their number."""
    task, dimensions = context.task, context.task.dimensions
    numbers = numbers_of(task)
    blocks = range(dimensions.n_blocks)
    context.executor.progress.start(task.stage, dimensions.n_blocks)
    direct = context.executor.map_here(functools.partial(block_weights, task, numbers), blocks)
    graph = affinity_graph(task.inputs)

    def rows_of_w(rows: np.ndarray) -> sp.csr_matrix:
        return graph.read_at(rows, dimensions)

    completed = completed_weights(sp.vstack(list(direct), format="csr"), rows_of_w)
    task.output.write_whole(
        {
            StoredAffinityWeights.indptr: completed.weights.indptr.astype(np.int64),
            StoredAffinityWeights.indices: completed.weights.indices.astype(np.int32),
            StoredAffinityWeights.values: completed.weights.data,
        }
    )
    mean = completed.weights.nnz / dimensions.n_points
    return {"landmarks_a_point": mean, "points_without_landmark": completed.unreached, "further_steps": completed.steps}


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
