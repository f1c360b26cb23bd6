"""Points with landmarks that the user chose."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, DataError
from scalemani.kernels.rows.equal_rows import first_of_equal_rows
from scalemani.kernels.rows.metrics import EUCLIDEAN, PRECOMPUTED
from scalemani.sources.base import PointsSource
from scalemani.sources.beside import PointsBeside, without_beside
from scalemani.sources.given_affinities import GivenAffinities
from scalemani.sources.opening import points_in_memory
from scalemani.store.objects import digest


@dataclass(frozen=True)
class GivenLandmarks:
    """The digest of landmarks, and how many they are."""

    digest: str
    count: int


class LandmarkedPoints(PointsBeside):
    """A source of points that knows landmarks for them.

    Parameters
    ----------
    points : (N, D)
    landmarks : (L, D) distinct, of any kind that points are given in: among the points or not
    metric : in which points and landmarks are compared, a name of `METRICS`

    Attributes
    ----------
    landmarks : (L, D) float64, as the metric maps them
    given : their digest and number

    Raises
    ------
    ConfigError
        For neighbours or affinities in the place of points.
    DataError
        For other columns than the points have, one landmark alone, repeated ones, and rows that cannot be used.
    """

    def __init__(self, points: PointsSource, landmarks: Any, metric: str = EUCLIDEAN) -> None:
        super().__init__(points)
        if metric == PRECOMPUTED or isinstance(without_beside(points), GivenAffinities):
            raise ConfigError("landmarks stand among points, and what is precomputed takes their place: leave out one")
        found = points_in_memory(landmarks, "landmarks", metric).astype(np.float64)
        if found.shape[1] != self.shape[1]:
            raise DataError(f"landmarks have {found.shape[1]} columns, points {self.shape[1]}; they must have the same")
        check_distinct(found)
        if len(found) < 2:
            raise DataError("landmarks has 1 row, at least 2 are needed: give more landmarks")
        self.landmarks = found
        self.given = GivenLandmarks(digest(f"{found.shape} ".encode() + found.tobytes()), len(found))

    def _of_rows(self, points: PointsSource, rows: np.ndarray) -> "LandmarkedPoints":
        return LandmarkedPoints(points, self.landmarks)  # they are mapped, and so are the rows of a component


def check_distinct(landmarks: np.ndarray) -> None:
    """Refuse landmarks (L, D) of which some are repeated."""
    distinct = first_of_equal_rows(landmarks)
    if len(distinct) < len(landmarks):
        repeated = int(np.setdiff1d(np.arange(len(landmarks)), distinct)[0])
        raise DataError(
            f"landmarks must be distinct, got {len(landmarks) - len(distinct)} repeated rows, the first of them row "
            f"{repeated}; select them with select_landmarks, or pass numpy.unique(landmarks, axis=0)"
        )
