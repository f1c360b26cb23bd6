"""What the features of a landmark add to those of the landmarks before, over a batch of points.

The feature of a landmark t is phi_i = exp(-|t - x_i|^2 / eta) over the points x_i. Its residual r is phi less its
projection on the features of the landmarks before, of which a batch keeps an orthonormal basis.
"""

import numpy as np

from scalemani.kernels.landmarks.gaussian.active import pivots
from scalemani.kernels.machine.compile import compiled, compiled_sums

EXHAUSTED = 1e-12  # of the squares of a feature, where its projection is all of it but for rounding


def objective(batch: np.ndarray, basis: np.ndarray, landmark: np.ndarray, eta: float) -> tuple[float, np.ndarray]:
    """Return the objective of a landmark over a batch, and its gradient.

    Parameters
    ----------
    batch : (B, D) real
    basis : (n, B) float64, orthonormal rows that span the features of the landmarks before; zeros where one adds none
    landmark : (D,) float64, t
    eta : bandwidth

    Returns
    -------
    value : r . r, where r is the feature of t less its projection on the basis
    gradient : (D,) float64, -(4 / eta) sum_i r_i phi_i (t - x_i)

    References
    ----------
    [GP] 4, equations 8 and 10.
    """
    phi, residual = np.empty(len(batch)), np.empty(len(batch))
    write_feature(batch, landmark, eta, phi)
    _project_off(basis, phi, residual)
    gradient = np.zeros(len(landmark))
    value = _pull(batch, landmark, phi, residual, gradient)
    return value, (-4.0 / eta) * gradient


def mean_objective(batches: np.ndarray, bases: np.ndarray, landmark: np.ndarray, eta: float) -> tuple[float, float]:
    """Return the objective over all batches and a point, and its share of the squares of the landmark's feature.

    Parameters
    ----------
    batches : (b, B, D) real
    bases : (b, n, B) float64, as of `objective` for each batch
    landmark, eta : as of `objective`
    """
    total, squares, phi = 0.0, 0.0, np.empty(batches.shape[1])
    for batch, basis in zip(batches, bases, strict=True):
        write_feature(batch, landmark, eta, phi)
        squares += float(phi @ phi)
        total += objective(batch, basis, landmark, eta)[0]
    return total / (batches.shape[0] * batches.shape[1]), total / squares if squares > 0 else 0.0


def grow(basis: np.ndarray, number: int, batch: np.ndarray, landmark: np.ndarray, eta: float) -> None:
    """Add the feature of a landmark to a basis; one that lies in its span up to rounding leaves a row of zeros.

    Parameters
    ----------
    basis : (L, B) float64, orthonormal rows; row `number` is filled
    number : of rows that are filled before
    batch : (B, D) real
    landmark : (D,) float64
    eta : bandwidth
    """
    phi, residual = np.empty(len(batch)), np.empty(len(batch))
    write_feature(batch, landmark, eta, phi)
    _project_off(basis[:number], phi, residual)
    square, whole = float(residual @ residual), float(phi @ phi)
    if square > EXHAUSTED * whole:
        _project_off(basis[:number], residual, basis[number])  # twice is enough
        basis[number] /= np.linalg.norm(basis[number])


def features_differ(points: np.ndarray, n_landmarks: int, eta: float) -> bool:
    """Return whether so many of points (n, D) have features that are no combinations of each other's."""
    rows = pivots(points, n_landmarks, eta)[0]
    if len(rows) < n_landmarks:
        return False
    features = np.empty((n_landmarks, len(points)))
    for landmark, feature in zip(points[rows], features, strict=True):
        write_feature(points, landmark.astype(np.float64), eta, feature)
    lengths = np.linalg.norm(features, axis=1)
    left = np.abs(np.diagonal(np.linalg.qr(features.T, mode="r")))
    return bool((left**2 > EXHAUSTED * lengths**2).all())


@compiled_sums
def write_feature(batch: np.ndarray, landmark: np.ndarray, eta: float, phi: np.ndarray) -> None:
    """Write the feature of a landmark over a batch.

    Parameters
    ----------
    batch : (B, D) real
    landmark : (D,) float64
    eta : bandwidth
    phi : (B,) float64, filled
    """
    for i in range(batch.shape[0]):
        point, square = batch[i], 0.0
        for j in range(landmark.shape[0]):
            difference = landmark[j] - np.float64(point[j])
            square += difference * difference
        phi[i] = np.exp(-square / eta)


@compiled
def _project_off(basis: np.ndarray, phi: np.ndarray, residual: np.ndarray) -> None:
    """Write phi less its projection on the rows of the basis, by modified Gram-Schmidt."""
    for i in range(phi.shape[0]):
        residual[i] = phi[i]
    for row in range(basis.shape[0]):
        _remove(basis[row], residual)


@compiled_sums
def _remove(direction: np.ndarray, residual: np.ndarray) -> None:
    share = 0.0
    for i in range(residual.shape[0]):
        share += direction[i] * residual[i]
    for i in range(residual.shape[0]):
        residual[i] -= share * direction[i]


@compiled_sums
def _pull(
    batch: np.ndarray, landmark: np.ndarray, phi: np.ndarray, residual: np.ndarray, gradient: np.ndarray
) -> float:
    """Add r_i phi_i (t - x_i) of all points; return r . r."""
    value = 0.0
    for i in range(batch.shape[0]):
        share, point = residual[i] * phi[i], batch[i]
        value += residual[i] * residual[i]
        for j in range(landmark.shape[0]):
            gradient[j] += share * (landmark[j] - np.float64(point[j]))
    return value
