"""Means and variances of the columns of points."""

import numpy as np

from scalemani.kernels.arrays.tiles import TILE_ROWS, slices


def total_variance(points: np.ndarray) -> float:
    """Return the sum of the variances of the columns of points (S, D)."""
    return float(moments(points)[1].sum())


def moments(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means (D,) and variances (D,) float64 of the columns of points (S, D), of which few are converted."""
    tiles = slices(len(points), TILE_ROWS)
    mean = sum(points[tile].sum(axis=0, dtype=np.float64) for tile in tiles) / len(points)
    return mean, sum(np.square(points[tile] - mean).sum(axis=0) for tile in tiles) / len(points)
