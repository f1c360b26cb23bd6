"""The nearest landmarks of each point, exactly: bounds by matrix products of short sketches, then true distances.

The rows nearest to each landmark are found block by block.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.instructions import LANES_AT_ONCE
from scalemani.kernels.rows.distances import comparable, squared_row_distance
from scalemani.kernels.rows.sketches import SketchBasis, project, pruning_basis, sketch_precisely
from scalemani.kernels.rows.smallest import LARGEST, POOL_MARGIN, append_within, bound_within

MOST_INSERTED = 256  # values that are sorted by insertion

SKETCH_DIMENSIONS = 64
TILE = 64  # rows whose bounds to 10,000 landmarks fit the second-level cache
SCAN_ALL_BELOW = 96  # landmarks: a plain scan is quicker than bounds
SPARE_CANDIDATES, SPARE_SHARE = 8, 16  # to spare, and one for so many: the bound that finds them need not be exact
# Covers the rounding of a float32 product of up to 256 terms and of sketches accurate to 2**-18 of their norms.
BOUND_MARGIN = 2.0**-15
UNDERFLOW_MARGIN = 1e-35  # of float32 products, when an outlier makes the unit very large
LARGEST_SKETCH = 1e9  # squared norms in units of the landmarks' spread; rows beyond are scanned


@compiled
def sort_ascending(values: np.ndarray, labels: np.ndarray) -> None:
    """Sort values (n,), and their labels (n,) with them, in place; equal values stay in the order they come in."""
    if values.shape[0] > MOST_INSERTED:
        order = np.argsort(values, kind="mergesort")
        sorted_values, sorted_labels = values[order], labels[order]
        for i in range(values.shape[0]):  # a slice would compile an error message, in a second and a half
            values[i], labels[i] = sorted_values[i], sorted_labels[i]
        return
    for i in range(1, values.shape[0]):
        value, label, place = values[i], labels[i], i
        while place > 0 and values[place - 1] > value:
            values[place], labels[place] = values[place - 1], labels[place - 1]
            place -= 1
        values[place], labels[place] = value, label


class PreparedLandmarks(NamedTuple):
    """Landmarks with what the search needs of them; results do not depend on the basis, the time does.

    landmarks (L, D), in the dtype of the points where it is to be exact for bytes.
    basis of the sketches, None where there are so few landmarks that nothing is pruned.
    products (s + 1, L) float32: -2 times the sketches, then their squared norms less a margin; empty without a basis.
    """

    landmarks: np.ndarray
    basis: SketchBasis | None
    products: np.ndarray


def prepare_landmarks(landmarks: np.ndarray, basis: SketchBasis | None = None) -> PreparedLandmarks:
    """Prepare landmarks for `nearest_landmarks`.

    Parameters
    ----------
    landmarks : (L, D) real, finite
    basis : of the sketches, its scale not used; default the leading 64 principal directions of the landmarks
    """
    if len(landmarks) < SCAN_ALL_BELOW:
        return PreparedLandmarks(landmarks, None, np.empty((0, 0), dtype=np.float32))
    fitted = pruning_basis(landmarks, SKETCH_DIMENSIONS) if basis is None else basis
    exact = project(landmarks, fitted)
    largest = float(np.abs(exact).max()) or 1.0
    scale = largest * (float(np.sqrt(np.mean((exact / largest) ** 2))) or 1.0)
    scaled = (exact / scale).astype(np.float32)
    norms = np.einsum("ls,ls->l", scaled, scaled, dtype=np.float64)
    products = np.empty((exact.shape[1] + 1, len(landmarks)), dtype=np.float32)
    products[:-1] = -2.0 * scaled.T
    products[-1] = norms * (1.0 - BOUND_MARGIN)
    return PreparedLandmarks(landmarks, fitted._replace(scale=scale), products)


def nearest_landmarks(
    points: np.ndarray, landmarks: np.ndarray | PreparedLandmarks, n_neighbors: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `n_neighbors` nearest landmarks of each point, ascending, ties by landmark index.

    The answer is exact: distances between sketches only skip landmarks that cannot be among the nearest, with a margin
    for their rounding, and all others are measured by direct differences. Every row is therefore the same for any
    blocking of the points.

    Parameters
    ----------
    points : (n, D) real, finite; bytes are compared with bytes exactly, other dtypes in float64
    landmarks : (L, D) real, finite, or as prepared once for many blocks by `prepare_landmarks`
    n_neighbors : K_Z, from 1 to L

    Returns
    -------
    indices : (n, K_Z) int32
    squared_distances : (n, K_Z) float64
    """
    prepared = landmarks if isinstance(landmarks, PreparedLandmarks) else prepare_landmarks(landmarks)
    rows, columns = comparable(points, prepared.landmarks)
    indices = np.empty((len(rows), n_neighbors), dtype=np.int32)
    distances = np.empty((len(rows), n_neighbors), dtype=np.float64)
    n_landmarks, basis = len(columns), prepared.basis
    bounds = np.full((TILE, -(-n_landmarks // LANES_AT_ONCE) * LANES_AT_ONCE), np.inf, dtype=np.float32)
    if basis is None:
        bounds[:, :n_landmarks] = 0.0
        norms = np.full(TILE, np.inf)
        for start in range(0, len(rows), TILE):
            tile = slice(start, start + TILE)
            _rank_tile(rows[tile], columns, bounds, norms, 1.0, indices[tile], distances[tile])
        return indices, distances
    factors = np.empty((TILE, len(prepared.products)), dtype=np.float32)
    for start in range(0, len(rows), TILE):
        tile = slice(start, start + TILE)
        n_tile = len(rows[tile])
        norms = _fill_factors(rows[tile], basis, factors[:n_tile])
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(factors[:n_tile], prepared.products, out=bounds[:n_tile, :n_landmarks])
        _rank_tile(rows[tile], columns, bounds, norms, basis.scale**2, indices[tile], distances[tile])
    return indices, distances


class BoundedPairs(NamedTuple):
    """Points (n, D) and landmarks (m, D), comparable, and what bounds their squared distances.

    The sum of a point's norm (n,) float32 and of its product with a landmark, (n, m) float32, is no more than their
    squared distance in the unit; norms are minus infinity where nothing is known.
    """

    rows: np.ndarray
    landmarks: np.ndarray
    products: np.ndarray
    norms: np.ndarray
    unit: float


def bounded_pairs(points: np.ndarray, prepared: PreparedLandmarks) -> Callable[[slice], BoundedPairs]:
    """Return what gives the pairs of points (n, D) with a slice of the landmarks."""
    rows, columns = comparable(points, prepared.landmarks)
    unit, table = 1.0, np.zeros((1, len(columns)), np.float32)
    factors, norms = np.zeros((len(rows), 1), np.float32), np.full(len(rows), -np.inf)
    if prepared.basis is not None:
        unit, table = prepared.basis.scale**2, prepared.products
        factors = np.empty((len(rows), len(table)), np.float32)
        norms = _fill_factors(rows, prepared.basis, factors)
        norms[np.isinf(norms)] = -np.inf

    def against(some: slice) -> BoundedPairs:
        with np.errstate(over="ignore", invalid="ignore"):
            products = np.matmul(factors, table[:, some])
        return BoundedPairs(rows, columns[some], products, norms.astype(np.float32), unit)

    return against


def _fill_factors(rows: np.ndarray, basis: SketchBasis, factors: np.ndarray) -> np.ndarray:
    """Write the sketches beside a column of ones; return their squared norms less the margin (inf: scan all)."""
    factors[:, :-1] = sketch_precisely(rows, basis)
    factors[:, -1] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.einsum("ns,ns->n", factors[:, :-1], factors[:, :-1], dtype=np.float64)
    far = ~(norms < LARGEST_SKETCH)
    factors[far, :-1] = 0.0
    return np.where(far, np.inf, norms * (1.0 - BOUND_MARGIN) - UNDERFLOW_MARGIN)


@compiled
def _rank_tile(
    rows: np.ndarray,
    landmarks: np.ndarray,
    bounds: np.ndarray,
    norms: np.ndarray,
    unit: float,
    indices: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Fill the lists of a tile of rows; `unit` times (bound + norm) is a lower bound of a squared distance.

    The true distances of somewhat more landmarks than are wanted, those of least bounds, say how far the last one may
    be; all whose bounds are within that are measured and sorted.
    """
    n_wanted, width = indices.shape[1], bounds.shape[1]
    least = np.empty((2, width + POOL_MARGIN), dtype=np.float32)
    labels = np.empty((2, width + POOL_MARGIN), dtype=np.int32)
    numbers = np.arange(width).astype(np.int32)
    first, squares = np.empty(width), np.empty(width)
    for i in range(rows.shape[0]):
        limit = LARGEST
        if norms[i] != np.inf:
            limit = _bound_of_nearest(bounds, i, landmarks.shape[0], n_wanted)
        n_first, reach = append_within(bounds, i, limit, numbers, least, labels, 0), 0.0
        for j in range(n_first):
            first[j] = squared_row_distance(rows, i, landmarks, labels[0, j], np.inf)
            reach = max(reach, first[j])
        within = reach / unit - norms[i]
        within += BOUND_MARGIN * abs(within)  # of its rounding to float32
        limit = max(limit, np.float32(within)) if within < LARGEST else LARGEST
        n_near = append_within(bounds, i, limit, numbers, least, labels, width + POOL_MARGIN)
        known = 0
        for j in range(n_near):
            if known < n_first and labels[0, known] == labels[1, j]:
                squares[j] = first[known]
                known += 1
            else:
                squares[j] = squared_row_distance(rows, i, landmarks, labels[1, j], np.inf)
        sort_ascending(squares[:n_near], labels[1, :n_near])
        for j in range(n_wanted):  # one slice assigned to another would compile an error message, in two seconds
            indices[i, j], distances[i, j] = labels[1, j], squares[j]


@compiled
def _bound_of_nearest(bounds: np.ndarray, row: int, n_landmarks: int, n_wanted: int) -> np.float32:
    """Return a bound that somewhat more than `n_wanted` of a row's bounds of landmarks are not above."""
    low, high = bounds[row, 0], bounds[row, 0]
    for j in range(n_landmarks):
        low, high = min(low, bounds[row, j]), max(high, bounds[row, j])
    return bound_within(
        bounds, row, n_landmarks, low, high, n_wanted, n_wanted + SPARE_CANDIDATES + n_wanted // SPARE_SHARE
    )


class NearestRows(NamedTuple):
    """The rows nearest to each landmark so far, ascending by distance, ties by row."""

    rows: np.ndarray  # (L, c) int64, -1 where there are none yet
    squared_distances: np.ndarray  # (L, c) float64; inf where there are none


def no_rows(n_landmarks: int, n_nearest: int) -> NearestRows:
    """Return the state before the first block of points."""
    shape = (n_landmarks, n_nearest)
    return NearestRows(np.full(shape, -1, dtype=np.int64), np.full(shape, np.inf))


def nearer_rows(
    before: NearestRows, landmarks: np.ndarray, block: np.ndarray, first_row: int, basis: SketchBasis
) -> NearestRows:
    """Return the state after the points [first_row, first_row + n); blocks may come in any order, each once."""
    n_nearest = before.rows.shape[1]
    indices, squares = nearest_landmarks(landmarks, prepare_landmarks(block, basis), min(n_nearest, len(block)))
    candidates = np.concatenate([before.rows, indices + np.int64(first_row)], axis=1)
    distances = np.concatenate([before.squared_distances, squares], axis=1)
    order = np.lexsort((candidates, distances), axis=1)[:, :n_nearest]
    return NearestRows(np.take_along_axis(candidates, order, axis=1), np.take_along_axis(distances, order, axis=1))
