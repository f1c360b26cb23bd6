"""Z: every point as an affine combination of its nearest landmarks."""

from typing import Any

import numpy as np

from scalemani.engine.needs import EACH_PROCESS, EACH_TASK, Held
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.nearest import (
    SKETCH_DIMENSIONS,
    PreparedLandmarks,
    nearest_landmarks,
    prepare_landmarks,
)
from scalemani.kernels.landmarks.weights import local_weights, reconstruction_errors
from scalemani.kernels.rows.compressed import dense_tiles
from scalemani.kernels.rows.sketches import MOST_SAMPLE_ROWS
from scalemani.stages.arrays.landmarks import StoredLandmarks, StoredLandmarkWeights
from scalemani.stages.arrays.points import points_in_order
from scalemani.stages.shared.compared_rows import products_held

COPIES_OF_LANDMARKS = 2  # as read, and those of them that fix the sketches
COPIES_OF_AXES = 2  # as the eigenvectors span them, and orthonormal
COPIES_OF_BLOCK = 1.5  # as read, and what decoding takes
COPIES_OF_WEIGHTS = 5  # with squared distances and numbers, of 8 bytes each, and as they are stored


def memory(sizes: Sizes) -> list[Held]:
    """List the landmarks with their sketches, and what a block takes."""
    dimensions, params = sizes.dimensions, sizes.params
    rows, features, dtype = dimensions.block_rows, dimensions.n_features, dimensions.dtype
    n_landmarks = params.n_landmarks
    chosen = "float64" if params.landmarks.off_data else dtype
    at_once = TILE_ROWS if dimensions.sparse else rows
    as_float64 = 0 if chosen == dtype else at_once  # what is compared with landmarks has their dtype
    order, width = min(n_landmarks, MOST_SAMPLE_ROWS), min(features, SKETCH_DIMENSIONS)
    return [
        Held("landmarks", EACH_PROCESS, n_landmarks, features, chosen, COPIES_OF_LANDMARKS),
        Held("axes of their sketches", EACH_PROCESS, features, width, "float64", COPIES_OF_AXES),
        Held("Gram matrix and its eigenvectors", EACH_PROCESS, min(order, features), min(order, features), copies=2),
        Held("sketches of the landmarks", EACH_PROCESS, n_landmarks, width, "float32"),
        Held("points of a block", EACH_TASK, rows, *dimensions.kept_row, COPIES_OF_BLOCK),
        Held("points of a block, in float64", EACH_TASK, as_float64, features),
        *([Held("a tile of points, dense", EACH_TASK, TILE_ROWS, features, dtype)] if dimensions.sparse else []),
        Held("sketches of a block", EACH_TASK, at_once, width, "float32"),
        *products_held(sizes, n_landmarks),
        Held("weights of a block", EACH_TASK, rows, params.landmark_neighbors, "float64", COPIES_OF_WEIGHTS),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Compute Z; certify how well the landmarks reconstruct the points, relative to the nearest landmark alone."""
    task = work.task
    stored, width = StoredLandmarkWeights, task.params.landmark_neighbors
    arrays = [stored.indices.sized(width), stored.values.sized(width), stored.errors.sized()]
    task.output.create(task.dimensions.n_points, arrays)
    work.map_blocks(landmark_weights_block)
    total, largest, n_made, used = work.fold_blocks(
        block_errors,
        lambda one, other: (one[0] + other[0], max(one[1], other[1]), one[2] + other[2], one[3] | other[3]),
    )
    # Landmarks are themselves: they say nothing of how well others are made of them.
    mean = {"mean_reconstruction_error": total / n_made} if n_made else {}
    return {
        **mean,
        "largest_reconstruction_error": largest,
        "unused_landmarks": int(np.count_nonzero(~used)),
    }


def block_errors(task: StageTask, block: int) -> tuple[float, float, int, np.ndarray]:
    """Return the sum of a block's reconstruction errors, the largest, how many of its points are no landmarks.

    And which landmarks (L,) it uses. A landmark has one weight, and no error.
    """
    output, used = StoredLandmarkWeights(task.output), np.zeros(task.params.n_landmarks, dtype=bool)
    errors = output.errors.read_block(block)
    used[output.indices.read_block(block)] = True
    made = (errors > 0) | (np.count_nonzero(output.values.read_block(block), axis=1) > 1)
    return float(errors.sum(dtype=np.float64)), float(errors.max()), int(np.count_nonzero(made)), used


def landmark_weights_block(task: StageTask, block: int) -> Arrays:
    """Return the rows of Z of one block."""
    points = points_in_order(task.inputs).points.read_block(block)
    parts = [weights_of_rows(task, rows) for rows in dense_tiles(points)]
    return {described: np.concatenate([part[described] for part in parts]) for described in parts[0]}


def weights_of_rows(task: StageTask, points: np.ndarray) -> Arrays:
    """Return the rows of Z of some points (n, D)."""
    landmarks = task.stored(StoredLandmarks).points.read_once()
    indices, _ = nearest_landmarks(points, task.once(read_prepared_landmarks), task.params.landmark_neighbors)
    values = local_weights(points, landmarks, indices, task.params.landmark_weights.regularization)
    errors = reconstruction_errors(points, landmarks, indices, values)
    return {
        StoredLandmarkWeights.indices: indices,
        StoredLandmarkWeights.values: values,
        StoredLandmarkWeights.errors: errors.astype(np.float32),
    }


def read_prepared_landmarks(task: StageTask) -> PreparedLandmarks:
    """Return the landmarks as the search for the nearest ones takes them."""
    return prepare_landmarks(task.stored(StoredLandmarks).points.read_once())
