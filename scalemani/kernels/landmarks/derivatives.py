"""How a point moves in a map by landmarks when its coordinates change: the derivative of its weights, in closed form.

With D = (y - l_i) of the K nearest landmarks (K, D) and C = D D^T + eps tr(D D^T) / K, the weights are z = u / 1^T u,
C u = 1. A step v of the point changes C u by s D v + 1 (u^T D v) + 2 eps / K (1^T D v) u, s = 1^T u, so that

    d(Y^T z) = -(s Q^T D + Q^T 1 u^T D + 2 eps / K Q^T u 1^T D) v / s,   C Q = Y - 1 z^T Y.
"""

import numpy as np

from scalemani.kernels.landmarks.weights import default_regularization


def combination_derivatives(
    points: np.ndarray, landmarks: np.ndarray, coordinates: np.ndarray, regularization: float | None = None
) -> np.ndarray:
    """Return the derivatives (n, d, D) of combinations of landmarks' coordinates by `local_weights`.

    Parameters
    ----------
    points : (n, D) float64
    landmarks : (n, K, D) float64, those of each point
    coordinates : (n, K, d) float64, theirs in the map
    regularization : eps, as in `local_weights`; a row for which that raises it has the derivative of the lower one
    """
    n_near, n_columns = landmarks.shape[1:]
    eps = default_regularization(n_near, n_columns) if regularization is None else float(regularization)
    differences = points[:, np.newaxis] - landmarks
    products = differences @ differences.transpose(0, 2, 1)
    units = np.trace(products, axis1=1, axis2=2)[:, np.newaxis, np.newaxis]
    units = np.where(units > 0.0, units, 1.0)
    matrices = products / units + (eps / n_near) * np.eye(n_near)
    solved = np.linalg.solve(matrices, np.ones((len(points), n_near, 1)))
    weights = solved / solved.sum(axis=1, keepdims=True)
    means = weights.transpose(0, 2, 1) @ coordinates
    answers = (np.linalg.solve(matrices, coordinates - means) / units).transpose(0, 2, 1)
    sums = (2.0 * eps / n_near) * (answers @ weights) @ np.ones((1, n_near))
    totals = answers.sum(axis=2, keepdims=True) @ weights.transpose(0, 2, 1)
    return -(answers + totals + sums) @ differences
