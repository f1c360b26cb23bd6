"""The neighbour graph of the landmarks, and its Laplacian eigenmaps: what is known without a graph of all points.

Source: [LLL] 4.8.1 for LE(Z) and Nystrom; [DPP] 3.3 for neighbours by the Bhattacharyya distance.
"""

from typing import Any

import numpy as np

from scalemani.config.params import Resolved
from scalemani.engine.context import StageContext
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.reading import StoredStage, Whole
from scalemani.engine.sizes import Sizes, written
from scalemani.errors import ConfigError, ShortfallWarning
from scalemani.kernels.arrays.workspace import Workspace, threads
from scalemani.kernels.landmarks.nearest import nearest_landmarks
from scalemani.kernels.spectral.accuracy import count_near_zero
from scalemani.methods.landmark_graph.invariants import LANDMARK_SOLUTION, NEAREST_JOINED
from scalemani.methods.landmark_graph.kernels import (
    bhattacharyya_neighbors,
    connected_eigenmaps,
    landmark_kernel,
    spacing,
)
from scalemani.methods.landmark_graph.landmark_covariances import StoredLandmarkCovariances
from scalemani.methods.landmark_graph.parameters import LandmarkGraphParams
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.store.invariants.values import (
    ASCENDING,
    DISTINCT_IN_ROWS,
    FINITE,
    LANDMARKS,
    NOT_THE_ROW_ITSELF,
    POSITIVE,
    between,
    in_count,
)

DIMENSIONS = {"joined_landmark": "the landmarks that a landmark is joined to: landmark_graph.n_neighbors"}


class StoredLandmarkGraph(StoredStage, stage="landmark_graph"):
    """The neighbour graph of the landmarks, and its Laplacian eigenmaps."""

    neighbors = Whole(
        "landmark joined_landmark", "int64", "the landmarks that each is joined to, nearest first", "landmark"
    ).with_invariants(in_count(LANDMARKS), DISTINCT_IN_ROWS, NOT_THE_ROW_ITSELF, NEAREST_JOINED)
    eigenvalues = Whole(
        "component",
        "float64",
        "the smallest eigenvalues of the Laplacian of the graph, ascending, the trivial one left out",
    ).with_invariants(between(0, 2), ASCENDING)
    vectors = Whole(
        "landmark component", "float64", "eigenvectors of L v = lambda D v: the coordinates of the landmarks"
    ).with_invariants(FINITE, LANDMARK_SOLUTION)
    sigma = Whole("", "float64", "the bandwidth of the kernel that weighs edges", "as given").with_invariants(POSITIVE)


def memory(sizes: Sizes) -> Memory:
    """Return what the landmarks take, their covariances, and the edges of their graph."""
    graph_params, n_landmarks = sizes.params.part(LandmarkGraphParams), sizes.params.n_landmarks
    features = sizes.dimensions.n_features
    held = Memory(
        {
            "landmarks": 3 * array("float64", n_landmarks, features),
            # Both ways, as pairs and as a matrix, and scaled.
            "edges of their graph": 6 * array("float64", n_landmarks, graph_params.joined(n_landmarks)),
            # Laplacian, degrees, the factor and what LAPACK works in.
            "dense matrices of few landmarks": 4 * array("float64", n_landmarks, n_landmarks),
        }
    )
    if graph_params.kind == "euclidean":
        return held
    covariances = array("float64", n_landmarks, features * (features if graph_params.covariances == "full" else 1))
    between = {"those between two landmarks, and what solving takes": 2 * covariances}
    return held + Memory({"covariances": covariances}, between)


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the graph and its eigenmaps."""
    joined = sizes.params.part(LandmarkGraphParams).joined(sizes.params.n_landmarks)
    return Disk(written(StoredLandmarkGraph.ARRAYS, sizes, joined_landmark=joined))


def check_parameters(params: Resolved) -> None:
    """Refuse to join each landmark to as many as there are."""
    n_landmarks = params.n_landmarks
    joined = params.part(LandmarkGraphParams).joined(n_landmarks)
    if joined >= n_landmarks:
        raise ConfigError(f"landmark_graph.n_neighbors must be below landmarks.n_landmarks={n_landmarks}, got {joined}")


def run(context: StageContext) -> dict[str, Any]:
    """Join the landmarks, solve for the smallest eigenvalues of their Laplacian, the trivial one left out."""
    task, graph_params = context.task, context.task.params.part(LandmarkGraphParams)
    context.executor.progress.start(task.stage, 1)
    landmarks = task.stored(StoredLandmarks).points.read()
    neighbors = joined_landmarks(context, landmarks)
    sigma = graph_params.sigma or spacing(landmarks)
    maps = connected_eigenmaps(landmark_kernel(landmarks, neighbors, sigma), task.params.n_components)
    n_zero = count_near_zero(maps.eigenvalues)
    if n_zero > 1:
        context.warn(
            f"landmark_graph: {n_zero} eigenvalues are zero to rounding, where that of the constant vector should be "
            f"the only one: the graph of the landmarks falls into {n_zero} parts that next to nothing joins, and the "
            "embedding is one basis of many of the vectors that tell these apart; raise landmark_graph.n_neighbors or "
            "landmark_graph.sigma",
            ShortfallWarning,
        )
    n_beyond = int(np.count_nonzero(maps.eigenvalues >= 1.0))
    if n_beyond and task.params.embedding.solver == "nystrom":
        context.warn(
            f"landmark_graph: {n_beyond} of {len(maps.eigenvalues)} eigenvalues are 1 or more, and their columns have "
            "no extension to points: they are zero; ask for fewer landmark_embedding.n_components",
            ShortfallWarning,
        )
    task.output.write_whole(
        {
            StoredLandmarkGraph.neighbors: neighbors.astype(np.int64),
            StoredLandmarkGraph.eigenvalues: maps.eigenvalues,
            StoredLandmarkGraph.vectors: maps.embedding,
            StoredLandmarkGraph.sigma: np.array(sigma),
        }
    )
    context.executor.progress.advance()
    return {"sigma": sigma, "near_zero_eigenvalues": n_zero}


def joined_landmarks(context: StageContext, landmarks: np.ndarray) -> np.ndarray:
    """Return the landmarks (L, k) that each is joined to."""
    task, graph_params = context.task, context.task.params.part(LandmarkGraphParams)
    n_joined = graph_params.joined(len(landmarks))
    if graph_params.kind == "euclidean":
        return nearest_landmarks(landmarks, landmarks, n_joined + 1)[0][:, 1:]  # each is its own nearest
    stored = task.stored(StoredLandmarkCovariances)
    covariances = (stored.variances if graph_params.covariances == "diagonal" else stored.covariances).read()
    with threads(context.in_one_process) as side_by_side:
        return bhattacharyya_neighbors(landmarks, covariances, n_joined, Workspace(side_by_side.over))
