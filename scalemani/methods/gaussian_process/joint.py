"""Landmarks of Gaussian processes that are improved jointly: each anew, with all others fixed.

One after the other, landmarks have the largest part that those before leave unexplained, and later ones do not move
them. Jointly, the criterion is the determinant of the kernel matrix of all landmarks. Its logarithm is a sum over the
landmarks of the logarithm of what the others before leave of each, so that of one landmark it is, but for a constant,
the logarithm of what all others leave of it: the same quantity as in the selection. A sweep takes each landmark out and
puts the best place, given all others, in its stead; none lowers the criterion.

Source: [GP] 6, "modify a previously learned landmark given the subsequent ones", their future work.
"""

import numpy as np
import scipy.linalg

from scalemani.kernels.arrays.columns import total_variance
from scalemani.kernels.machine.compile import compiled
from scalemani.methods.gaussian_process.kernels import (
    LEAST_OBJECTIVE,
    Batches,
    GaussianProcessChoice,
    bandwidth_of,
    climbed,
    feature,
    grow,
    landmark_features,
    objective,
)

EXCHANGED_FOR = 1e-6  # relative gain of a variance: a smaller one may be rounding, and an exchange come back


def exchanged_landmarks(
    points: np.ndarray, chosen: np.ndarray, sweeps: int, bandwidth: float | None = None
) -> tuple[np.ndarray, float]:
    """Return landmarks after exchanges, each for the point of largest conditional variance given all others.

    Sweeps end where no exchange raises the determinant, or after `sweeps` of them. The shares of all landmarks in all
    points take L times S numbers.

    Parameters
    ----------
    points : (S, D) real, finite
    chosen : (L,) int, rows of distinct points
    bandwidth : eta, in squared units of the points; None: the sum of the variances of the columns

    Returns
    -------
    rows : (L,) int64
    gain : by how much the logarithm of the determinant rose, a landmark
    """
    eta = total_variance(points) if bandwidth is None else bandwidth
    best, start = np.array(chosen, dtype=np.int64), log_determinant(points, chosen, eta)
    reached = start
    for _ in range(sweeps):
        rows, n_exchanged = swept_rows(points, best, eta)
        value = log_determinant(points, rows, eta) if n_exchanged else reached
        if value <= reached:  # rounding of a matrix that is nearly singular
            break
        best, reached = rows, value
    return best, (reached - start) / len(chosen)


def log_determinant(points: np.ndarray, rows: np.ndarray, eta: float) -> float:
    """Return the logarithm of the determinant of the kernel matrix of rows."""
    factor = scipy.linalg.cholesky(landmark_features(points[rows], points[rows], eta), lower=True)
    return 2.0 * float(np.log(np.diag(factor)).sum())


def swept_rows(points: np.ndarray, chosen: np.ndarray, eta: float) -> tuple[np.ndarray, int]:
    """Return rows after one sweep of exchanges, and how many there were."""
    rows, n_exchanged = chosen.copy(), 0
    inverse = np.linalg.inv(landmark_features(points[rows], points[rows], eta))
    kernel = landmark_features(points, points[rows], eta)
    shares = kernel @ inverse  # of landmarks in the predictions of points: the columns of K^-1 k(T, x)
    variances = np.maximum(1.0 - np.einsum("st,st->s", kernel, shares), 0.0)
    del kernel
    for number in range(len(rows)):
        own, precision = shares[:, number].copy(), inverse[number, number]
        without = variances + own * own / precision  # conditional variances given all others
        best = int(without.argmax())
        if without[best] * precision <= 1.0 + EXCHANGED_FOR:
            continue
        direction = -inverse[:, number] / precision  # the shares of all others in this landmark
        direction[number] = 0.0
        inverse -= np.outer(inverse[:, number], inverse[number]) / precision
        add_outer(shares, own, direction)
        shares[:, number] = 0.0
        known = landmark_features(points[rows], points[[best]], eta)[:, 0]
        known[number] = 0.0
        column = (landmark_features(points, points[[best]], eta)[:, 0] - shares @ known) / without[best]
        others = shares[best].copy()
        add_outer(shares, column, -others)
        shares[:, number] = column
        others[number] = -1.0
        inverse += np.outer(others, others) / without[best]
        variances = np.maximum(without - column * column * without[best], 0.0)
        rows[number] = best
        n_exchanged += 1
    return rows, n_exchanged


@compiled
def add_outer(table: np.ndarray, column: np.ndarray, direction: np.ndarray) -> None:
    """Add the outer product of a column (S,) and a direction (L,) to a table (S, L)."""
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            table[i, j] += column[i] * direction[j]


def swept_landmarks(batches: Batches, learned: np.ndarray, choice: GaussianProcessChoice) -> tuple[np.ndarray, float]:
    """Return landmarks that climbed anew, each with all others fixed, for `choice.sweeps` sweeps or until none moves.

    A landmark starts from its place, with steps that go on getting smaller where those of the sweep before ended. It
    stays where its end is no better than its start, in the mean over the batches of the logarithm of the objective.

    Parameters
    ----------
    batches : as of `learned_landmarks`
    learned : (L, D) float64, its landmarks

    Returns
    -------
    landmarks : (L, D) float64, in their order
    gain : by how much the logarithm of the determinant of the features' products rose, the mean over the batches, a
        landmark
    """
    eta, landmarks = bandwidth_of(batches, choice), learned.copy()
    n_landmarks, (n_batches, size, _) = len(learned), batches.points.shape
    bases = np.zeros((n_batches, n_landmarks, size))
    triangles = np.zeros((n_batches, n_landmarks, n_landmarks))
    for number in range(n_landmarks):
        append(batches, bases, triangles, number, landmarks[number], eta)
    total = 0.0
    for sweep in range(choice.sweeps):
        before = total
        for number in range(n_landmarks):
            for basis, triangle in zip(bases, triangles, strict=True):
                drop_first(basis, triangle)
            others, start = bases[:, :-1], landmarks[number]
            end = climbed(batches.points, others, start, eta, choice, (sweep + 1) * choice.steps)
            gain = float(np.mean(logarithms(batches, others, end, eta) - logarithms(batches, others, start, eta)))
            if gain > 0.0:
                landmarks[number] = end
                total += gain
            append(batches, bases, triangles, n_landmarks - 1, landmarks[number], eta)
        if total == before:
            break
    return landmarks, total / n_landmarks


def logarithms(batches: Batches, bases: np.ndarray, landmark: np.ndarray, eta: float) -> np.ndarray:
    """Return the logarithms of the objective of a landmark over each batch."""
    pairs = zip(batches.points, bases, strict=True)
    values = [objective(batch, basis, landmark, eta)[0] for batch, basis in pairs]
    return np.asarray(np.log(np.maximum(values, LEAST_OBJECTIVE)))


def append(
    batches: Batches, bases: np.ndarray, triangles: np.ndarray, number: int, landmark: np.ndarray, eta: float
) -> None:
    """Add a landmark as row `number` of all bases (b, L, B), and as a column of their triangles (b, L, L)."""
    for batch, basis, triangle in zip(batches.points, bases, triangles, strict=True):
        basis[number] = 0.0
        grow(basis, number, batch, landmark, eta)
        triangle[number] = 0.0
        triangle[: number + 1, number] = basis[: number + 1] @ feature(batch, landmark, eta)


@compiled
def drop_first(basis: np.ndarray, triangle: np.ndarray) -> None:
    """Take the first feature out of a basis: its rows but the last then span all others.

    Features are the products of the basis, transposed, and the columns of the triangle. Without its first column the
    triangle has a diagonal too many below, which rotations of neighbouring rows remove.

    Parameters
    ----------
    basis : (L, B) float64, orthonormal rows, or zeros
    triangle : (L, L) float64, upper triangular; rows of zeros where the basis has them
    """
    n_landmarks, size = basis.shape
    for row in range(n_landmarks - 1):
        length = np.hypot(triangle[row, row + 1], triangle[row + 1, row + 1])
        if length == 0.0:
            continue
        cosine, sine = triangle[row, row + 1] / length, triangle[row + 1, row + 1] / length
        for column in range(row + 1, n_landmarks):
            upper, lower = triangle[row, column], triangle[row + 1, column]
            triangle[row, column] = cosine * upper + sine * lower
            triangle[row + 1, column] = cosine * lower - sine * upper
        for i in range(size):
            upper, lower = basis[row, i], basis[row + 1, i]
            basis[row, i] = cosine * upper + sine * lower
            basis[row + 1, i] = cosine * lower - sine * upper
    for row in range(n_landmarks):
        for column in range(n_landmarks - 1):
            triangle[row, column] = triangle[row, column + 1]
