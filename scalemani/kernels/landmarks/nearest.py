"""The nearest landmarks of each point, exactly: bounds by matrix products of short sketches, then true distances."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled, compiled_sums
from scalemani.kernels.rows.distances import comparable, squared_distance
from scalemani.kernels.rows.sketches import SketchBasis, project, pruning_basis, sketch_precisely
from scalemani.kernels.rows.smallest import insert_neighbor

SKETCH_DIMENSIONS = 64
TILE = 64  # rows whose bounds to 10,000 landmarks fit the second-level cache
GROUP = 32  # landmarks per group minimum
EXTRA_CANDIDATES = 8  # true distances taken before bounds prune
SCAN_ALL_BELOW = 96  # landmarks: a plain scan is quicker than bounds
# Covers the rounding of a float32 product of up to 256 terms and of sketches accurate to 2**-18 of their norms.
BOUND_MARGIN = 2.0**-15
UNDERFLOW_MARGIN = 1e-35  # of float32 products, when an outlier makes the unit very large
LARGEST_SKETCH = 1e9  # squared norms in units of the landmarks' spread; rows beyond are scanned


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
    basis = prepared.basis
    if basis is None:
        bounds, norms = np.zeros((TILE, len(columns)), dtype=np.float32), np.full(TILE, np.inf)
        for start in range(0, len(rows), TILE):
            tile = slice(start, start + TILE)
            _rank_tile(rows[tile], columns, bounds, norms, 1.0, indices[tile], distances[tile])
        return indices, distances
    factors = np.empty((TILE, len(prepared.products)), dtype=np.float32)
    bounds = np.empty((TILE, len(columns)), dtype=np.float32)
    for start in range(0, len(rows), TILE):
        tile = slice(start, start + TILE)
        n_tile = len(rows[tile])
        norms = _fill_factors(rows[tile], basis, factors[:n_tile])
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(factors[:n_tile], prepared.products, out=bounds[:n_tile])
        _rank_tile(rows[tile], columns, bounds, norms, basis.scale**2, indices[tile], distances[tile])
    return indices, distances


def _fill_factors(rows: np.ndarray, basis: SketchBasis, factors: np.ndarray) -> np.ndarray:
    """Write the sketches beside a column of ones; return their squared norms less the margin (inf: scan all)."""
    factors[:, :-1] = sketch_precisely(rows, basis)
    factors[:, -1] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.einsum("ns,ns->n", factors[:, :-1], factors[:, :-1], dtype=np.float64)
    far = ~(norms < LARGEST_SKETCH)
    factors[far, :-1] = 0.0
    return np.where(far, np.inf, norms * (1.0 - BOUND_MARGIN) - UNDERFLOW_MARGIN)


@compiled_sums
def _group_minima(bounds: np.ndarray, minima: np.ndarray) -> None:
    for group in range(minima.shape[0]):
        members = bounds[group * GROUP : (group + 1) * GROUP]
        least = members[0]
        for j in range(members.shape[0]):
            least = min(least, members[j])
        minima[group] = least


@compiled
def _small_value(values: np.ndarray, smallest: np.ndarray) -> float:
    """Return the len(smallest)-th smallest of `values`, by insertion."""
    smallest[:] = np.inf
    last = smallest.shape[0] - 1
    for value in values:
        if value < smallest[last]:
            entry = last
            while entry > 0 and smallest[entry - 1] > value:
                smallest[entry] = smallest[entry - 1]
                entry -= 1
            smallest[entry] = value
    return smallest[last]


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
    """Fill the lists of a tile of rows; `unit` times (bound + norm) is a lower bound of a squared distance."""
    n_landmarks, last = landmarks.shape[0], indices.shape[1] - 1
    n_groups = (n_landmarks + GROUP - 1) // GROUP
    minima = np.empty(n_groups, dtype=np.float32)
    smallest = np.empty(min(last + 1 + EXTRA_CANDIDATES, n_groups), dtype=np.float32)
    indices[:] = n_landmarks
    distances[:] = np.inf
    for i in range(rows.shape[0]):
        row, row_bounds, nearest = rows[i], bounds[i], distances[i]
        if norms[i] == np.inf:
            for j in range(n_landmarks):
                insert_neighbor(indices, distances, i, j, squared_distance(row, landmarks[j], nearest[last]))
            continue
        _group_minima(row_bounds, minima)
        first_limit = _small_value(minima, smallest)
        for group in range(n_groups):
            if minima[group] <= first_limit:
                for j in range(group * GROUP, min((group + 1) * GROUP, n_landmarks)):
                    if row_bounds[j] <= first_limit:
                        insert_neighbor(indices, distances, i, j, squared_distance(row, landmarks[j], nearest[last]))
        for group in range(n_groups):
            if (minima[group] + norms[i]) * unit <= nearest[last]:
                for j in range(group * GROUP, min((group + 1) * GROUP, n_landmarks)):
                    if row_bounds[j] > first_limit and (row_bounds[j] + norms[i]) * unit <= nearest[last]:
                        insert_neighbor(indices, distances, i, j, squared_distance(row, landmarks[j], nearest[last]))
