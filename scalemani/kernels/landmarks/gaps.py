"""How far landmarks lie apart, and which points lie much farther from all of them."""

import numpy as np

from scalemani.kernels.landmarks.nearest import PreparedLandmarks, nearest_landmarks
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.distances import comparable, squared_row_distance

WIDE = 2.0  # times the largest gap: landmarks are a sample, and some points lie in its gaps


def largest_gap(prepared: PreparedLandmarks) -> float:
    """Return the largest distance of a landmark from the landmark nearest to it; infinite where there is but one."""
    if len(prepared.landmarks) == 1:
        return np.inf
    return float(np.sqrt(nearest_landmarks(prepared.landmarks, prepared, 2)[1][:, 1].max()))


def far_from_landmarks(points: np.ndarray, landmarks: np.ndarray, distance: float) -> np.ndarray:
    """Return the rows (m,) of points (n, D) that are farther than a distance from every landmark (L, D).

    Most points are near to several landmarks, so that few of them are looked at: much less than what it takes to find
    the nearest one.
    """
    rows, columns = comparable(points, landmarks)
    near = np.zeros(len(rows), np.bool_)
    _mark_near(rows, columns, distance**2, near)
    return np.flatnonzero(~near)


@compiled
def _mark_near(rows: np.ndarray, landmarks: np.ndarray, square: float, near: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        for j in range(landmarks.shape[0]):
            if squared_row_distance(rows, i, landmarks, j, square) <= square:
                near[i] = True
                break
