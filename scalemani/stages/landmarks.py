"""The landmarks, chosen among the points in input order: the choice depends on the points and the seed alone."""

from typing import Any

import numpy as np

from scalemani.chunked.work import Dimensions, DiskNeed, StageTask, StageWork
from scalemani.kernels.landmarks.selection import selected_rows
from scalemani.params import Parameters
from scalemani.records.landmarks import StoredLandmarks
from scalemani.records.points import StoredPoints
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
