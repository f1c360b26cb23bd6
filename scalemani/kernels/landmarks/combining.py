"""Points as combinations of their nearest landmarks, by weights that sum to one: of Z, or of a kernel."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.landmarks.nearest import PreparedLandmarks, nearest_landmarks
from scalemani.kernels.landmarks.weights import local_weights


class Combining(NamedTuple):
    """How weights are chosen.

    Parameters
    ----------
    n_neighbors : landmarks a point
    regularization : of the weights of Z, as in `local_weights`
    sigma : bandwidth of the Gaussian kernel whose shares are the weights, in the unit of the points; None: those of Z
    """

    n_neighbors: int
    regularization: float | None = None
    sigma: float | None = None


class Combined(NamedTuple):
    """Landmarks (n, K) int32 of points, ascending distance, squared distances and weights (n, K) float64."""

    indices: np.ndarray
    squares: np.ndarray
    weights: np.ndarray

    def of(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the points' combinations (n, d) float64 of the landmarks' coordinates (L, d)."""
        found = np.zeros((len(self.indices), coordinates.shape[1]))
        # Landmark by landmark, so that the order of the sum does not depend on the number of rows.
        for neighbor, weight in zip(self.indices.T, self.weights.T, strict=True):
            found += weight[:, np.newaxis] * coordinates[neighbor]
        return found


def combined(points: np.ndarray, prepared: PreparedLandmarks, combining: Combining) -> Combined:
    """Return the weights of points (n, D) over their nearest landmarks: each row depends on its own point alone."""
    indices, squares = nearest_landmarks(points, prepared, combining.n_neighbors)
    if combining.sigma is None:
        weights = local_weights(points, prepared.landmarks, indices, combining.regularization)
    else:
        weights = kernel_shares(squares, combining.sigma)
    return Combined(indices, squares, weights)


def kernel_shares(squares: np.ndarray, sigma: float) -> np.ndarray:
    """Return exp(-s / (2 sigma^2)) over its sum, row by row, of squared distances (n, K) that ascend: (n, K) float64.

    The kernel of the nearest is divided out first: far from all landmarks it would be zero.
    """
    with np.errstate(over="ignore"):  # of what is infinitely farther than the nearest, the kernel is zero
        kernel = np.exp(-0.5 * ((squares - squares[:, :1]) / sigma) / sigma)
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))
