"""Mini-batch k-means for landmarks, out of core: state, start, step; then the data points nearest to the centroids."""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.landmarks.nearest import PreparedLandmarks, nearest_landmarks, prepare_landmarks
from scalemani.kernels.landmarks.sketches import principal_basis
from scalemani.kernels.machine.compile import compiled

SKETCH_DIMENSIONS = 64
SNAP_CANDIDATES = 8  # nearest points kept for each centroid: centroids that share their nearest then still find another
SNAP_ROWS = 8192  # rows of a block held in float32 at a time


class MinibatchState(NamedTuple):
    """All that goes on from one batch to the next; plain arrays, so that a run can stop and resume."""

    centroids: np.ndarray  # (L, D) float64, centred and scaled
    counts: np.ndarray  # (L,) int64, points taken so far
    mean: np.ndarray  # (D,) float64
    scale: float
    basis: np.ndarray  # (D, s) float64, of the sketches that prune distances
    step: int  # batches taken


def minibatch_start(sample: np.ndarray, seeds: np.ndarray) -> MinibatchState:
    """Return the state before the first batch.

    Parameters
    ----------
    sample : (S, D) points that fix the centre, the unit and the directions of the sketches, none of which changes the
        result beyond rounding
    seeds : (L, D) first centroids, as from `random_landmarks` or `kmeans_plus_plus`
    """
    mean, basis = principal_basis(sample, SKETCH_DIMENSIONS)
    spread = float(np.abs(seeds - mean).max())
    scale = spread if spread > 0 else 1.0
    counts = np.zeros(len(seeds), dtype=np.int64)
    return MinibatchState((seeds - mean) / scale, counts, mean, scale, basis, 0)


def minibatch_step(state: MinibatchState, batch: np.ndarray) -> MinibatchState:
    """Return the state after one batch (n, D): each centroid is the mean of all the points it was ever the nearest to.

    Source: Sculley, Web-scale k-means clustering, 2010, algorithm 1, with the batch's points of a centroid taken at
    once, so that their order does not matter. A centroid that no point chooses stays where it is.
    """
    rows = _normalised(state, batch)
    labels = nearest_landmarks(rows, _prepared(state), 1)[0][:, 0]
    sums, counts = state.centroids * state.counts[:, np.newaxis], state.counts.copy()
    _add_rows(rows, labels, sums, counts)
    taken = counts > 0
    centroids = state.centroids.copy()
    centroids[taken] = sums[taken] / counts[taken, np.newaxis]
    return state._replace(centroids=centroids, counts=counts, step=state.step + 1)


class SnapState(NamedTuple):
    """The data points nearest to each centroid so far, ascending by distance, ties by row."""

    rows: np.ndarray  # (L, c) int64, -1 where there are none yet
    squared_distances: np.ndarray  # (L, c) float64, in units of the state's scale; inf where there are none


def snap_start(n_landmarks: int) -> SnapState:
    """Return the state before the first block of points."""
    shape = (n_landmarks, SNAP_CANDIDATES)
    return SnapState(np.full(shape, -1, dtype=np.int64), np.full(shape, np.inf))


def snap_step(snapped: SnapState, state: MinibatchState, block: np.ndarray, first_row: int) -> SnapState:
    """Return the state after points [first_row, first_row + n); blocks may come in any order, each once."""
    centroids = state.centroids.astype(np.float32)
    for start in range(0, len(block), SNAP_ROWS):
        rows = _normalised(state, block[start : start + SNAP_ROWS])
        zero = np.zeros(rows.shape[1])
        prepared = prepare_landmarks(rows, mean=zero, basis=state.basis)
        indices, distances = nearest_landmarks(centroids, prepared, min(SNAP_CANDIDATES, len(rows)))
        found = np.concatenate([snapped.rows, indices + np.int64(first_row + start)], axis=1)
        found_distances = np.concatenate([snapped.squared_distances, distances], axis=1)
        order = np.lexsort((found, found_distances), axis=1)[:, :SNAP_CANDIDATES]
        snapped = SnapState(
            np.take_along_axis(found, order, axis=1), np.take_along_axis(found_distances, order, axis=1)
        )
    return snapped


def snap_rows(snapped: SnapState) -> np.ndarray:
    """Return distinct rows (L,) int64: a centroid's nearest that no closer one has taken, -1 where all are taken."""
    chosen = np.full(len(snapped.rows), -1, dtype=np.int64)
    taken: set[int] = set()
    pairs = np.argsort(snapped.squared_distances, axis=None, kind="stable")
    for centroid, row in zip(pairs // SNAP_CANDIDATES, snapped.rows.ravel()[pairs], strict=True):
        if row >= 0 and chosen[centroid] < 0 and row not in taken:
            chosen[centroid] = row
            taken.add(int(row))
    return chosen


def _normalised(state: MinibatchState, points: np.ndarray) -> np.ndarray:
    return ((points - state.mean) / state.scale).astype(np.float32)


def _prepared(state: MinibatchState) -> PreparedLandmarks:
    return prepare_landmarks(
        state.centroids.astype(np.float32), mean=np.zeros(state.centroids.shape[1]), basis=state.basis
    )


@compiled
def _add_rows(rows: np.ndarray, labels: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        label = labels[i]
        counts[label] += 1
        for j in range(rows.shape[1]):
            sums[label, j] += rows[i, j]
