"""Z: each point as a combination of its nearest landmarks, with weights that sum to one, or those of a kernel.

The weights solve the local problem of locally linear embedding with landmarks as neighbours: minimise
|y - sum_i z_i l_i|^2 subject to sum_i z_i = 1. A landmark off the data is in the same way a combination of the points
nearest to it, its anchors: that of the anchors' coordinates places it in an embedding.

Source: Roweis and Saul, Nonlinear dimensionality reduction by locally linear embedding, 2000; [LLL] 4.3.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.landmarks.nearest import (
    PreparedLandmarks,
    basis_of_landmarks,
    nearest_rows,
)
from scalemani.kernels.machine.compile import compiled, compiled_sums, inlined_sums
from scalemani.kernels.rows.compressed import PointsByRow
from scalemani.kernels.rows.distances import comparable

# More landmarks than columns leave the weights undetermined: the value of locally linear embedding spreads them evenly.
SINGULAR_REGULARIZATION = 1e-3
# Far above the rounding of the Gram matrix, and still moves a point in the span of its landmarks by under 1e-8.
REGULARIZATION = 1e-10
STRONGER = 1e3  # factor on the regularization when a Cholesky factorisation meets a pivot that is not positive
SAFE_TRACE = (1e-200, 1e200)  # outside, differences are rescaled before their products are formed

SHARES_AT_ONCE = 2**14  # of the kernel: what is worked in stays in the second-level cache
ANCHORS = 8  # points a landmark: more than the dimensions of most surfaces
LANDMARKS_AT_ONCE = 256  # whose anchors are in memory


def default_regularization(n_neighbors: int, n_columns: int) -> float:
    """Return the share of the mean diagonal that is added to it: 1e-3 when K_Z > D, else 1e-10."""
    return SINGULAR_REGULARIZATION if n_neighbors > n_columns else REGULARIZATION


def local_weights(
    points: np.ndarray,
    landmarks: np.ndarray,
    indices: np.ndarray,
    regularization: float | None = None,
    unit_rows: bool = True,
) -> np.ndarray:
    """Return the weights (n, K_Z) float64 of each point's landmarks: rows sum to one, some may be negative.

    Solves (G + eps tr(G)/K_Z I) z = 1, G_ij = (y - l_i).(y - l_j) in float64 (for uint8 in exact integers), and divides
    z by its sum. Invariant to rotation, translation and scale; each row depends on its point and landmarks only.

    Parameters
    ----------
    points, landmarks : (n, D) and (L, D) real, finite
    indices : (n, K_Z) int, distinct landmarks of each point, as from `nearest_landmarks`
    regularization : eps; by default 1e-3 when K_Z > D and 1e-10 otherwise. Raised a thousandfold, repeatedly, for a row
        whose matrix is still not positive definite to rounding
    unit_rows : whether a point that coincides with one of its landmarks gets exactly its unit vector; otherwise it is a
        point like any other, and one that coincides with all of them weighs all the same
    """
    rows, columns = comparable(points, landmarks)
    eps = default_regularization(indices.shape[1], rows.shape[1]) if regularization is None else float(regularization)
    values = np.empty(indices.shape, dtype=np.float64)
    # Differences of bytes fit 16 bits and their products 32: exact, and many at a time.
    exact = rows.dtype == np.uint8 and rows.shape[1] <= np.iinfo(np.int32).max // 255**2
    if exact:
        _solve_bytes(rows, columns, indices, (eps, unit_rows), values)
    else:
        _solve_floats(rows, columns, indices, (eps, unit_rows), values)
    return values


class Limits(NamedTuple):
    """How few of its nearest landmarks a point is made of, both None: of all that are listed.

    `tolerance`: of the least number whose `reconstruction_errors` are at most that, above 0. `radius`: of those within
    a ball around the point, and the nearest, in the unit of the points.
    """

    tolerance: float | None = None
    radius: float | None = None


def limited_weights(
    points: np.ndarray,
    landmarks: np.ndarray,
    indices: np.ndarray,
    regularization: float | None = None,
    limits: Limits = Limits(),  # noqa: B008 - it is frozen
    squares: np.ndarray | None = None,
) -> np.ndarray:
    """Return `local_weights` (n, K_Z) over as many of each point's landmarks as limits allow, zeros for the others.

    Parameters
    ----------
    points, landmarks, indices, regularization : as in `local_weights`; indices by ascending distance
    squares : (n, K_Z), the squared distances of these landmarks, with a radius
    """
    n_points, width = indices.shape
    most = np.full(n_points, width)
    if limits.radius is not None and squares is not None:
        most = np.maximum(1, (np.sqrt(squares) <= limits.radius).sum(axis=1))
    if limits == Limits():
        return local_weights(points, landmarks, indices, regularization)
    values, left = np.zeros(indices.shape), np.arange(n_points)
    for count in range(1, width + 1):
        done = most[left] == count
        rows = left if limits.tolerance is not None else left[done]
        near = np.ascontiguousarray(indices[rows, :count])
        weights = local_weights(points[rows], landmarks, near, regularization)
        if limits.tolerance is not None:
            done |= reconstruction_errors(points[rows], landmarks, near, weights) <= limits.tolerance
            weights = weights[done]
        values[left[done], :count] = weights
        left = left[~done]
    return values


def reconstruction_errors(
    points: np.ndarray, landmarks: np.ndarray, indices: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return how well each point is reconstructed by its weights: |y - sum_i z_i l_i| / min_i |y - l_i|, (n,) float64.

    0: the point lies in the span of its landmarks (or is one). 1: the weights are no better than the nearest landmark
    alone. The optimum never exceeds 1; regularization can, slightly. Arguments are those of `local_weights`, and its
    result.
    """
    rows, columns = comparable(points, landmarks)
    errors = np.empty(len(rows), dtype=np.float64)
    _relative_residuals(rows, columns, indices, values, errors)
    return errors


@compiled
def _solve_bytes(
    rows: np.ndarray, landmarks: np.ndarray, indices: np.ndarray, how: tuple[float, bool], values: np.ndarray
) -> None:
    n_neighbors, n_columns = indices.shape[1], rows.shape[1]
    differences = np.empty((n_neighbors, n_columns), dtype=np.int16)
    gram = np.empty((n_neighbors, n_neighbors), dtype=np.float64)
    factor = np.empty((n_neighbors, n_neighbors), dtype=np.float64)
    for i in range(rows.shape[0]):
        row = rows[i]
        for k in range(n_neighbors):
            landmark, difference = landmarks[indices[i, k]], differences[k]
            for j in range(n_columns):
                difference[j] = np.int16(np.int16(row[j]) - np.int16(landmark[j]))
        for k in range(n_neighbors):
            for m in range(k + 1):
                gram[k, m] = _product_of_bytes(differences[k], differences[m])
        _weights_of_gram(gram, factor, how, values[i])


@compiled
def _product_of_bytes(a: np.ndarray, b: np.ndarray) -> float:
    total = np.int32(0)
    for j in range(a.shape[0]):
        total = np.int32(total + np.int32(np.int32(a[j]) * np.int32(b[j])))
    return float(total)


@compiled
def _solve_floats(
    rows: np.ndarray, landmarks: np.ndarray, indices: np.ndarray, how: tuple[float, bool], values: np.ndarray
) -> None:
    n_neighbors, n_columns = indices.shape[1], rows.shape[1]
    n_even = n_neighbors + n_neighbors % 2
    differences = np.zeros((n_even, n_columns), dtype=np.float64)
    gram = np.empty((n_even, n_even), dtype=np.float64)
    factor = np.empty((n_neighbors, n_neighbors), dtype=np.float64)
    for i in range(rows.shape[0]):
        row = rows[i]
        for k in range(n_neighbors):
            landmark, difference = landmarks[indices[i, k]], differences[k]
            for j in range(n_columns):
                difference[j] = np.float64(row[j]) - np.float64(landmark[j])
        _gram_of_floats(differences, gram)
        trace = 0.0
        for k in range(n_neighbors):
            trace += gram[k, k]
        if not (SAFE_TRACE[0] < trace < SAFE_TRACE[1]) and _rescale(differences):
            _gram_of_floats(differences, gram)
        _weights_of_gram(gram[:n_neighbors, :n_neighbors], factor, how, values[i])


@inlined_sums
def _gram_of_floats(differences: np.ndarray, gram: np.ndarray) -> None:
    """Fill the lower triangle in squares of two by two: each difference loaded serves two products.

    Both arrays have an even number of rows; the one too many of an odd K_Z is zero.
    """
    for k in range(0, differences.shape[0], 2):
        first, second = differences[k], differences[k + 1]
        for m in range(0, k + 2, 2):
            third, fourth = differences[m], differences[m + 1]
            first_third, first_fourth, second_third, second_fourth = 0.0, 0.0, 0.0, 0.0
            for j in range(first.shape[0]):
                first_third += first[j] * third[j]
                first_fourth += first[j] * fourth[j]
                second_third += second[j] * third[j]
                second_fourth += second[j] * fourth[j]
            gram[k, m] = first_third
            gram[k, m + 1] = first_fourth
            gram[k + 1, m] = second_third
            gram[k + 1, m + 1] = second_fourth


@compiled
def _rescale(differences: np.ndarray) -> bool:
    """Divide by the largest difference, so that no square over- or underflows; False if all are zero."""
    largest = 0.0
    for k in range(differences.shape[0]):
        for j in range(differences.shape[1]):
            largest = max(largest, abs(differences[k, j]))
    if largest == 0.0:
        return False
    for k in range(differences.shape[0]):
        for j in range(differences.shape[1]):
            differences[k, j] /= largest
    return True


@compiled
def _weights_of_gram(gram: np.ndarray, factor: np.ndarray, how: tuple[float, bool], weights: np.ndarray) -> None:
    """Solve for the weights; reads the lower triangle of `gram`."""
    n_neighbors = gram.shape[0]
    eps, unit_rows = how
    trace = 0.0
    for k in range(n_neighbors):
        if unit_rows and gram[k, k] == 0.0:
            weights[:] = 0.0
            weights[k] = 1.0
            return
        trace += gram[k, k]
    if trace == 0.0:
        weights[:] = 1.0 / n_neighbors
        return
    added = eps / n_neighbors
    while not _factorise(gram, factor, trace, added):
        added = max(added, np.finfo(np.float64).eps) * STRONGER
    for k in range(n_neighbors):
        value = 1.0
        for m in range(k):
            value -= factor[k, m] * weights[m]
        weights[k] = value / factor[k, k]
    total = 0.0
    for k in range(n_neighbors - 1, -1, -1):
        weights[k] /= factor[k, k]
        for m in range(k):
            weights[m] -= factor[k, m] * weights[k]
        total += weights[k]
    for k in range(n_neighbors):
        weights[k] /= total


@inlined_sums
def _factorise(gram: np.ndarray, factor: np.ndarray, trace: float, added: float) -> bool:
    """Cholesky factor of gram / trace + added I by rows; False at the first pivot that is not positive."""
    for k in range(gram.shape[0]):
        row = factor[k]
        for m in range(k + 1):
            other = factor[m]
            total = 0.0
            for j in range(m):
                total += row[j] * other[j]
            value = gram[k, m] / trace - total
            if m < k:
                row[m] = value / other[m]
            elif value + added > 0.0:
                row[k] = np.sqrt(value + added)
            else:
                return False
    return True


@compiled_sums
def _relative_residuals(
    rows: np.ndarray, landmarks: np.ndarray, indices: np.ndarray, values: np.ndarray, errors: np.ndarray
) -> None:
    n_neighbors, n_columns = indices.shape[1], rows.shape[1]
    residual = np.empty(n_columns, dtype=np.float64)
    for i in range(rows.shape[0]):
        row = rows[i]
        residual[:] = 0.0
        nearest = np.inf
        for k in range(n_neighbors):
            landmark, weight = landmarks[indices[i, k]], values[i, k]
            squared = 0.0
            for j in range(n_columns):
                difference = np.float64(row[j]) - np.float64(landmark[j])
                residual[j] += weight * difference
                squared += difference * difference
            nearest = min(nearest, squared)
        squared = 0.0
        for j in range(n_columns):
            squared += residual[j] * residual[j]
        errors[i] = np.sqrt(squared / nearest) if nearest > 0.0 else 0.0


class Combining(NamedTuple):
    """How weights are chosen.

    Parameters
    ----------
    regularization, limits : of the weights of Z, as in `limited_weights`
    sigma : bandwidth of the Gaussian kernel whose shares are the weights, in the unit of the points; None: those of Z
    """

    n_neighbors: int
    regularization: float | None = None
    sigma: float | None = None
    limits: Limits = Limits()


class LandmarkMap(NamedTuple):
    """Landmarks prepared for a search, their coordinates (L, d), and how points are combined of them."""

    prepared: PreparedLandmarks
    coordinates: np.ndarray
    combining: Combining


class Combined(NamedTuple):
    """Landmarks (n, K) int32 of points, ascending distance, and weights (n, K) float64."""

    indices: np.ndarray
    weights: np.ndarray

    def of(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the points' combinations (n, d) float64 of the landmarks' coordinates (L, d)."""
        combinations = np.zeros((len(self.indices), coordinates.shape[1]))
        _add_weighted(self.indices, self.weights, coordinates, combinations)
        return combinations


def combined_among(
    points: np.ndarray, prepared: PreparedLandmarks, combining: Combining, indices: np.ndarray, squares: np.ndarray
) -> Combined:
    """Return the weights of points (n, D) over their nearest landmarks (n, >= K), which are at squared distances.

    Each row depends on its point alone.
    """
    indices, squares = (np.ascontiguousarray(one[:, : combining.n_neighbors]) for one in (indices, squares))
    if combining.sigma is None:
        regularization, limits = combining.regularization, combining.limits
        weights = limited_weights(points, prepared.landmarks, indices, regularization, limits, squares)
    else:
        weights = kernel_shares(squares, combining.sigma)
    return Combined(indices, weights)


def kernel_shares(squares: np.ndarray, sigma: float) -> np.ndarray:
    """Return exp(-s / (2 sigma^2)) over its sum, row by row, of squared distances (n, K) that ascend: (n, K) float64.

    The kernel of the nearest is divided out first: far from all landmarks it would be zero.
    """
    shares = np.empty(squares.shape)
    for some in slices(len(squares), max(1, SHARES_AT_ONCE // squares.shape[1])):
        rows, part = squares[some], shares[some]
        # Of what is infinitely farther than the nearest, the kernel is zero; a point infinitely far from all has none.
        with np.errstate(over="ignore", invalid="ignore"):
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


class Anchored(NamedTuple):
    """Landmarks among the points.

    The `rows` (L, c) int64 of the anchors of each, ascending by distance; their `weights` (L, c) float64, which sum to
    one; and the `distances` (L,) float64 of the nearest ones.
    """

    rows: np.ndarray
    weights: np.ndarray
    distances: np.ndarray


def anchored(points: PointsByRow, landmarks: np.ndarray) -> Anchored:
    """Return where landmarks (L, D) float64 stand among the points, of which a tile is held at a time."""
    nearest, squares = nearest_rows(points, landmarks, ANCHORS, basis_of_landmarks(landmarks))
    weights = np.empty(nearest.shape)
    for some in slices(len(landmarks), LANDMARKS_AT_ONCE):
        rows, places = np.unique(nearest[some], return_inverse=True)
        near = places.reshape(nearest[some].shape)
        weights[some] = local_weights(landmarks[some], points[rows], near, SINGULAR_REGULARIZATION)
    return Anchored(nearest, weights, np.sqrt(squares[:, 0]))
