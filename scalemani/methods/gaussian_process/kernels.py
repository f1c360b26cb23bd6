"""Landmarks of Gaussian processes: chosen among the points by active learning, or anywhere by stochastic gradients.

Active learning takes the point of which a process knows least from the landmarks before. What it does not know is the
conditional variance k(x, x) - k(x, T) K^-1 k(T, x). The Cholesky factor of the kernel matrix, pivoted by this variance,
gives it for all points with one more column a landmark.

By stochastic gradients, landmarks lie anywhere in the space of the points, one after the other. The feature of a
landmark t is phi(t)_i = exp(-|t - x_i|^2 / eta) over the points. A new landmark climbs towards the largest |phi(t) -
its projection on the features of the landmarks before|^2: close to many points, and not where others are. Every batch
of points keeps an orthonormal basis of these features, which grows by a column a landmark.

Source: [GP] 3 and 4, algorithm 1.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.errors import ConfigError, DataError
from scalemani.kernels.arrays.columns import moments, total_variance
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.landmarks.nearest import squares_to
from scalemani.kernels.landmarks.selection import Choice, draw_rows, too_few_rows
from scalemani.kernels.machine.compile import compiled, compiled_sums, inlined_sums
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.distances import comparable, squared_row_distance
from scalemani.kernels.rows.equal_rows import first_of_equal_rows

# Variances below are those of points that landmarks determine: the factor is off by some 1e-16 a landmark.
DETERMINED = 1e-10
LEAST_EXPLAINED = 1e-6  # of the variance of points beside the landmarks; below, the kernel matrix is the identity


@dataclass(frozen=True)
class GaussianProcessChoice(Choice):
    """How landmarks of a Gaussian process are chosen.

    Parameters
    ----------
    eta : bandwidth of the process, in squared units of the points; None: the sum of the variances of columns
    projection : "none", "orthant" or "sphere", the set S that landmarks of "gp" stay in
    batch_points : B, points of a batch of "gp"; None: 1,000, or twice the landmarks if more
    steps : by which "gp" finds each landmark
    sweeps : over all landmarks, each improved with all others fixed; 0: they stay as they were selected
    """

    eta: float | None = None
    projection: str = "none"
    batch_points: int | None = None
    steps: int = 1000
    sweeps: int = 0


def active_landmarks(
    points: np.ndarray, n_landmarks: int, bandwidth: float | None = None, first: int = 0
) -> np.ndarray:
    """Return the rows of greatest conditional variance, one after the other, ties by row.

    The kernel is exp(-|x - x'|^2 / bandwidth): before there is a landmark, all variances are one, and any row may be
    the first. The factor takes `n_landmarks` times S numbers.

    Parameters
    ----------
    points : (S, D) real, finite
    n_landmarks : L, at most S
    bandwidth : eta, in squared units of the points; None: the sum of the variances of the columns

    Returns
    -------
    (n_landmarks,) int64, in the order chosen

    Raises
    ------
    DataError
        When `points` has fewer than `n_landmarks` distinct rows; when the landmarks determine all other points before
        there are so many; when they say nothing of any other.

    References
    ----------
    [GP] 2, equation 3.
    """
    rows = np.ascontiguousarray(points)
    eta = total_variance(rows) if bandwidth is None else bandwidth
    chosen, variances = pivots(rows, n_landmarks, eta, first)
    if len(chosen) < n_landmarks:
        raise exhausted(rows, n_landmarks, len(chosen), eta)
    others = np.delete(variances, chosen)
    if len(others) and 1.0 - others.mean() < LEAST_EXPLAINED:
        raise DataError(
            f"landmarks.eta={eta:.4g} is far too small for these points: no landmark says anything of any other point; "
            f"the sum of the variances of the columns would do, {total_variance(rows):.4g}"
        )
    return chosen


def exhausted(points: np.ndarray, n_landmarks: int, n_active: int, bandwidth: float) -> DataError:
    """Return the error of landmarks that determine all points before there are as many as requested.

    Parameters
    ----------
    points : (S, D) real
    bandwidth : eta, in squared units of the points
    """
    n_distinct = len(first_of_equal_rows(points))
    if n_distinct < n_landmarks:
        return too_few_rows(n_landmarks, len(points), n_distinct)
    return DataError(
        f"{n_landmarks} landmarks were requested, but at landmarks.eta={bandwidth:.4g} {n_active} of them determine "
        f"all points; ask for at most {n_active} landmarks, or give a smaller landmarks.eta"
    )


@compiled
def pivots(rows: np.ndarray, n_landmarks: int, bandwidth: float, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows chosen, fewer where variances are exhausted, and the variances (S,) that are left.

    Parameters
    ----------
    rows : (S, D) real
    n_landmarks : at most so many rows
    bandwidth : eta, in squared units of the points
    """
    factor, variances = np.empty((n_landmarks, len(rows))), np.ones(len(rows))
    chosen = np.empty(n_landmarks, dtype=np.int64)
    for step in range(n_landmarks):
        pivot = first if step == 0 else np.argmax(variances)
        if variances[pivot] <= DETERMINED:
            return chosen[:step], variances
        chosen[step] = pivot
        column, root = factor[step], np.sqrt(variances[pivot])
        for i in range(rows.shape[0]):
            column[i] = np.exp(-squared_row_distance(rows, i, rows, pivot, np.inf) / bandwidth)
        for earlier in range(step):
            _subtract(factor[earlier], factor[earlier, pivot], column)
        for i in range(rows.shape[0]):
            column[i] /= root
            variances[i] -= column[i] * column[i]
        variances[pivot] = 0.0
    return chosen, variances


@inlined_sums
def _subtract(earlier: np.ndarray, share: float, column: np.ndarray) -> None:
    for i in range(column.shape[0]):
        column[i] -= share * earlier[i]


BATCH_POINTS = 1000  # [GP] 5, and at least as many again as landmarks: no more features than that fit a batch
BATCH_PER_LANDMARK = 2
SPHERE_TOLERANCE = 1e-3  # of squared lengths: points are stored in float32 at times


class Batches(NamedTuple):
    """A sample of the points in batches (b, B, D), its row numbers (b, B) int64, its mean and deviation (D,)."""

    points: np.ndarray
    rows: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray


def drawn_batches(points: PointsByRow, choice: GaussianProcessChoice) -> Batches:
    """Return batches of N points, whose row numbers are a function of the seed and the step that takes them.

    Raises
    ------
    ConfigError
        Where a batch has no more points than there are landmarks: their features would span it.
    """
    size = batch_size(len(points), choice.n_landmarks, choice.batch_points)
    n_batches = max(1, min(choice.sample_points, len(points)) // size)
    drawn = draw_rows(len(points), n_batches * size, choice.seed, "landmarks/gp/batches")
    order = np.argsort(drawn)
    sample = np.ascontiguousarray(points[drawn[order]][np.argsort(order)])
    mean, variances = moments(sample)
    return Batches(sample.reshape(n_batches, size, -1), drawn.reshape(n_batches, size), mean, np.sqrt(variances))


def batch_size(n_points: int, n_landmarks: int, batch_points: int | None) -> int:
    """Return the points of a batch: 1,000, or twice the landmarks if more, where `batch_points` is None; N at most.

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


EXHAUSTED = 1e-12  # of the squares of a feature, where its projection is all of it but for rounding


def objective(batch: np.ndarray, basis: np.ndarray, landmark: np.ndarray, eta: float) -> tuple[float, np.ndarray]:
    """Return the objective of a landmark over a batch, and its gradient.

    Parameters
    ----------
    batch : (B, D) real
    basis : (n, B) float64, orthonormal rows that span the features of the landmarks before; zeros where one adds none
    landmark : (D,) float64, t

    Returns
    -------
    value : r . r, where r is the feature of t less its projection on the basis
    gradient : (D,) float64, -(4 / eta) sum_i r_i phi_i (t - x_i)

    References
    ----------
    [GP] 4, equations 8 and 10.
    """
    phi = feature(batch, landmark, eta)
    value, pull = _pull(batch, landmark, phi, _residual(basis, phi))
    return value, (-4.0 / eta) * pull


def mean_objective(batches: np.ndarray, bases: np.ndarray, landmark: np.ndarray, eta: float) -> tuple[float, float]:
    """Return the objective over all batches and a point, and its share of the squares of the landmark's feature.

    Parameters
    ----------
    batches : (b, B, D) real
    bases : (b, n, B) float64, as of `objective` for each batch
    landmark, eta : as of `objective`
    """
    total = sum(objective(batch, basis, landmark, eta)[0] for batch, basis in zip(batches, bases, strict=True))
    squares = sum(float(phi @ phi) for phi in (feature(batch, landmark, eta) for batch in batches))
    return total / (batches.shape[0] * batches.shape[1]), total / squares if squares > 0 else 0.0


def grow(basis: np.ndarray, number: int, batch: np.ndarray, landmark: np.ndarray, eta: float) -> None:
    """Add the feature of a landmark to a basis; one that lies in its span up to rounding leaves a row of zeros.

    Parameters
    ----------
    basis : (L, B) float64, orthonormal rows; row `number` is filled
    batch : (B, D) real
    landmark : (D,) float64
    """
    phi = feature(batch, landmark, eta)
    residual = _residual(basis[:number], phi)
    if float(residual @ residual) > EXHAUSTED * float(phi @ phi):
        residual = _residual(basis[:number], residual)  # twice is enough
        basis[number] = residual / np.linalg.norm(residual)


@compiled_sums
def feature(batch: np.ndarray, landmark: np.ndarray, eta: float) -> np.ndarray:
    """Return the feature (B,) float64 of a landmark (D,) float64 over a batch (B, D) real."""
    phi = np.empty(batch.shape[0])
    for i in range(batch.shape[0]):
        point, square = batch[i], 0.0
        for j in range(landmark.shape[0]):
            difference = landmark[j] - np.float64(point[j])
            square += difference * difference
        phi[i] = np.exp(-square / eta)
    return phi


@compiled
def _residual(basis: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Return phi less its projection on the rows of the basis, by modified Gram-Schmidt."""
    residual = phi.copy()
    for row in range(basis.shape[0]):
        _remove(basis[row], residual)
    return residual


@inlined_sums
def _remove(direction: np.ndarray, residual: np.ndarray) -> None:
    share = 0.0
    for i in range(residual.shape[0]):
        share += direction[i] * residual[i]
    for i in range(residual.shape[0]):
        residual[i] -= share * direction[i]


@compiled_sums
def _pull(batch: np.ndarray, landmark: np.ndarray, phi: np.ndarray, residual: np.ndarray) -> tuple[float, np.ndarray]:
    """Return r . r, and the sum of r_i phi_i (t - x_i) over all points, (D,) float64."""
    value, pull = 0.0, np.zeros(landmark.shape[0])
    for i in range(batch.shape[0]):
        share, point = residual[i] * phi[i], batch[i]
        value += residual[i] * residual[i]
        for j in range(landmark.shape[0]):
            pull[j] += share * (landmark[j] - np.float64(point[j]))
    return value, pull


STEP_OFFSET, STEP_POWER = 10.0, -0.51  # [GP] 5: rho_s = (10 + s)^-0.51
LEAST_OBJECTIVE = 1e-200  # of a batch that is too far away for a direction
LEAST_MET = 1.5  # sum of squares of the first landmark's feature: that of a single point is one


class Learned(NamedTuple):
    """Landmarks (L, D) float64 in the order in which they were computed.

    `objectives` (L,) are those at the end, over all batches and a point; `starts` (L,) those of where a landmark
    started.
    """

    landmarks: np.ndarray
    objectives: np.ndarray
    starts: np.ndarray


def learned_landmarks(batches: Batches, choice: GaussianProcessChoice) -> Learned:
    """Return landmarks, each after `choice.steps` steps of size (10 + s)^-0.51 from a draw of N(mean, deviation^2).

    A step goes along the gradient of the objective's logarithm, in units of eta / 4: it moves the landmark by the share
    (10 + s)^-0.51 towards the mean of the points of the batch, weighed by r_i phi_i, where r is the feature less its
    projection. That of the paper goes along the gradient of the objective itself, so that its way depends on the unit
    of the points and on the size of a batch.

    Raises
    ------
    DataError
        For points outside the set S; for an eta far too small or so large that the features of fewer landmarks span
        all; for fewer distinct points than landmarks.
    """
    n_landmarks, (n_batches, size, n_features) = choice.n_landmarks, batches.points.shape
    check_in_set(batches, choice.projection)
    eta = bandwidth_of(batches, choice)
    bases = np.zeros((n_batches, n_landmarks, size))
    landmarks = np.empty((n_landmarks, n_features))
    objectives, starts = np.empty(n_landmarks), np.empty(n_landmarks)
    for number in range(n_landmarks):
        draw = generator(choice.seed, "landmarks/gp/start", number).standard_normal(n_features)
        start = projected(batches.mean + batches.deviation * draw, choice.projection)
        landmark = climbed(batches.points, bases[:, :number], start, eta, choice)
        starts[number], _ = mean_objective(batches.points, bases[:, :number], start, eta)
        objectives[number], share = mean_objective(batches.points, bases[:, :number], landmark, eta)
        if number == 0:
            check_met(batches.points.reshape(-1, n_features), landmark, eta)
        if not share > EXHAUSTED:
            raise exhausted(batches.points.reshape(-1, n_features), n_landmarks, number, eta)
        for batch, basis in zip(batches.points, bases, strict=True):
            grow(basis, number, batch, landmark, eta)
        landmarks[number] = landmark
        if choice.advance is not None:
            choice.advance()
    return Learned(landmarks, objectives, starts)


def bandwidth_of(batches: Batches, choice: GaussianProcessChoice) -> float:
    """Return eta, in squared units of the points: by default the sum of the variances of the columns."""
    return total_variance(batches.points.reshape(-1, batches.points.shape[2])) if choice.eta is None else choice.eta


def climbed(
    batches: np.ndarray,
    bases: np.ndarray,
    start: np.ndarray,
    eta: float,
    choice: GaussianProcessChoice,
    n_before: int = 0,
) -> np.ndarray:
    """Return where the steps lead from a start: (D,) float64.

    Parameters
    ----------
    batches : (b, B, D) real; step s takes batch s modulo b
    bases : (b, n, B) float64, as of `objective` for each batch
    start : (D,) float64, in the set S
    eta : bandwidth, in squared units of the points
    n_before : steps that were taken before: the more, the smaller are those that follow
    """
    landmark = start
    for step in range(n_before, n_before + choice.steps):
        batch = step % len(batches)
        value, gradient = objective(batches[batch], bases[batch], landmark, eta)
        if value > LEAST_OBJECTIVE:
            rate = (STEP_OFFSET + step) ** STEP_POWER * eta / (4.0 * value)
            landmark = projected(landmark + rate * gradient, choice.projection)
    return landmark


def check_met(sample: np.ndarray, landmark: np.ndarray, eta: float) -> None:
    """Refuse an eta so small that the first landmark meets a single point of the sample (S, D), or none."""
    phi = feature(sample, landmark, eta)
    if phi @ phi < min(LEAST_MET, len(sample)):
        raise DataError(
            f"landmarks.eta={eta:.4g} is far too small for these points: the first landmark is near to no more than "
            f"one of {len(sample)}; the sum of the variances of the columns would do, {total_variance(sample):.4g}"
        )


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
