"""Components of the neighbour graph without a landmark: what a stage says whose points are made of landmarks."""

import numpy as np

from scalemani.engine.needs import EACH_PROCESS, Held
from scalemani.engine.sizes import Sizes
from scalemani.engine.work import StageTask, StageWork
from scalemani.stages.arrays.affinities import StoredComponents
from scalemani.stages.arrays.landmarks import StoredLandmarks
from scalemani.stages.arrays.points import StoredWorkPoints


def components_held(sizes: Sizes) -> Held:
    """Return what `tell_of_unseen_components` takes."""
    return Held("component of each point", EACH_PROCESS, sizes.dimensions.n_points, 1, "int32", step="components")


def tell_of_unseen_components(work: StageWork) -> None:
    """Warn of components without a landmark, whose points are made of landmarks that no edge leads to."""
    task = work.task
    if StoredComponents.STAGE not in task.inputs:
        return
    stored = StoredComponents(task.inputs[StoredComponents.STAGE])
    n_components = stored.group.certificate("components", int)
    if n_components == 1:
        return
    labels = stored.labels.read()
    unseen = np.bincount(labels, minlength=n_components)
    unseen[components_of_landmarks(task, labels)] = 0
    if unseen.any():
        work.warn(
            f"{task.stage}: {np.count_nonzero(unseen)} of {n_components} components of the neighbour graph have no "
            f"landmark; their points, {unseen.sum()} of {len(labels)}, are combinations of landmarks of other "
            "components, which says little of where they lie: raise landmarks.n_landmarks, give landmarks in every "
            "component, or set components.disconnected=largest to leave the others out"
        )


def components_of_landmarks(task: StageTask, labels: np.ndarray) -> np.ndarray:
    """Return the components (m,) in which landmarks lie, or the points nearest to those off the data.

    Parameters
    ----------
    labels : (N,) int32, the component of each work row
    """
    stored = StoredLandmarks(task.inputs[StoredLandmarks.STAGE])
    rows = stored.anchor_rows.read()[:, 0] if stored.off_data else stored.rows.read()
    input_rows = StoredWorkPoints(task.inputs[StoredWorkPoints.STAGE]).input_rows
    found = []
    for block in range(task.dimensions.n_blocks):
        start, stop = task.dimensions.rows(block)
        found.append(np.unique(labels[start:stop][np.isin(input_rows.read_block(block), rows)]))
    return np.unique(np.concatenate(found))
