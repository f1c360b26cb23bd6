"""Z, the points as combinations of landmarks, as stages read it."""

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from scalemani.engine.work import StageTask
from scalemani.stages.arrays.landmarks import (
    StoredAffinityWeights,
    StoredLandmarkWeights,
    sparse_weights,
)
from scalemani.store.groups import StageGroup


def stored_landmark_weights(inputs: Mapping[str, StageGroup]) -> StoredLandmarkWeights | StoredAffinityWeights:
    """Return the Z that a stage works on, from its inputs."""
    if StoredAffinityWeights.STAGE in inputs:
        return StoredAffinityWeights(inputs[StoredAffinityWeights.STAGE])
    return StoredLandmarkWeights(inputs[StoredLandmarkWeights.STAGE])


def weights_at(task: StageTask, rows: np.ndarray) -> sp.csr_matrix:
    """Return rows (m, L) of Z at work rows (m,), from what a process shares of it."""
    stored, n_landmarks = stored_landmark_weights(task.inputs), task.params.n_landmarks
    if isinstance(stored, StoredAffinityWeights):
        return sp.csr_matrix(stored.shared_matrix(n_landmarks)[rows])
    indices, values = task.read_table(stored.indices)[rows], task.read_table(stored.values)[rows]
    return sparse_weights(indices, values, n_landmarks)
