"""New points in a finished spectral embedding: their weights over the landmarks, times the landmarks' coordinates."""

from typing import NamedTuple

import numpy as np

from scalemani.chunked.resident import gather_rows
from scalemani.errors import DataError
from scalemani.kernels.landmark_weights import local_weights
from scalemani.kernels.nearest_landmarks import PreparedLandmarks, nearest_landmarks, prepare_landmarks
from scalemani.run import Run
from scalemani.sources import PointsSource
from scalemani.validation import check_finite_block

ROWS_AT_ONCE = 4096


class PlacedLandmarks(NamedTuple):
    """All that placing a point takes. `points` (L, D), `coordinates` (L, d), neighbours and regularisation of Z."""

    prepared: PreparedLandmarks
    coordinates: np.ndarray
    n_neighbors: int
    regularization: float | None

    def place(self, points: np.ndarray) -> np.ndarray:
        """Return the coordinates (n, d) of points (n, D): each row depends on its own point only."""
        landmarks = self.prepared.landmarks
        if points.shape[1] != landmarks.shape[1]:
            raise DataError(
                f"X has {points.shape[1]} features, but the embedding was made of {landmarks.shape[1]} features"
            )
        placed = np.zeros((len(points), self.coordinates.shape[1]))
        for start in range(0, len(points), ROWS_AT_ONCE):
            rows = points[start : start + ROWS_AT_ONCE]
            indices, _ = nearest_landmarks(rows, self.prepared, self.n_neighbors)
            weights = local_weights(rows, landmarks, indices, self.regularization)
            # Landmark by landmark, so that the order of the sum does not depend on the number of rows.
            for neighbor, weight in zip(indices.T, weights.T, strict=True):
                placed[start : start + ROWS_AT_ONCE] += weight[:, np.newaxis] * self.coordinates[neighbor]
        return placed

    def place_source(self, points: PointsSource) -> np.ndarray:
        """Return the coordinates (n, d) of all points of a source, read by blocks."""
        n_points, step = points.shape[0], max(ROWS_AT_ONCE, points.preferred_rows or 0)
        placed = np.empty((n_points, self.coordinates.shape[1]))
        for start in range(0, n_points, step):
            rows = points.read(start, min(start + step, n_points))
            check_finite_block(rows, start)
            placed[start : start + step] = self.place(rows)
        return placed


def placed_landmarks(run: Run) -> PlacedLandmarks:
    """Return the landmarks of a finished run with their coordinates in its embedding."""
    landmarks, asked = run.group("landmarks"), run.params.landmark_weights
    rows = landmarks.read("rows")
    coordinates = gather_rows(run.group("embedding"), "embedding", rows, 0)
    return PlacedLandmarks(
        prepare_landmarks(landmarks.read("points")), coordinates, asked.n_neighbors, asked.regularization
    )


class NewPoints:
    """The embedding of new points as a source of rows, computed as they are read."""

    sequential: bool
    preferred_rows: int | None = None

    def __init__(self, run: Run, points: PointsSource) -> None:
        self._landmarks = placed_landmarks(run)
        self._points = points
        self.shape = (points.shape[0], self._landmarks.coordinates.shape[1])
        self.dtype = np.dtype(np.float64)
        self.sequential = points.sequential
        self.description = f"{points.description} placed in {run.store.root}"
        if points.shape[1] != self._landmarks.prepared.landmarks.shape[1]:
            raise DataError(
                f"{points.description} has {points.shape[1]} features, the run was made of "
                f"{self._landmarks.prepared.landmarks.shape[1]} features: give points with the same columns"
            )

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the coordinates of rows [start, stop)."""
        rows = self._points.read(start, stop)
        check_finite_block(rows, start)
        return self._landmarks.place(rows)
