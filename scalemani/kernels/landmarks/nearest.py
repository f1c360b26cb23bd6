"""The nearest landmarks of each point, exactly, and the rows nearest to each landmark, tile by tile."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.neighbors.exact import SketchedRows, nearest_among
from scalemani.kernels.neighbors.rerank import no_neighbors
from scalemani.kernels.rows.compressed import PointsByRow, tiles
from scalemani.kernels.rows.distances import comparable, squared_row_distance
from scalemani.kernels.rows.sketches import MOST_SAMPLE_ROWS, SketchBasis, fit_sketch

SKETCH_DIMENSIONS = 64


class PreparedLandmarks(NamedTuple):
    """Landmarks with a basis, whose unit of length keeps products in range; results do not depend on it.

    `landmarks` (L, D) are in the dtype of the points where they are to be exact for bytes.
    """

    landmarks: np.ndarray
    basis: SketchBasis


def basis_of_landmarks(landmarks: np.ndarray) -> SketchBasis:
    """Return the 64 leading directions of at most 2,048 of the landmarks (L, D), evenly spread."""
    return fit_sketch(landmarks[:: -(-len(landmarks) // MOST_SAMPLE_ROWS)], SKETCH_DIMENSIONS)


def prepare_landmarks(landmarks: np.ndarray, basis: SketchBasis | None = None) -> PreparedLandmarks:
    """Prepare landmarks for `nearest_landmarks`.

    Parameters
    ----------
    landmarks : (L, D) real, finite
    basis : default `basis_of_landmarks`
    """
    return PreparedLandmarks(landmarks, basis_of_landmarks(landmarks) if basis is None else basis)


def nearest_landmarks(
    points: np.ndarray, landmarks: np.ndarray | PreparedLandmarks, n_neighbors: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `n_neighbors` nearest landmarks of each point, ascending, ties by landmark index.

    The answer is exact, so that every row is the same for any blocking of the points.

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
    # Coordinates are compared: they have no sketches.
    queries, others = (
        SketchedRows(table, np.empty((len(table), 0), np.float32), prepared.basis.scale)
        for table in comparable(points, prepared.landmarks)
    )
    rows, columns = queries.points, others.points
    nowhere, unlimited = np.full(len(rows), -1), np.full(len(rows), np.inf)
    indices = nearest_among(queries, nowhere, others, 0, no_neighbors(len(rows), n_neighbors), unlimited).indices
    squares = squares_to(rows, columns, indices)
    if np.any(squares[:, 1:] < squares[:, :-1]):  # whose roots are equal
        order = np.lexsort((indices, squares), axis=1)
        indices, squares = (np.take_along_axis(one, order, axis=1) for one in (indices, squares))
    return indices, squares


@compiled
def squares_to(rows: np.ndarray, columns: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the squared distances (n, k) float64 of rows (n, D) to those listed for each of columns (L, D)."""
    squares = np.empty(indices.shape)
    for i in range(indices.shape[0]):
        for k in range(indices.shape[1]):
            squares[i, k] = squared_row_distance(rows, i, columns, indices[i, k], np.inf)
    return squares


def nearest_rows(
    points: PointsByRow, landmarks: np.ndarray, n_nearest: int, basis: SketchBasis
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows nearest to each landmark (L, D), ascending by distance, ties by row; a tile is held at a time.

    Parameters
    ----------
    points : N points
    n_nearest : c; N where there are fewer
    basis : of sketches of the points

    Returns
    -------
    rows : (L, c) int64
    squared_distances : (L, c) float64
    """
    rows, squares = np.empty((len(landmarks), 0), np.int64), np.empty((len(landmarks), 0))
    for start, tile in tiles(points):
        indices, of_tile = nearest_landmarks(landmarks, prepare_landmarks(tile, basis), min(n_nearest, len(tile)))
        rows = np.concatenate([rows, indices + np.int64(start)], axis=1)
        squares = np.concatenate([squares, of_tile], axis=1)
        order = np.lexsort((rows, squares), axis=1)[:, :n_nearest]
        rows, squares = np.take_along_axis(rows, order, axis=1), np.take_along_axis(squares, order, axis=1)
    return rows, squares
