"""Points as combinations of their nearest landmarks, by weights that sum to one: of Z, or of a kernel."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.landmarks.nearest import PreparedLandmarks, nearest_landmarks
from scalemani.kernels.landmarks.weights import local_weights
from scalemani.kernels.machine.compile import compiled

SHARES_AT_ONCE = 2**14  # of the kernel: what is worked in stays in the second-level cache


class Combining(NamedTuple):
    """How weights are chosen.

    Parameters
    ----------
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
        combinations = np.zeros((len(self.indices), coordinates.shape[1]))
        _add_weighted(self.indices, self.weights, coordinates, combinations)
        return combinations


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
    shares = np.empty(squares.shape)
    rows_at_once = max(1, SHARES_AT_ONCE // squares.shape[1])
    for start in range(0, len(squares), rows_at_once):
        rows, part = squares[start : start + rows_at_once], shares[start : start + rows_at_once]
        with np.errstate(over="ignore"):  # of what is infinitely farther than the nearest, the kernel is zero
            np.exp(-0.5 * ((rows - rows[:, :1]) / sigma) / sigma, out=part)
        part /= part.sum(axis=1, keepdims=True)
    return shares


@compiled
def _add_weighted(indices: np.ndarray, weights: np.ndarray, coordinates: np.ndarray, combinations: np.ndarray) -> None:
    """Add the weighted coordinates of each row's landmarks, in their order: no sum depends on the number of rows."""
    for i in range(indices.shape[0]):
        for k in range(indices.shape[1]):
            for column in range(combinations.shape[1]):
                combinations[i, column] += weights[i, k] * coordinates[indices[i, k], column]
