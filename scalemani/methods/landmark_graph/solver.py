"""The embedding of all points by the eigenmaps of the landmarks' own graph: each point on its own, in input order."""

import operator
from typing import Any, NamedTuple

import numpy as np

from scalemani.config.params import Parameters
from scalemani.engine.needs import EACH_PROCESS, EACH_TASK, Held
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import Arrays, StageTask, StageWork
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.nearest import SKETCH_DIMENSIONS, PreparedLandmarks, prepare_landmarks
from scalemani.kernels.landmarks.quality import isolation
from scalemani.kernels.landmarks.weights import Combining, combined
from scalemani.kernels.neighbors.isolation import USUAL, WIDE
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.kernels.rows.sketches import MOST_SAMPLE_ROWS
from scalemani.methods.landmark_graph.kernels import nystrom_gains
from scalemani.methods.landmark_graph.landmark_graph import StoredLandmarkGraph
from scalemani.stages.arrays.embeddings import StoredEmbedding
from scalemani.stages.arrays.landmarks import (
    StoredLandmarks,
)
from scalemani.stages.arrays.points import StoredPoints
from scalemani.stages.shared.compared_rows import products_held
from scalemani.stages.shared.output import create_embedding
from scalemani.store.groups import StageGroup

COPIES_OF_LANDMARKS = 4  # as read, centred, and those of them that fix the sketches
COPIES_OF_BLOCK = 2.5  # as read, what decoding takes, and what is compared with the landmarks
COPIES_OF_WEIGHTS = 5  # with squared distances and numbers, and the kernel on its way


class LandmarkMap(NamedTuple):
    """Landmarks prepared for a search, their coordinates (L, d), and how points are combined of them."""

    prepared: PreparedLandmarks
    coordinates: np.ndarray
    combining: Combining


def landmark_map(landmarks: StoredLandmarks, group: StageGroup, params: Parameters) -> LandmarkMap:
    """Return how points are embedded by the landmarks' own graph, of a group: by Z, or by Nystrom's formula."""
    graph = StoredLandmarkGraph(group)
    prepared, vectors = prepare_landmarks(landmarks.points.read()), graph.vectors.read()
    if params.embedding.solver == "le-z":
        combining = Combining(params.landmark_neighbors, params.landmark_weights.regularization)
        return LandmarkMap(prepared, vectors, combining)
    # A landmark is one of its own nearest.
    combining = Combining(params.landmark_graph.joined(len(vectors)) + 1, sigma=float(graph.sigma.read()))
    return LandmarkMap(prepared, vectors * nystrom_gains(graph.eigenvalues.read()), combining)


def memory(sizes: Sizes) -> list[Held]:
    """List the landmarks with their sketches, and what a block takes."""
    dimensions, params = sizes.dimensions, sizes.params
    features, n_landmarks, rows = dimensions.n_features, params.n_landmarks, dimensions.block_rows
    width, order = min(features, SKETCH_DIMENSIONS), min(n_landmarks, MOST_SAMPLE_ROWS, features)
    n_nearest = max(params.landmark_neighbors, params.landmark_graph.joined(n_landmarks) + 1)
    return [
        Held("landmarks", EACH_PROCESS, n_landmarks, features, "float64", COPIES_OF_LANDMARKS),
        Held("axes and Gram matrix of their sketches", EACH_PROCESS, features + order, width + order, copies=2),
        Held("sketches of the landmarks", EACH_PROCESS, n_landmarks, width, "float32"),
        Held("points of a block", EACH_TASK, rows, features, dimensions.dtype, COPIES_OF_BLOCK),
        Held("a tile of points in float64", EACH_TASK, TILE_ROWS, features, "float64", 2),
        *products_held(sizes, n_landmarks),
        Held("weights of a tile", EACH_TASK, TILE_ROWS, n_nearest, "float64", COPIES_OF_WEIGHTS),
        Held("rows of the embedding in a block", EACH_TASK, rows, params.n_components, "float64", 3),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Write the embedding by blocks, with the eigenvalues of the landmarks' graph; certify what lies far from all."""
    task = work.task
    create_embedding(task, StoredEmbedding.embedding)
    work.map_blocks(mapped_block)
    graph = task.stored(StoredLandmarkGraph)
    task.output.write_whole({StoredEmbedding.eigenvalues: graph.eigenvalues.read()})
    n_far = work.fold_blocks(far_points, operator.add, "distances")
    if n_far:
        work.warn(
            f"{task.stage}: {n_far} of {task.dimensions.n_points} points lie more than {WIDE:g} times as far from "
            f"the nearest landmark as {USUAL:.0%} of the points, by the spacing of the landmarks there: what they are "
            "made of says little of them; raise landmarks.n_landmarks, or leave outliers out"
        )
    return {"far_points": n_far}


def far_points(task: StageTask, block: int) -> int:
    """Return how many points of a block lie far from their nearest landmark."""
    points = task.stored(StoredPoints).points.read_block(block)
    prepared, spacings = task.once(read_map).prepared, task.once(read_spacings)
    tiles = (dense_rows(points[tile]) for tile in slices(points.shape[0], TILE_ROWS))
    return sum(int(np.count_nonzero(isolation(tile, prepared, spacings) > WIDE)) for tile in tiles)


def mapped_block(task: StageTask, block: int) -> Arrays:
    """Return one block of the embedding."""
    points, found = task.stored(StoredPoints).points.read_block(block), task.once(read_map)
    embedding = np.empty((points.shape[0], found.coordinates.shape[1]))
    for tile in slices(points.shape[0], TILE_ROWS):
        embedding[tile] = combined(dense_rows(points[tile]), found.prepared, found.combining).of(found.coordinates)
    return {StoredEmbedding.embedding: embedding}


def read_spacings(task: StageTask) -> np.ndarray:
    """Return the spacings (L,) of the landmarks of a task."""
    return task.stored(StoredLandmarks).read_spacings()


def read_map(task: StageTask) -> LandmarkMap:
    """Return the map of a task."""
    inputs = task.inputs
    return landmark_map(StoredLandmarks(inputs["landmarks"]), inputs["landmark_graph"], task.params)
