"""Points with a weight each: how many equal points one stands for."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scalemani.errors import DataError
from scalemani.sources.base import PointsSource
from scalemani.sources.beside import PointsBeside
from scalemani.sources.labels import open_labels
from scalemani.store.objects import digest
from scalemani.validation import N_REPORTED_ROWS


class Weights(NamedTuple):
    """The weights (N,) float64 of the points in input order, and what tells them from others."""

    values: np.ndarray
    digest: str

    def fewest_neighbors(self, n_neighbors: int) -> float:
        """Return how many points so many neighbours stand for at least, whichever they are."""
        return float(np.partition(self.values, n_neighbors - 1)[:n_neighbors].sum())


class WeightedPoints(PointsBeside):
    """A source of points that knows the weight of each.

    Parameters
    ----------
    points : (N, D)
    weights : (N,) real numbers of at least one, or the path of a file of them, as of labels

    Attributes
    ----------
    weights : in input order, with their digest

    Raises
    ------
    ConfigError, StoreError, DataError
        For a file that cannot be read, and for anything but one finite number of at least one a point.
    """

    def __init__(self, points: PointsSource, weights: Any) -> None:
        super().__init__(points)
        where = str(weights) if isinstance(weights, str | Path) else "weights"
        n_points = points.shape[0]
        found = check_weights(open_labels(weights, n_points, "weight"), n_points, where)
        self.weights = Weights(found, digest(found.tobytes()))

    def _of_rows(self, points: PointsSource, rows: np.ndarray) -> "WeightedPoints":
        return WeightedPoints(points, self.weights.values[rows])


def check_weights(weights: Any, n_points: int, where: str = "sample_weight") -> np.ndarray:
    """Return the weights (N,) float64 of points, each the number of equal points that it stands for.

    Raises
    ------
    DataError
        For anything but one finite number of at least one a point.
    """
    given = np.asarray(weights)
    if given.dtype.kind not in "biuf":
        raise DataError(f"{where} must be real numbers, got dtype {given.dtype}: give each point how often it counts")
    if given.shape != (n_points,):
        raise DataError(
            f"{where} must have one weight a point, ({n_points},), got shape {given.shape}: give them in the points' "
            "order"
        )
    counts = given.astype(np.float64)
    wrong = np.flatnonzero(~((counts >= 1.0) & np.isfinite(counts)))
    if len(wrong):
        row = wrong[0]
        kinds = (
            ("NaN or infinite", ~np.isfinite(counts[row])),
            ("negative", counts[row] < 0),
            ("zero", counts[row] == 0),
            ("below one", True),
        )
        kind = next(name for name, holds in kinds if holds)
        listed = ", ".join(map(str, wrong[:N_REPORTED_ROWS]))
        raise DataError(
            f"{where} must be finite and at least 1, as a weight counts the equal points that one stands for: "
            f"{len(wrong)} are not, in row(s) {listed}; the first is {kind}, {given[row]}. Leave points of weight zero "
            "out, and divide smaller weights by the least"
        )
    return counts
