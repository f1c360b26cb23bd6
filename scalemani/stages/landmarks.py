"""The landmarks, chosen among the points in input order: the choice depends on the points and the seed alone."""

from typing import Any

import numpy as np

from scalemani.chunked.needs import EACH_PROCESS, ENCODED, STORED, Held, Written
from scalemani.chunked.sizes import Sizes
from scalemani.chunked.work import StageTask, StageWork
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.selection import selected_rows
from scalemani.kernels.landmarks.uniform import SPARE_FRACTION, n_spread_candidates
from scalemani.kernels.rows.sketches import MOST_SAMPLE_ROWS
from scalemani.records.landmarks import StoredLandmarks
from scalemani.records.points import StoredPoints

COPIES_OF_CENTROIDS = 4  # centroids, their sums, those of the step before, and in float32 with their sketches


def memory(sizes: Sizes) -> list[Held]:
    """List the points that landmarks are chosen from, as the method compares them, and the landmarks."""
    dimensions, asked, n_landmarks = sizes.dimensions, sizes.params.landmarks, sizes.params.n_landmarks
    n_points, features, dtype = dimensions.n_points, dimensions.n_features, dimensions.dtype
    held = [
        Held("landmarks", EACH_PROCESS, n_landmarks, features, dtype),
        Held("block that points are in", EACH_PROCESS, dimensions.block_rows, features, dtype),
    ]
    if asked.method in ("random", "spread"):
        n_drawn = min(n_points, n_spread_candidates(n_landmarks, n_points) + n_landmarks // SPARE_FRACTION + 1)
        held.append(Held("points drawn, as read and in the order drawn", EACH_PROCESS, n_drawn, features, dtype, 2))
    else:
        n_sampled = min(n_points, max(asked.sample_points, n_landmarks))
        held.append(Held("sample of the points", EACH_PROCESS, n_sampled, features, dtype))
    if asked.method != "random":
        n_basis = min(MOST_SAMPLE_ROWS, n_points)
        held.append(Held("points that fix the sketches, centred", EACH_PROCESS, n_basis, features, "float64"))
    if asked.method in ("kmeans", "kmeans++"):
        held.append(
            Held("centroids and their sums", EACH_PROCESS, n_landmarks, features, "float64", COPIES_OF_CENTROIDS)
        )
        held.append(Held("a tile of points, centred", EACH_PROCESS, TILE_ROWS, features, "float64", 2))
    return held


def disk(sizes: Sizes) -> list[Written]:
    """List what is stored: the landmarks and their rows."""
    dimensions, n_landmarks = sizes.dimensions, sizes.params.n_landmarks
    return [
        Written("rows of the landmarks", STORED, n_landmarks, 1, "int64"),
        Written("landmarks", ENCODED, n_landmarks, dimensions.n_features, dimensions.dtype),
    ]


def run(work: StageWork) -> dict[str, Any]:
    """Choose the landmarks and keep their points and rows."""
    work.executor.progress.start(work.task.stage, 1)
    points, params = PointsByRow(work.task), work.task.params
    asked = params.landmarks
    rows = selected_rows(points, params.n_landmarks, asked.method, params.seed, asked.sample_points)
    work.task.output.write_whole({StoredLandmarks.ROWS: rows, StoredLandmarks.POINTS: points[rows]})
    work.executor.progress.advance()
    return {"landmarks": len(rows)}


class PointsByRow:
    """Points that are read by row numbers, as an array in memory is."""

    def __init__(self, task: StageTask) -> None:
        self._task, self._points = task, StoredPoints(task.inputs["points"]).points

    def __len__(self) -> int:
        return self._task.dimensions.n_points

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self._points.gather(rows, self._task.cache_bytes)
