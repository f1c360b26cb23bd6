"""What stages share whose points are combinations of landmarks: Z, and components of the graph without a landmark."""

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from scalemani.config.params import Resolved
from scalemani.engine.context import StageContext, StageTask
from scalemani.kernels.landmarks.weights import Combining, Limits
from scalemani.stages.arrays.affinities import StoredComponents
from scalemani.stages.arrays.landmarks import (
    StoredAffinityWeights,
    StoredLandmarks,
    StoredLandmarkWeights,
    sparse_weights,
)
from scalemani.stages.arrays.points import StoredWorkPoints
from scalemani.store.groups import StageGroup


def stored_landmark_weights(inputs: Mapping[str, StageGroup]) -> StoredLandmarkWeights | StoredAffinityWeights:
    """Return the Z that a stage works on, from its inputs."""
    if StoredAffinityWeights.STAGE in inputs:
        return StoredAffinityWeights(inputs[StoredAffinityWeights.STAGE])
    return StoredLandmarkWeights(inputs[StoredLandmarkWeights.STAGE])


def combining_of(params: Resolved) -> Combining:
    """Return how Z is made of nearest landmarks, of points and of new ones alike."""
    chosen = params.landmark_weights
    limits = Limits(chosen.tolerance, chosen.radius)
    return Combining(params.landmark_neighbors, chosen.regularization, limits=limits)


def weights_at(task: StageTask, rows: np.ndarray) -> sp.csr_matrix:
    """Return rows (m, L) of Z at work rows (m,), from what a process shares of it."""
    stored, n_landmarks = stored_landmark_weights(task.inputs), task.params.n_landmarks
    if isinstance(stored, StoredAffinityWeights):
        return stored.shared_matrix(n_landmarks)[rows]
    indices, values = task.read_table(stored.indices)[rows], task.read_table(stored.values)[rows]
    return sparse_weights(indices, values, n_landmarks)


def warn_of_unseen_components(context: StageContext) -> None:
    """Warn of components without a landmark, whose points are made of landmarks that no edge leads to."""
    task = context.task
    if StoredComponents.STAGE not in task.inputs:
        return
    stored = task.stored(StoredComponents)
    n_components = stored.group.certificate("components", int)
    if n_components == 1:
        return
    landmarks, input_rows = rows_of_landmarks(task), task.stored(StoredWorkPoints).input_rows
    unseen, seen = np.zeros(n_components, np.int64), np.zeros(n_components, bool)
    for block in range(task.dimensions.n_blocks):
        labels = stored.labels.read_block(block)
        unseen += np.bincount(labels, minlength=n_components)
        seen[labels[np.isin(input_rows.read_block(block), landmarks)]] = True
    unseen[seen] = 0
    if unseen.any():
        context.warn(
            f"{task.stage}: {np.count_nonzero(unseen)} of {n_components} components of the neighbour graph have no "
            f"landmark; their points, {unseen.sum()} of {task.dimensions.n_points}, are combinations of landmarks of "
            "other components, which says little of where they lie: raise landmarks.n_landmarks, give landmarks in "
            "every component, or set components.disconnected=largest to leave the others out"
        )


def rows_of_landmarks(task: StageTask) -> np.ndarray:
    """Return the input rows (L,) of the landmarks, or of the points nearest to those off the data."""
    stored = task.stored(StoredLandmarks)
    rows: np.ndarray = stored.anchor_rows.read()[:, 0] if stored.off_data else stored.rows.read()
    return rows
