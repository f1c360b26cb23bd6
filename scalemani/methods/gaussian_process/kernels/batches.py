"""A sample of the points in batches, and the set in which landmarks stay."""

from typing import NamedTuple

import numpy as np

from scalemani.errors import ConfigError, DataError
from scalemani.kernels.landmarks.features import moments
from scalemani.kernels.landmarks.selection import draw_rows
from scalemani.kernels.rows.compressed import PointsByRow

BATCH_POINTS = 1000  # [GP] 5, and at least as many again as landmarks: no more features than that fit a batch
BATCH_PER_LANDMARK = 2
SPHERE_TOLERANCE = 1e-3  # of squared lengths: points are stored in float32 at times


class Batches(NamedTuple):
    """A sample of the points in batches (b, B, D), its row numbers (b, B) int64, its mean and deviation (D,)."""

    points: np.ndarray
    rows: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray


def drawn_batches(
    points: PointsByRow, n_landmarks: int, seed: int, sample_points: int, batch_points: int | None = None
) -> Batches:
    """Return batches of points whose row numbers are a function of the seed and the step that takes them.

    Parameters
    ----------
    points : N points
    n_landmarks : L, below the points of a batch
    sample_points : points of all batches, N at most
    batch_points : B; None: 1,000, or twice the landmarks if more; N at most

    Raises
    ------
    ConfigError
        Where a batch has no more points than there are landmarks: their features would span it.
    """
    size = batch_size(len(points), n_landmarks, batch_points)
    n_batches = max(1, min(sample_points, len(points)) // size)
    drawn = draw_rows(len(points), n_batches * size, seed, "landmarks/gp/batches")
    order = np.argsort(drawn)
    sample = np.ascontiguousarray(points[drawn[order]][np.argsort(order)])
    mean, variances = moments(sample)
    return Batches(sample.reshape(n_batches, size, -1), drawn.reshape(n_batches, size), mean, np.sqrt(variances))


def batch_size(n_points: int, n_landmarks: int, batch_points: int | None) -> int:
    """Return the points of a batch.

    Raises
    ------
    ConfigError
        Where a batch has no more points than there are landmarks: their features would span it.
    """
    wanted = max(BATCH_POINTS, BATCH_PER_LANDMARK * n_landmarks) if batch_points is None else batch_points
    size = min(wanted, n_points)
    if size <= n_landmarks:
        raise ConfigError(
            f"landmarks.method=gp takes more points in a batch than landmarks, got batches of {size} points and "
            f"n_landmarks={n_landmarks}: ask for fewer landmarks or a larger landmarks.batch_points, or give more "
            "points"
        )
    return size


def check_in_set(batches: Batches, projection: str) -> None:
    """Refuse points outside the set to which landmarks are confined."""
    if projection == "none":
        return
    lowest = batches.points.min(axis=2)
    if lowest.min() < 0:
        row = batches.rows[np.unravel_index(lowest.argmin(), lowest.shape)]
        raise DataError(
            f"landmarks.projection={projection} keeps landmarks in the positive orthant, but row {row} of the points "
            f"has the value {lowest.min():.4g}: shift the points, or take landmarks.projection=none"
        )
    if projection == "sphere":
        lengths = np.einsum("bnd,bnd->bn", batches.points, batches.points, dtype=np.float64)
        off = np.abs(lengths - 1)
        if off.max() > SPHERE_TOLERANCE:
            place = np.unravel_index(off.argmax(), off.shape)
            raise DataError(
                f"landmarks.projection=sphere keeps landmarks on the unit sphere, but row {batches.rows[place]} of the "
                f"points has the length {np.sqrt(lengths[place]):.4g}: give rows of unit length, such as square roots "
                "of frequencies, or take landmarks.projection=orthant"
            )


def projected(landmark: np.ndarray, projection: str) -> np.ndarray:
    """Return the nearest place in the set S: all of the space, the positive orthant, or of it the unit sphere."""
    if projection == "none":
        return landmark
    positive = np.maximum(landmark, 0.0)
    if projection == "orthant":
        return positive
    length = float(np.linalg.norm(positive))
    if length > 0:
        return positive / length
    nearest = np.zeros_like(landmark)  # of a place without a positive coordinate
    nearest[np.argmax(landmark)] = 1.0
    return nearest
