"""Z: every point as an affine combination of its nearest landmarks."""

from typing import Any

import numpy as np

from scalemani.chunked.work import Arrays, Dimensions, DiskNeed, StageTask, StageWork
from scalemani.kernels.landmarks.nearest import PreparedLandmarks, nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.weights import local_weights, reconstruction_errors
from scalemani.params import Parameters
from scalemani.records.landmarks import StoredLandmarks, StoredLandmarkWeights
from scalemani.records.points import StoredWorkPoints
from scalemani.store.schema import RowArray
from scalemani.workers.budget import MemoryNeed

SKETCH_BYTES_PER_LANDMARK = 4 * 65 + 8 * 64
ROWS_OF_BOUNDS = 64


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the landmarks and their sketches, and of a block with its distances and weights."""
    n_landmarks, n_neighbors = params.n_landmarks, params.landmark_neighbors
    landmarks = n_landmarks * (dimensions.n_features * 8 + dimensions.row_bytes + SKETCH_BYTES_PER_LANDMARK)
    block = dimensions.block_rows * (3 * dimensions.row_bytes + 40 * n_neighbors)
    return MemoryNeed(0, landmarks + block + ROWS_OF_BOUNDS * n_landmarks * 4)


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of Z and of the reconstruction errors."""
    return DiskNeed(dimensions.n_points * ((4 + 8) * params.landmark_neighbors + 4))


def run(work: StageWork) -> dict[str, Any]:
    """Compute Z; certify how well the landmarks reconstruct the points, relative to the nearest landmark alone."""
    task = work.task
    task.output.create(task.dimensions.n_points, arrays(task.params))
    work.map_blocks(landmark_weights_block)
    total, largest, used = work.fold_blocks(
        block_errors, lambda one, other: (one[0] + other[0], max(one[1], other[1]), one[2] | other[2])
    )
    return {
        "mean_reconstruction_error": total / task.dimensions.n_points,
        "largest_reconstruction_error": largest,
        "unused_landmarks": int(np.count_nonzero(~used)),
    }


def arrays(params: Parameters) -> list[RowArray]:
    """Describe what is stored."""
    width = params.landmark_neighbors
    return [
        StoredLandmarkWeights.INDICES.sized(width),
        StoredLandmarkWeights.VALUES.sized(width),
        StoredLandmarkWeights.ERRORS.sized(),
    ]


def block_errors(task: StageTask, block: int) -> tuple[float, float, np.ndarray]:
    """Return the sum of a block's reconstruction errors, the largest, and which landmarks (L,) it uses."""
    output, used = StoredLandmarkWeights(task.output), np.zeros(task.params.n_landmarks, dtype=bool)
    errors = output.errors.read_block(block)
    used[output.indices.read_block(block)] = True
    return float(errors.sum(dtype=np.float64)), float(errors.max()), used


def landmark_weights_block(task: StageTask, block: int) -> Arrays:
    """Return the rows of Z of one block."""
    points = StoredWorkPoints(task.inputs["work_points"]).points.read_block(block)
    landmarks = StoredLandmarks(task.inputs["landmarks"]).points.read_once()
    indices, _ = nearest_landmarks(points, task.once(prepared_landmarks), task.params.landmark_neighbors)
    values = local_weights(points, landmarks, indices, task.params.landmark_weights.regularization)
    errors = reconstruction_errors(points, landmarks, indices, values)
    return {
        StoredLandmarkWeights.INDICES: indices,
        StoredLandmarkWeights.VALUES: values,
        StoredLandmarkWeights.ERRORS: errors.astype(np.float32),
    }


def prepared_landmarks(task: StageTask) -> PreparedLandmarks:
    """Return the landmarks as the search for the nearest ones takes them."""
    return prepare_landmarks(StoredLandmarks(task.inputs["landmarks"]).points.read_once())
