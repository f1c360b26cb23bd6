"""Landmarks by active learning: each the point of which a Gaussian process knows least from those before.

What it does not know is the conditional variance k(x, x) - k(x, T) K^-1 k(T, x). The Cholesky factor of the kernel
matrix, pivoted by this variance, gives it for all points with one more column a landmark.
"""

from collections.abc import Callable

import numpy as np

from scalemani.errors import DataError
from scalemani.kernels.landmarks.features import total_variance
from scalemani.kernels.machine.compile import compiled, inlined_sums
from scalemani.kernels.rows.distances import squared_distance
from scalemani.kernels.rows.equal_rows import first_of_equal_rows

# Variances below are those of points that landmarks determine: the factor is off by some 1e-16 a landmark.
EXHAUSTED = 1e-10
LEAST_EXPLAINED = 1e-6  # of the variance of points beside the landmarks; below, the kernel matrix is the identity
SHRINKING, MOST_SHRINKING = 4.0, 40  # of the bandwidth, until there are as many landmarks as were asked for
TRIED_POINTS = 2000
Does = Callable[[np.ndarray, int, float], bool]


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
        there are so many, with a bandwidth that would do; when they say nothing of any other.

    References
    ----------
    [GP] 2, equation 3.
    """
    rows = np.ascontiguousarray(points)
    eta = total_variance(rows) if bandwidth is None else bandwidth
    chosen, variances = pivots(rows, n_landmarks, eta, first)
    if len(chosen) < n_landmarks:
        raise exhausted(rows, n_landmarks, len(chosen), eta, variances_last)
    others = np.delete(variances, chosen)
    if len(others) and 1.0 - others.mean() < LEAST_EXPLAINED:
        raise DataError(
            f"landmarks.eta={eta:.4g} is far too small for these points: no landmark says anything of any other point; "
            f"the sum of the variances of the columns would do, {total_variance(rows):.4g}"
        )
    return chosen


def exhausted(points: np.ndarray, n_landmarks: int, n_found: int, bandwidth: float, does: Does) -> DataError:
    """Return the error of landmarks that determine all points before there are as many as were asked for.

    Parameters
    ----------
    points : (S, D) real
    bandwidth : eta, in squared units of the points
    does : tells of points, a number of landmarks and a bandwidth whether there are so many
    """
    n_distinct = len(first_of_equal_rows(points))
    if n_distinct < n_landmarks:
        return DataError(
            f"{n_landmarks} landmarks were asked for, but these {len(points)} points have only {n_distinct} distinct "
            f"rows; ask for at most {n_distinct} landmarks"
        )
    return DataError(
        f"{n_landmarks} landmarks were asked for, but at landmarks.eta={bandwidth:.4g} {n_found} of them determine all "
        f"points; ask for at most {n_found} landmarks, or for landmarks.eta="
        f"{bandwidth_that_does(points, n_landmarks, bandwidth, does):.4g}"
    )


def bandwidth_that_does(points: np.ndarray, n_landmarks: int, bandwidth: float, does: Does) -> float:
    """Return the largest of bandwidths, each a quarter of the one before, at which landmarks do not run out.

    Parameters
    ----------
    points : (S, D) real; of many, rows at equal steps are tried
    bandwidth : at which there are fewer, in squared units of the points
    does : as of `exhausted`
    """
    n_tried = min(len(points), max(TRIED_POINTS, 2 * n_landmarks))
    tried = np.ascontiguousarray(points[np.linspace(0, len(points) - 1, n_tried).astype(np.int64)])
    tried = tried[first_of_equal_rows(tried)]
    for _ in range(MOST_SHRINKING):
        bandwidth /= SHRINKING
        if does(tried, min(n_landmarks, len(tried)), bandwidth):
            break
    return bandwidth


def variances_last(points: np.ndarray, n_landmarks: int, bandwidth: float) -> bool:
    """Return whether points (n, D) have variance left for so many landmarks."""
    return len(pivots(points, n_landmarks, bandwidth)[0]) == n_landmarks


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
    n_chosen = _factorise(rows, bandwidth, first, factor, variances, chosen)
    return chosen[:n_chosen], variances


@compiled
def _factorise(
    rows: np.ndarray, bandwidth: float, first: int, factor: np.ndarray, variances: np.ndarray, chosen: np.ndarray
) -> int:
    for step in range(chosen.shape[0]):
        pivot = first if step == 0 else np.argmax(variances)
        if variances[pivot] <= EXHAUSTED:
            return step
        chosen[step] = pivot
        column, root = factor[step], np.sqrt(variances[pivot])
        for i in range(rows.shape[0]):
            column[i] = np.exp(-squared_distance(rows[i], rows[pivot], np.inf) / bandwidth)
        for earlier in range(step):
            _subtract(factor[earlier], factor[earlier, pivot], column)
        for i in range(rows.shape[0]):
            column[i] /= root
            variances[i] -= column[i] * column[i]
        variances[pivot] = 0.0
    return chosen.shape[0]


@inlined_sums
def _subtract(earlier: np.ndarray, share: float, column: np.ndarray) -> None:
    for i in range(column.shape[0]):
        column[i] -= share * earlier[i]
