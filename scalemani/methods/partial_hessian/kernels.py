"""Eigenvalues of B^-1 H at both ends by power iteration in the metric of B, without motions that leave E as it is."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.coordinates import dot

Operator = Callable[[np.ndarray], np.ndarray]
SETTLED = 1e-6  # of the eigenvalue: its residual at the end of an iteration, of which it errs by the square over a gap
MOST_PRODUCTS = 1000  # eigenvalues near the end lie close together: the value found is below it by what is left


class Extreme(NamedTuple):
    """An eigenvalue of B^-1 H - c I that is largest in magnitude, and the residual in the metric of B.

    Some eigenvalue lies within the residual of it.
    """

    value: float
    residual: float


class Metric(NamedTuple):
    """B by its product, its solution, and a basis (m, N, d) of motions that do not count, orthonormal in B."""

    product: Operator
    solve: Operator
    still: np.ndarray

    def without_still(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors (N, d) less their parts along the motions that do not count."""
        image, left = self.product(vectors), vectors.copy()
        for motion in self.still:
            left -= dot(motion, image) * motion
        return left


def metric_of(product: Operator, solve: Operator, motions: np.ndarray) -> Metric:
    """Return the metric of B beside motions (m, N, d), which are made orthonormal; those that vanish are left out."""
    still: list[np.ndarray] = []
    for motion in motions:
        left = motion.copy()
        for _ in range(2):
            image = product(left)
            for one in still:
                left = left - dot(one, image) * one
        square, before = dot(left, product(left)), dot(motion, product(motion))
        if square > 1e-12 * before > 0:
            still.append(left / np.sqrt(square))
    return Metric(product, solve, np.array(still).reshape(-1, *motions.shape[1:]))


def rigid_motions(positions: np.ndarray, turns: bool = True) -> np.ndarray:
    """Return the motions (m, N, d) of a map (N, d) as a whole: along each axis, and turns about its mean."""
    n_points, n_dims = positions.shape
    motions = [np.tile(np.eye(n_dims)[axis], (n_points, 1)) for axis in range(n_dims)]
    centred = positions - positions.mean(axis=0)
    for one in range(n_dims if turns else 0):
        for other in range(one):
            turn = np.zeros_like(centred)
            turn[:, one], turn[:, other] = -centred[:, other], centred[:, one]
            motions.append(turn)
    return np.array(motions)


def extreme(hessian: Operator, metric: Metric, shift: float, start: np.ndarray) -> Extreme:
    """Return the eigenvalue of B^-1 H - shift I that is largest in magnitude, by power iteration."""
    vectors = metric.without_still(start)
    value, residual = 0.0, np.inf
    for _ in range(MOST_PRODUCTS):
        of_metric = metric.product(vectors)
        length = np.sqrt(dot(vectors, of_metric))
        vectors, of_metric = vectors / length, of_metric / length
        # Rounding has parts along motions, whose eigenvalue -shift may be the largest: they are taken off each time.
        image = metric.without_still(metric.solve(hessian(vectors)) - shift * vectors)
        value = dot(image, of_metric)
        rest = image - value * vectors
        residual = float(np.sqrt(max(0.0, dot(rest, metric.product(rest)))))
        if residual <= SETTLED * max(abs(value), SETTLED):
            break
        vectors = image
    return Extreme(value, residual)
