"""The local geometry of landmarks: covariances of the points around them.

Points are read twice, in tiles: once for the radius of each neighbourhood, once for its moments.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.arrays.workspace import IN_MEMORY, Workspace
from scalemani.kernels.landmarks.nearest import PreparedLandmarks, nearest_landmarks, prepare_landmarks
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.points_by_row import PointsByRow

TILES_TOGETHER = 4  # worked on side by side, and held: enough for a few threads at this size of a tile
ASSIGNED = 4  # nearest landmarks to whose neighbourhoods a point may belong
SINGULAR = 1e-10  # least over largest eigenvalue at which a covariance cannot be inverted
ADDED_SHARE = 1e-3  # of the mean variance, which is added to the diagonal of a singular covariance


class LocalGeometry(NamedTuple):
    """What is around landmarks.

    covariances (L, D, D) float64, or their diagonals (L, D); counts (L,) int64, points that they are of; regularized
    (L,) bool, those that are singular without an addition to the diagonal.
    """

    covariances: np.ndarray
    counts: np.ndarray
    regularized: np.ndarray


def local_geometry(
    points: PointsByRow,
    landmarks: np.ndarray,
    neighborhood: int,
    diagonal: bool = False,
    workspace: Workspace = IN_MEMORY,
) -> LocalGeometry:
    """Return the covariances of the `neighborhood` points nearest to each landmark, around their mean.

    A point belongs to neighbourhoods of its four nearest landmarks at most, so that no distance to all landmarks is
    kept: a neighbourhood that would hold more than the points that are so near to its landmark holds these. Points
    exactly as far as the last one belong too.

    Parameters
    ----------
    points : N points, read tile by tile, twice
    landmarks : (L, D) real, distinct
    neighborhood : m
    diagonal : whether variances alone are computed, for many dimensions
    workspace : what runs tiles side by side; their results are added in the order of the points

    Returns
    -------
    LocalGeometry, positive definite: a thousandth of the mean variance is added to the diagonal of singular ones (where
    all points are repeated, of the mean variance of all landmarks)

    References
    ----------
    [DPP] 3.3
    """
    prepared = prepare_landmarks(landmarks)
    n_assigned, n_landmarks = min(ASSIGNED, len(landmarks)), len(landmarks)
    listed = np.full((n_landmarks, neighborhood), np.inf)

    def nearest(tile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return nearest_landmarks(tile, prepared, n_assigned)

    for indices, squares in _of_tiles(nearest, points, workspace):
        _keep_smallest(indices, squares, listed)
    reaches = np.where(np.isfinite(listed), listed, -np.inf).max(axis=1)
    width = landmarks.shape[1]
    sums, products = np.zeros((n_landmarks, width)), np.zeros((n_landmarks, width, 1 if diagonal else width))
    counts = np.zeros(n_landmarks, dtype=np.int64)
    within_reach = functools.partial(_within_reach, prepared=prepared, n_assigned=n_assigned, reaches=reaches)
    for chosen, differences in _of_tiles(within_reach, points, workspace):
        _accumulate(chosen, differences, counts, sums, products)
    found = np.maximum(counts, 1)[:, np.newaxis]
    means = sums / found
    if diagonal:
        return _positive_variances(np.maximum(products[:, :, 0] / found - means**2, 0.0), counts)
    covariances = products / found[:, :, np.newaxis] - means[:, :, np.newaxis] * means[:, np.newaxis]
    return _positive_definite(covariances, counts)


def _of_tiles(function: Callable[[np.ndarray], Any], points: PointsByRow, workspace: Workspace) -> Iterator[Any]:
    """Yield function(tile) of all tiles of points in their order, a few of them computed side by side."""

    def of_tile(rows: slice) -> Any:
        return function(points[np.arange(rows.start, rows.stop)])

    tiles = slices(len(points), TILE_ROWS)
    for first in range(0, len(tiles), TILES_TOGETHER):
        yield from workspace.over(of_tile, tiles[first : first + TILES_TOGETHER])


def _within_reach(
    tile: np.ndarray, prepared: PreparedLandmarks, n_assigned: int, reaches: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return landmarks (n,) whose neighbourhood a point of a tile belongs to, and its differences (n, D) from each.

    Of differences from the landmark moments are computed: next to it they lose no digits to its place.
    """
    indices, squares = nearest_landmarks(tile, prepared, n_assigned)
    rows, columns = np.nonzero(squares <= reaches[indices])
    chosen = indices[rows, columns]
    return chosen, tile[rows].astype(np.float64) - prepared.landmarks[chosen].astype(np.float64)


@compiled
def _accumulate(
    chosen: np.ndarray, differences: np.ndarray, counts: np.ndarray, sums: np.ndarray, products: np.ndarray
) -> None:
    full = products.shape[2] > 1
    for number in range(chosen.shape[0]):
        landmark, row = chosen[number], differences[number]
        counts[landmark] += 1
        for i in range(row.shape[0]):
            sums[landmark, i] += row[i]
            if full:
                for j in range(row.shape[0]):
                    products[landmark, i, j] += row[i] * row[j]
            else:
                products[landmark, i, 0] += row[i] * row[i]


@compiled
def _keep_smallest(indices: np.ndarray, squares: np.ndarray, listed: np.ndarray) -> None:
    """Keep the smallest squared distances of each landmark in a heap, the largest first."""
    for i in range(indices.shape[0]):
        for k in range(indices.shape[1]):
            heap, value = listed[indices[i, k]], squares[i, k]
            if not value < heap[0]:
                continue
            place = 0
            while 2 * place + 1 < heap.shape[0]:
                child = 2 * place + 1
                if child + 1 < heap.shape[0] and heap[child + 1] > heap[child]:
                    child += 1
                if heap[child] <= value:
                    break
                heap[place] = heap[child]
                place = child
            heap[place] = value


def _positive_variances(variances: np.ndarray, counts: np.ndarray) -> LocalGeometry:
    singular = variances.min(axis=1) <= SINGULAR * variances.max(axis=1)
    added = _added(variances.mean(axis=1), singular)
    return LocalGeometry(variances + added[:, np.newaxis], counts, singular)


def _positive_definite(covariances: np.ndarray, counts: np.ndarray) -> LocalGeometry:
    values = np.linalg.eigvalsh(covariances)
    singular = values[:, 0] <= SINGULAR * values[:, -1]
    added = _added(np.maximum(values, 0.0).mean(axis=1), singular)
    return LocalGeometry(covariances + added[:, np.newaxis, np.newaxis] * np.eye(values.shape[1]), counts, singular)


def _added(variances: np.ndarray, singular: np.ndarray) -> np.ndarray:
    """Return what is added to the diagonals; where there is no variance at all, by that of all landmarks."""
    usual = float(variances.mean()) or 1.0
    return np.where(singular, ADDED_SHARE * np.where(variances > 0.0, variances, usual), 0.0)
