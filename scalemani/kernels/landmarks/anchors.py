"""Landmarks off the data: where they stand among the points, which have coordinates in every embedding.

A landmark off the data is an affine combination of the points nearest to it, its anchors, as a point is one of the
landmarks nearest to it. The same combination of the anchors' coordinates places it in an embedding.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.landmarks.nearest import nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.weights import SINGULAR_REGULARIZATION, local_weights
from scalemani.kernels.rows.points_by_row import PointsByRow
from scalemani.kernels.rows.sketches import SketchBasis, pruning_basis

ANCHORS = 8  # points a landmark: more than the dimensions of most surfaces
SKETCH_DIMENSIONS = 64
LANDMARKS_AT_ONCE = 256  # whose anchors are in memory


class NearestRows(NamedTuple):
    """The rows nearest to each landmark so far, ascending by distance, ties by row."""

    rows: np.ndarray  # (L, c) int64, -1 where there are none yet
    squared_distances: np.ndarray  # (L, c) float64; inf where there are none


class Anchored(NamedTuple):
    """Landmarks among the points.

    The `rows` (L, c) int64 of the anchors of each, ascending by distance; their `weights` (L, c) float64, which sum to
    one; and the `distances` (L,) float64 of the nearest ones.
    """

    rows: np.ndarray
    weights: np.ndarray
    distances: np.ndarray


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


def anchored(points: PointsByRow, landmarks: np.ndarray) -> Anchored:
    """Return where landmarks (L, D) float64 stand among the points, of which a tile is held at a time."""
    basis = pruning_basis(landmarks, SKETCH_DIMENSIONS)
    nearest = no_rows(len(landmarks), min(ANCHORS, len(points)))
    for start, tile in tiles(points):
        nearest = nearer_rows(nearest, landmarks, tile, start, basis)
    weights = np.empty(nearest.rows.shape)
    for some in slices(len(landmarks), LANDMARKS_AT_ONCE):
        rows, places = np.unique(nearest.rows[some], return_inverse=True)
        near = places.reshape(nearest.rows[some].shape)
        weights[some] = local_weights(landmarks[some], points[rows], near, SINGULAR_REGULARIZATION)
    return Anchored(nearest.rows, weights, np.sqrt(nearest.squared_distances[:, 0]))


def tiles(points: PointsByRow) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the first row of each tile, and its points."""
    for tile in slices(len(points), TILE_ROWS):
        yield tile.start, points[np.arange(tile.start, tile.stop)]
