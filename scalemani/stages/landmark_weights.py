"""Z: every point as an affine combination of its nearest landmarks."""

from typing import Any

import numpy as np

from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask, Steps
from scalemani.engine.graph import Key
from scalemani.engine.memory_model import Memory, array
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.nearest import (
    SKETCH_DIMENSIONS,
    PreparedLandmarks,
    nearest_landmarks,
    prepare_landmarks,
)
from scalemani.kernels.landmarks.weights import combined_among, reconstruction_errors
from scalemani.kernels.rows.compressed import dense_tiles
from scalemani.kernels.rows.sketches import MOST_SAMPLE_ROWS
from scalemani.stages.arrays.landmarks import StoredLandmarks, StoredLandmarkWeights
from scalemani.stages.arrays.points import points_in_order
from scalemani.stages.shared.landmark_maps import combining_of
from scalemani.stages.shared.tiled_search import compared


def memory(sizes: Sizes) -> Memory:
    """Return what the landmarks and their sketches take, and a block."""
    dimensions, n_landmarks, features = sizes.dimensions, sizes.params.n_landmarks, sizes.dimensions.n_features
    rows, dtype = dimensions.block_rows, dimensions.dtype
    chosen = "float64" if sizes.params.landmarks.off_data else dtype
    at_once = TILE_ROWS if dimensions.sparse else rows
    as_float64 = 0 if chosen == dtype else at_once  # what is compared with landmarks has their dtype
    order, width = min(n_landmarks, MOST_SAMPLE_ROWS, features), min(features, SKETCH_DIMENSIONS)
    return Memory(
        process={
            "landmarks, and those of them that fix the sketches": 2 * array(chosen, n_landmarks, features),
            "axes of their sketches, as spanned and orthonormal": 2 * array("float64", features, width),
            "Gram matrix and its eigenvectors": 2 * array("float64", order, order),
        },
        task={
            "points of a block, with what decoding takes": 1.5 * rows * dimensions.row_bytes,
            "points that are compared": array("float64", as_float64, features)
            + dimensions.sparse * array(dtype, TILE_ROWS, features),
            "sketches of a block": array("float32", at_once, width),
            # With squared distances and numbers, of 8 bytes each, and as they are stored.
            "weights of a block": 5 * array("float64", rows, sizes.params.landmark_neighbors),
            **compared(sizes, n_landmarks),
        },
    )


def run(context: StageContext) -> dict[str, Any]:
    """Compute Z; certify how well the landmarks reconstruct the points, relative to the nearest landmark alone."""
    task = context.task
    stored, width = StoredLandmarkWeights, task.params.landmark_neighbors
    arrays = [stored.indices.sized(width), stored.values.sized(width), stored.errors.sized()]
    task.output.create(task.dimensions.n_points, arrays)
    total, largest, n_made, used = context.compute(blocks_and_errors)
    # Landmarks are themselves: they say nothing of how well others are made of them.
    mean = {"mean_reconstruction_error": total / n_made} if n_made else {}
    return {
        **mean,
        "largest_reconstruction_error": largest,
        "unused_landmarks": int(np.count_nonzero(~used)),
    }


def graphs(context: StageContext) -> Steps:
    """Yield the rows of Z with what certifies them."""
    yield blocks_and_errors


def blocks_and_errors(graph: StageGraph) -> Key | None:
    """Add the rows of Z, and the sums over their errors."""
    graph.map_blocks(landmark_weights_block)
    return graph.fold_blocks(
        block_errors,
        lambda one, other: (one[0] + other[0], max(one[1], other[1]), one[2] + other[2], one[3] | other[3]),
    )


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
    prepared, combining = task.once(read_prepared_landmarks), combining_of(task.params)
    near = nearest_landmarks(points, prepared, combining.n_neighbors)
    indices, values = combined_among(points, prepared, combining, *near)
    errors = reconstruction_errors(points, prepared.landmarks, indices, values)
    return {
        StoredLandmarkWeights.indices: indices,
        StoredLandmarkWeights.values: values,
        StoredLandmarkWeights.errors: errors.astype(np.float32),
    }


def read_prepared_landmarks(task: StageTask) -> PreparedLandmarks:
    """Return the landmarks as the search for the nearest ones takes them."""
    return prepare_landmarks(task.stored(StoredLandmarks).points.read_once())
