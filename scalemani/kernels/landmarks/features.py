"""Landmark features w(x)_j = exp(-|t_j - x|^2 / eta) of any points."""

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.nearest import squares_to
from scalemani.kernels.rows.distances import comparable


def landmark_features(points: np.ndarray | sp.csr_matrix, landmarks: np.ndarray, eta: float) -> np.ndarray:
    """Return the features of points, each row of its point alone.

    Parameters
    ----------
    points : (n, D) real, finite. Squared distances of an array are summed from differences; those of a CSR matrix are
        |x|^2 + |t|^2 - 2 x.t, off by some 1e-16 of the squared lengths
    landmarks : (L, D) real, finite
    eta : bandwidth, in squared units of the points

    Returns
    -------
    (n, L) float64, from 0 to 1

    References
    ----------
    [GP] 5.2
    """
    if isinstance(points, np.ndarray):
        rows, columns = comparable(points, landmarks)
        features = squares_to(rows, columns, np.broadcast_to(np.arange(len(columns)), (len(rows), len(columns))))
    else:
        places = landmarks.astype(np.float64)
        squares = np.asarray(points.multiply(points).sum(axis=1), dtype=np.float64).reshape(-1, 1)
        features = np.asarray(points.astype(np.float64) @ places.T)
        features *= -2.0
        features += squares
        features += np.einsum("ld,ld->l", places, places)
        np.maximum(features, 0.0, out=features)
    features /= -eta
    return np.exp(features, out=features)


def total_variance(points: np.ndarray) -> float:
    """Return the sum of the variances of the columns of points (S, D)."""
    return float(moments(points)[1].sum())


def moments(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means (D,) and variances (D,) float64 of the columns of points (S, D), of which few are converted."""
    tiles = slices(len(points), TILE_ROWS)
    mean = sum(points[tile].sum(axis=0, dtype=np.float64) for tile in tiles) / len(points)
    return mean, sum(np.square(points[tile] - mean).sum(axis=0) for tile in tiles) / len(points)
