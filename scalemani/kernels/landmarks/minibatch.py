"""Mini-batch k-means for landmarks: state, start, step; then the data points nearest to the centroids.

Batches and blocks come from wherever the points are stored, so that none of this holds all points. `landmarks.kmeans`
and `neighbors.cells` say how the three k-means differ.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.landmarks.anchors import NearestRows, nearer_rows, no_rows
from scalemani.kernels.landmarks.nearest import PreparedLandmarks, nearest_landmarks, prepare_landmarks
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.sketches import SketchBasis, pruning_basis

SKETCH_DIMENSIONS = 64
SNAP_CANDIDATES = 8  # nearest points kept for each centroid: centroids that share their nearest then still find another
SNAP_ROWS = 8192  # rows of a block held in float32 at a time


class MinibatchState(NamedTuple):
    """What one batch hands to the next; points are taken less `mean` and divided by `scale`."""

    centroids: np.ndarray  # (L, D) float64, in these coordinates
    counts: np.ndarray  # (L,) int64, points taken so far
    mean: np.ndarray  # (D,) float64
    scale: float
    basis: SketchBasis  # of the sketches that prune distances, in these coordinates
    step: int  # batches taken


def minibatch_start(sample: np.ndarray, seeds: np.ndarray) -> MinibatchState:
    """Return the state before the first batch.

    Parameters
    ----------
    sample : (S, D) real, points that fix the origin, the unit and the directions of the sketches, none of which changes
        the result beyond rounding
    seeds : (L, D) real, first centroids, as from `random_landmarks` or `kmeans_plus_plus`
    """
    basis = pruning_basis(sample, SKETCH_DIMENSIONS)
    mean = basis.mean
    largest = float(np.abs(seeds - mean).max())
    scale = largest if largest > 0 else 1.0
    counts = np.zeros(len(seeds), dtype=np.int64)
    return MinibatchState((seeds - mean) / scale, counts, mean, scale, basis._replace(mean=np.zeros_like(mean)), 0)


def minibatch_step(state: MinibatchState, batch: np.ndarray) -> MinibatchState:
    """Return the state after one batch: each centroid is the mean of all the points it was ever the nearest to.

    The batch's points of a centroid are taken at once, so that their order does not matter. A centroid that is nearest
    to no point stays where it is.

    Parameters
    ----------
    state : before the batch
    batch : (n, D) real

    References
    ----------
    Sculley, Web-scale k-means clustering, 2010, algorithm 1.
    """
    rows = _normalised(state, batch)
    labels = nearest_landmarks(rows, _prepared(state), 1)[0][:, 0]
    sums, counts = state.centroids * state.counts[:, np.newaxis], state.counts.copy()
    _add_rows(rows, labels, sums, counts)
    taken = counts > 0
    centroids = state.centroids.copy()
    centroids[taken] = sums[taken] / counts[taken, np.newaxis]
    return state._replace(centroids=centroids, counts=counts, step=state.step + 1)


def centroids_of(state: MinibatchState) -> np.ndarray:
    """Return the centroids (L, D) float64 as points."""
    return state.centroids * state.scale + state.mean


def snap_start(n_landmarks: int) -> NearestRows:
    """Return the state before the first block of points."""
    return no_rows(n_landmarks, SNAP_CANDIDATES)


def snap_step(snapped: NearestRows, state: MinibatchState, block: np.ndarray, first_row: int) -> NearestRows:
    """Return the state after one block of points; blocks may come in any order, each once.

    Parameters
    ----------
    snapped : before the block; distances are in units of the state's scale
    state : with the final centroids
    block : (n, D) real, points [first_row, first_row + n)
    first_row : row of the first of them
    """
    centroids = state.centroids.astype(np.float32)
    for start in range(0, len(block), SNAP_ROWS):
        rows = _normalised(state, block[start : start + SNAP_ROWS])
        snapped = nearer_rows(snapped, centroids, rows, first_row + start, state.basis)
    return snapped


def snap_rows(snapped: NearestRows) -> np.ndarray:
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
    return prepare_landmarks(state.centroids.astype(np.float32), state.basis)


@compiled
def _add_rows(rows: np.ndarray, labels: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> None:
    for i in range(rows.shape[0]):
        label = labels[i]
        counts[label] += 1
        for j in range(rows.shape[1]):
            sums[label, j] += rows[i, j]
