"""What is around each landmark: the covariances of its nearest points, by which landmarks are joined.

They are a separate stage: graphs of more or fewer neighbours, and other bandwidths, take them as they are. Source:
[DPP] 3.3.
"""

from typing import Any

import numpy as np

from scalemani.engine.context import StageContext
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.reading import RowsOfArray, StoredStage, Whole
from scalemani.engine.sizes import Sizes, written
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.nearest import SKETCH_DIMENSIONS
from scalemani.methods.landmark_graph.invariants import DEFINITE
from scalemani.methods.landmark_graph.kernels import LANDMARKS_TOGETHER, local_geometry
from scalemani.methods.landmark_graph.parameters import LandmarkGraphParams
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.stages.arrays.points import StoredPoints
from scalemani.stages.shared.tiled_search import compared
from scalemani.store.invariants.values import POSITIVE, between


class StoredLandmarkCovariances(StoredStage, stage="landmark_covariances"):
    """Covariances of the points around each landmark, by which landmarks are joined."""

    covariances = Whole(
        "landmark feature other_feature",
        "float64",
        "of each landmark, positive definite; stored where landmark_graph.covariances is full",
        "squared, as given",
    ).with_invariants(DEFINITE)
    variances = Whole(
        "landmark feature",
        "float64",
        "their diagonals alone, positive; stored where landmark_graph.covariances is diagonal",
        "squared, as given",
    ).with_invariants(POSITIVE)
    counts = Whole("landmark", "int64", "how many points each covariance is of").with_invariants(between(1))


def memory(sizes: Sizes) -> Memory:
    """Return what the landmarks take, distances of the points around them, their covariances, and a tile of points."""
    dimensions, n_landmarks, features = sizes.dimensions, sizes.params.n_landmarks, sizes.dimensions.n_features
    n_near = min(sizes.params.part(LandmarkGraphParams).neighborhood, dimensions.n_points)
    sketches = array("float32", n_landmarks, min(features, SKETCH_DIMENSIONS))
    return Memory(
        process={
            "landmarks, and their sketches": 3 * array("float64", n_landmarks, features) + sketches,
            "covariances, and what is added to them": 2 * array("float64", n_landmarks, n_values(sizes)),
            # Rows and squares, of all points until now and of a tile, joined, and in order.
            "points around them, and how far these are": 8 * array("float64", n_landmarks, n_near),
            "points around some of them": 2 * array("float64", LANDMARKS_TOGETHER * n_near, features),
            "block that points are in": dimensions.block_rows * dimensions.row_bytes,
            "a tile of points, in float64 and centred": 3 * array("float64", TILE_ROWS, features),
        },
        task=compared(sizes, TILE_ROWS),
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the covariances, or their diagonals, and how many points they are of."""
    stored = StoredLandmarkCovariances
    diagonal = sizes.params.part(LandmarkGraphParams).covariances == "diagonal"
    return Disk(written([stored.variances if diagonal else stored.covariances, stored.counts], sizes))


def n_values(sizes: Sizes) -> int:
    """Return how many numbers the covariance of a landmark has."""
    features = sizes.dimensions.n_features
    return features**2 if sizes.params.part(LandmarkGraphParams).covariances == "full" else features


def run(context: StageContext) -> dict[str, Any]:
    """Measure the covariances; certify of how many points, and how many were singular."""
    task, graph_params = context.task, context.task.params.part(LandmarkGraphParams)
    context.executor.progress.start(task.stage, 1)
    landmarks = task.stored(StoredLandmarks).points.read()
    points = RowsOfArray(task.stored(StoredPoints).points, task.dimensions.n_points, task.cache_bytes)
    diagonal = graph_params.covariances == "diagonal"
    geometry = local_geometry(points, landmarks, graph_params.neighborhood, diagonal)
    described = StoredLandmarkCovariances.variances if diagonal else StoredLandmarkCovariances.covariances
    task.output.write_whole({described: geometry.covariances, StoredLandmarkCovariances.counts: geometry.counts})
    singular = int(np.count_nonzero(geometry.regularized))
    if singular:
        remedy = "leave out features that are constant" if diagonal else "take landmark_graph.covariances=diagonal"
        context.warn(
            f"{singular} of {len(landmarks)} landmarks have singular covariances, of "
            f"{graph_params.neighborhood} points each "
            f"in {landmarks.shape[1]} dimensions: a thousandth of their mean variance was added to the diagonal; raise "
            f"landmark_graph.neighborhood, or {remedy}"
        )
    context.executor.progress.advance()
    return {"least_points": int(geometry.counts.min()), "singular_covariances": singular}
