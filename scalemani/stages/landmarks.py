"""The landmarks, chosen among the points in input order: the choice depends on the points and the seed alone."""

from typing import Any

import numpy as np

from scalemani.chunked.work import Dimensions, DiskNeed, StageTask, StageWork
from scalemani.functions.landmarks import LANDMARK_METHODS
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.minibatch import minibatch_start, minibatch_step, snap_rows, snap_start, snap_step
from scalemani.kernels.landmarks.seeding import kmeans_plus_plus
from scalemani.kernels.landmarks.uniform import first_of_equal_rows, random_landmarks
from scalemani.memory.kept import gather_rows
from scalemani.params import Parameters
from scalemani.workers.budget import MemoryNeed

COPIES_OF_SAMPLE = 3  # the points as stored, in float32 while they are compared, and a block on its way


def memory(dimensions: Dimensions, params: Parameters) -> MemoryNeed:
    """Return the bytes of the sample from which landmarks are chosen, and of the landmarks."""
    n_landmarks = params.n_landmarks
    drawn = 2 * n_landmarks if params.landmarks.method in ("random", "spread") else params.landmarks.sample_points
    sample = min(dimensions.n_points, drawn)
    return MemoryNeed(
        COPIES_OF_SAMPLE * (sample + n_landmarks) * max(dimensions.row_bytes, 4 * dimensions.n_features),
        dimensions.block_rows * dimensions.row_bytes,
    )


def disk(dimensions: Dimensions, params: Parameters) -> DiskNeed:
    """Return the bytes of the landmarks and their rows."""
    return DiskNeed(8 * params.n_landmarks, points=params.n_landmarks)


def run(work: StageWork) -> dict[str, Any]:
    """Choose the landmarks and keep their points and rows."""
    work.executor.progress.start(work.task.stage, 1)
    points = PointsByRow(work.task)
    rows = chosen_rows(points, work.task.params)
    work.task.output.write_whole({"rows": rows, "points": points[rows]})
    work.executor.progress.advance()
    return {"landmarks": len(rows)}


class PointsByRow:
    """Stored points that are read by row numbers, as an array in memory is."""

    def __init__(self, task: StageTask) -> None:
        self._task = task

    def __len__(self) -> int:
        return self._task.dimensions.n_points

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return gather_rows(self._task.inputs["points"], "points", rows, self._task.cache_bytes)


def chosen_rows(points: PointsByRow, params: Parameters) -> np.ndarray:
    """Return the rows of the landmarks, ascending.

    Random and spread landmarks are drawn from all points; k-means sees all points in batches; the methods that compare
    every candidate with every landmark see a sample.
    """
    method, n_landmarks, seed = params.landmarks.method, params.n_landmarks, params.seed
    if method in ("random", "spread"):
        return np.sort(LANDMARK_METHODS[method](points, n_landmarks, seed))
    rows = sample_rows(seed, "landmarks/sample", len(points), max(params.landmarks.sample_points, n_landmarks))
    sample = points[rows]
    if method == "kmeans":
        return clustered(points, sample, random_landmarks(len(points), n_landmarks, seed, points.__getitem__), params)
    if method == "kmeans++":
        return clustered(points, sample, rows[kmeans_plus_plus(sample, n_landmarks, seed)], params)
    return np.sort(rows[LANDMARK_METHODS[method](sample, n_landmarks, seed)])


def clustered(points: PointsByRow, sample: np.ndarray, seeds: np.ndarray, params: Parameters) -> np.ndarray:
    """Return the rows nearest to the centroids of mini-batch k-means over tiles of all points in random order."""
    n_points, seed = len(points), params.seed
    state = minibatch_start(sample, points[seeds])
    n_tiles = -(-n_points // TILE_ROWS)
    order = generator(seed, "landmarks/tiles").permutation(n_tiles)
    for tile in order[: max(1, params.landmarks.sample_points // TILE_ROWS)]:
        state = minibatch_step(state, points[tile_rows(int(tile), n_points)])
    snapped = snap_start(len(seeds))
    for tile in range(n_tiles):
        snapped = snap_step(snapped, state, points[tile_rows(tile, n_points)], tile * TILE_ROWS)
    found = snap_rows(snapped)
    # Centroids whose nearest points were all taken, or are repeated, give way to the seeds.
    candidates = np.concatenate([found[found >= 0], seeds])
    candidates = candidates[np.sort(np.unique(candidates, return_index=True)[1])]
    return np.sort(candidates[first_of_equal_rows(points[candidates])[: len(seeds)]])


def tile_rows(tile: int, n_points: int) -> np.ndarray:
    """Return the rows of a tile."""
    return np.arange(tile * TILE_ROWS, min((tile + 1) * TILE_ROWS, n_points))
