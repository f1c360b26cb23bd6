"""The embedding of all points by the eigenmaps of the landmark graph: each point independently, in input order.

What it stands for are the eigenmaps of that kernel between all points. No graph of these is made: one pass over the
points gives the rows of the kernel of a few sampled ones, and by these the residual of the embedding.
"""

import functools
import itertools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from scalemani.config.params import Resolved
from scalemani.engine.context import Arrays, StageContext, StageGraph, StageTask
from scalemani.engine.graph import Key
from scalemani.engine.memory_model import Disk, Memory, array
from scalemani.engine.sizes import Sizes, written
from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.nearest import (
    SKETCH_DIMENSIONS,
    nearest_landmarks,
    prepare_landmarks,
)
from scalemani.kernels.landmarks.quality import isolation
from scalemani.kernels.landmarks.weights import Combining, LandmarkMap, combined_among
from scalemani.kernels.neighbors.isolation import USUAL, WIDE
from scalemani.kernels.rows.compressed import dense_rows
from scalemani.kernels.rows.sketches import MOST_SAMPLE_ROWS
from scalemani.methods.landmark_graph.kernels import (
    KernelSums,
    SampledPoints,
    kernel_sums,
    nystrom_gains,
    sampled_residual,
)
from scalemani.methods.landmark_graph.landmark_graph import StoredLandmarkGraph
from scalemani.methods.landmark_graph.parameters import LandmarkGraphParams
from scalemani.stages.arrays.embeddings import StoredEmbedding
from scalemani.stages.arrays.landmarks import (
    StoredLandmarks,
)
from scalemani.stages.arrays.points import StoredPoints
from scalemani.stages.shared.landmark_maps import combining_of
from scalemani.stages.shared.tiled_search import compared
from scalemani.stages.shared.tiles import added, fold_tiles, tiles_one_by_one
from scalemani.store.groups import StageGroup

LANDMARKS_A_SAMPLE, FEWEST_SAMPLED, MOST_SAMPLED = 16, 32, 128
TILES_TOGETHER = 64  # whose sums are added where they are computed; another number would change the last bits
GRAPH = StoredLandmarkGraph.STAGE


def landmark_map(landmarks: StoredLandmarks, group: StageGroup, params: Resolved) -> LandmarkMap:
    """Return how points are embedded by the landmark graph, of a group: by Z, or by Nystrom's formula."""
    graph = StoredLandmarkGraph(group)
    prepared, vectors = prepare_landmarks(landmarks.points.read()), graph.vectors.read()
    if params.embedding.solver == "le-z":
        return LandmarkMap(prepared, vectors, combining_of(params))
    # A landmark is one of its own nearest.
    combining = Combining(params.part(LandmarkGraphParams).joined(len(vectors)) + 1, sigma=float(graph.sigma.read()))
    return LandmarkMap(prepared, vectors * nystrom_gains(graph.eigenvalues.read()), combining)


def memory(sizes: Sizes) -> Memory:
    """Return what the landmarks and their sketches take, and a block."""
    dimensions, params = sizes.dimensions, sizes.params
    features, n_landmarks, rows = dimensions.n_features, params.n_landmarks, dimensions.block_rows
    width, order = min(features, SKETCH_DIMENSIONS), min(n_landmarks, MOST_SAMPLE_ROWS, features)
    n_nearest, n_sampled = params.part(LandmarkGraphParams).joined(n_landmarks) + 1, n_sampled_points(n_landmarks)
    return Memory(
        process={
            # As read, centred, and those of them that fix the sketches.
            "landmarks": 4 * array("float64", n_landmarks, features),
            "axes and Gram matrix of their sketches": 2 * array("float64", features + order, width + order),
            "sampled points": 2 * array("float64", n_sampled, features + params.n_components),
        },
        task={
            # As read, what decoding takes, and what is compared with the landmarks.
            "points of a block": 2.5 * rows * dimensions.row_bytes,
            "a tile of points in float64": 2 * array("float64", TILE_ROWS, features),
            # With squared distances and numbers, and the kernel on its way.
            "weights of a tile": 5 * array("float64", TILE_ROWS, max(params.landmark_neighbors, n_nearest)),
            "rows of the embedding in a block, and their reach": array("float64", rows, 3 * params.n_components + 2),
            "kernel between sampled points and a tile": 4 * array("float64", n_sampled, TILE_ROWS),
            **compared(sizes, n_landmarks),
        },
    )


def disk(sizes: Sizes) -> Disk:
    """Return what is stored: the embedding, and how far the landmarks are that rows are made of."""
    stored = StoredEmbedding
    return Disk(written([stored.embedding, stored.eigenvalues, stored.reach], sizes))


def run(context: StageContext) -> dict[str, Any]:
    """Write the embedding by blocks, with the eigenvalues of the landmarks' graph; certify what lies far from all."""
    task = context.task
    width = task.params.n_components
    task.output.create(
        task.dimensions.n_points, [StoredEmbedding.embedding.sized(width), StoredEmbedding.reach.sized()]
    )
    task.output.write_whole({StoredEmbedding.eigenvalues: task.stored(StoredLandmarkGraph).eigenvalues.read()})
    n_far = context.compute(blocks_and_far_points)
    if n_far:
        context.warn(
            f"{task.stage}: {n_far} of {task.dimensions.n_points} points lie more than {WIDE:g} times as far from "
            f"the nearest landmark as {USUAL:.0%} of the points, by the spacing of the landmarks there: what they are "
            "made of says little of them; raise landmarks.n_landmarks, or leave outliers out"
        )
    residual, error = residual_of(context)
    return {"residual": residual, "residual_error": error, "far_points": n_far}


def blocks_and_far_points(graph: StageGraph) -> Key | None:
    """Add the embedding of all blocks, and how many of their points lie far from all landmarks."""
    graph.map_blocks(mapped_block)
    return graph.fold_blocks(far_points, operator.add)


def residual_of(context: StageContext) -> tuple[float, float]:
    """Return the residual of the embedding for the kernel between all points, and its standard error."""
    task = context.task
    sums: KernelSums = fold_tiles(context, kernel_sums_of_tiles, added, TILES_TOGETHER, "residuals")
    eigenvalues = task.stored(StoredLandmarkGraph).eigenvalues.read()
    return sampled_residual(sums, task.once(read_sample).vectors, eigenvalues, task.dimensions.n_points)


def kernel_sums_of_tiles(task: StageTask, tiles: range) -> KernelSums:
    """Return the sums of the kernel between sampled points and consecutive tiles of points."""
    return functools.reduce(added, sums_by_tile(task, tiles))


def sums_by_tile(task: StageTask, tiles: range) -> Iterator[KernelSums]:
    """Yield these sums tile by tile; a block is read once."""
    sampled, sigma = task.once(read_sample), float(task.stored(StoredLandmarkGraph).sigma.read_once())
    stored = StoredEmbedding(task.output)
    for block, parts in itertools.groupby(tiles_one_by_one(task, tiles), operator.itemgetter(0)):
        points = task.stored(StoredPoints).points.read_block(block)
        vectors, reach = stored.embedding.read_block(block), stored.reach.read_block(block)
        for _, part in parts:
            yield kernel_sums(sampled, dense_rows(points[part]), reach[part], vectors[part], sigma)


def read_sample(task: StageTask) -> SampledPoints:
    """Return the sampled points of a task: a sixteenth of the landmarks, so that the pass takes little of the run."""
    n_sampled = n_sampled_points(task.params.n_landmarks)
    rows = sample_rows(0, "embedding/residual", task.dimensions.n_points, n_sampled)
    center = task.stored(StoredLandmarks).points.read_once().mean(axis=0, dtype=np.float64)
    points, stored = dense_rows(task.stored(StoredPoints).points.gather(rows)), StoredEmbedding(task.output)
    return SampledPoints(center, points - center, stored.reach.gather(rows), stored.embedding.gather(rows))


def n_sampled_points(n_landmarks: int) -> int:
    """Return how many points are sampled, where there are as many."""
    return min(max(n_landmarks // LANDMARKS_A_SAMPLE, FEWEST_SAMPLED), MOST_SAMPLED)


def far_points(task: StageTask, block: int) -> int:
    """Return how many points of a block lie far from their nearest landmark."""
    points = task.stored(StoredPoints).points.read_block(block)
    prepared, spacings = task.once(read_map).prepared, task.once(read_spacings)
    tiles = (dense_rows(points[tile]) for tile in slices(points.shape[0], TILE_ROWS))
    return sum(int(np.count_nonzero(isolation(tile, prepared, spacings) > WIDE)) for tile in tiles)


def mapped_block(task: StageTask, block: int) -> Arrays:
    """Return one block of the embedding."""
    points, landmark_map = task.stored(StoredPoints).points.read_block(block), task.once(read_map)
    embedding, reach = np.empty((points.shape[0], landmark_map.coordinates.shape[1])), np.empty(points.shape[0])
    n_joined = (
        task.params.part(LandmarkGraphParams).joined(len(landmark_map.coordinates)) + 1
    )  # a landmark is its own nearest
    for tile in slices(points.shape[0], TILE_ROWS):
        rows = dense_rows(points[tile])
        near = nearest_landmarks(rows, landmark_map.prepared, max(n_joined, landmark_map.combining.n_neighbors))
        embedding[tile] = combined_among(rows, landmark_map.prepared, landmark_map.combining, *near).of(
            landmark_map.coordinates
        )
        reach[tile] = np.sqrt(near[1][:, n_joined - 1])
    return {StoredEmbedding.embedding: embedding, StoredEmbedding.reach: reach}


def read_spacings(task: StageTask) -> np.ndarray:
    """Return the spacings (L,) of the landmarks of a task."""
    return task.stored(StoredLandmarks).read_spacings()


def read_map(task: StageTask) -> LandmarkMap:
    """Return the map of a task."""
    inputs = task.inputs
    return landmark_map(StoredLandmarks(inputs["landmarks"]), inputs["landmark_graph"], task.params)
