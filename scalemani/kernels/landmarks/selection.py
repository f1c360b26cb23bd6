"""Landmarks by any method, among points in memory or in a store: the same rows for the same seed."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import generator, sample_rows
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.landmarks.minibatch import minibatch_start, minibatch_step, snap_rows, snap_start, snap_step
from scalemani.kernels.landmarks.seeding import kmeans_plus_plus, minmax_landmarks
from scalemani.kernels.landmarks.uniform import (
    first_of_equal_rows,
    n_spread_candidates,
    random_landmarks,
    spread_landmarks,
)


class PointsByRow(Protocol):
    """Points (N, D) that are read by row numbers: an array in memory, or what reads a store."""

    def __len__(self) -> int:
        """Return N."""

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        """Return the points (m, D) at rows (m,) int64."""


def selected_rows(points: PointsByRow, n_landmarks: int, method: str, seed: int, sample_points: int) -> np.ndarray:
    """Return the rows of the landmarks, (n_landmarks,) int64, ascending, no two with equal coordinates.

    Parameters
    ----------
    points : N points, of which few are held at a time
    n_landmarks : L, at most N
    method : one of `LANDMARK_METHODS`
    seed : of every draw
    sample_points : points that k-means takes in batches, and among which the methods choose that compare every
        candidate with every landmark

    Raises
    ------
    DataError
        When the points, or their sample, have fewer than `n_landmarks` distinct rows.
    """
    return np.sort(LANDMARK_METHODS[method](points, n_landmarks, seed, sample_points))


def _random(points: PointsByRow, n_landmarks: int, seed: int, sample_points: int) -> np.ndarray:
    return random_landmarks(len(points), n_landmarks, seed, points.__getitem__)


def _spread(points: PointsByRow, n_landmarks: int, seed: int, sample_points: int) -> np.ndarray:
    n_candidates = n_spread_candidates(n_landmarks, len(points))
    while True:
        try:
            candidates = random_landmarks(len(points), n_candidates, seed, points.__getitem__, "spread")
        except DataError:  # repeated points can leave fewer than L + M, which is an error only below L
            if n_candidates == n_landmarks:
                raise
            n_candidates = n_landmarks + (n_candidates - n_landmarks) // 2
            continue
        return candidates[spread_landmarks(points[candidates], n_landmarks, seed)]


def _seeds(points: PointsByRow, n_landmarks: int, seed: int, sample_points: int) -> np.ndarray:
    rows = _sample(points, n_landmarks, seed, sample_points)
    return rows[kmeans_plus_plus(points[rows], n_landmarks, seed)]


def _minmax(points: PointsByRow, n_landmarks: int, seed: int, sample_points: int) -> np.ndarray:
    rows = _sample(points, n_landmarks, seed, sample_points)
    return rows[minmax_landmarks(points[rows], n_landmarks, seed)]


def _kmeans(points: PointsByRow, n_landmarks: int, seed: int, sample_points: int) -> np.ndarray:
    seeds = random_landmarks(len(points), n_landmarks, seed, points.__getitem__)
    sample = points[_sample(points, n_landmarks, seed, sample_points)]
    return _clustered(points, sample, seeds, seed, sample_points)


def _kmeans_plus_plus(points: PointsByRow, n_landmarks: int, seed: int, sample_points: int) -> np.ndarray:
    rows = _sample(points, n_landmarks, seed, sample_points)
    sample = points[rows]
    return _clustered(points, sample, rows[kmeans_plus_plus(sample, n_landmarks, seed)], seed, sample_points)


def _sample(points: PointsByRow, n_landmarks: int, seed: int, sample_points: int) -> np.ndarray:
    return sample_rows(seed, "landmarks/sample", len(points), max(sample_points, n_landmarks))


def _clustered(points: PointsByRow, sample: np.ndarray, seeds: np.ndarray, seed: int, sample_points: int) -> np.ndarray:
    """Return the rows nearest to the centroids of mini-batch k-means over tiles of all points in random order."""
    n_points = len(points)
    state = minibatch_start(sample, points[seeds])
    n_tiles = -(-n_points // TILE_ROWS)
    order = generator(seed, "landmarks/tiles").permutation(n_tiles)
    for tile in order[: max(1, sample_points // TILE_ROWS)]:
        state = minibatch_step(state, points[_tile_rows(int(tile), n_points)])
    snapped = snap_start(len(seeds))
    for tile in range(n_tiles):
        snapped = snap_step(snapped, state, points[_tile_rows(tile, n_points)], tile * TILE_ROWS)
    nearest = snap_rows(snapped)
    # Centroids whose nearest points were all taken, or are repeated, give way to the seeds.
    candidates = np.concatenate([nearest[nearest >= 0], seeds])
    candidates = candidates[np.sort(np.unique(candidates, return_index=True)[1])]
    return candidates[first_of_equal_rows(points[candidates])[: len(seeds)]]


def _tile_rows(tile: int, n_points: int) -> np.ndarray:
    return np.arange(tile * TILE_ROWS, min((tile + 1) * TILE_ROWS, n_points))


LANDMARK_METHODS: dict[str, Callable[[PointsByRow, int, int, int], np.ndarray]] = {
    "random": _random,
    "spread": _spread,
    "kmeans": _kmeans,
    "kmeans++": _kmeans_plus_plus,
    "kmeans++ seeding": _seeds,
    "minmax": _minmax,
}
