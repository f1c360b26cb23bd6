"""New points along the discriminants: projected as training points are, and compared with the landmarks."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from scalemani.engine.context import Arrays
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.landmarks.nearest import PreparedLandmarks, prepare_landmarks
from scalemani.kernels.landmarks.quality import isolation
from scalemani.kernels.rows.compressed import Points, dense_rows
from scalemani.methods.lda.discriminants import StoredDiscriminants
from scalemani.runs.new_points.placements import ROWS_AT_ONCE, Placer
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import StoredPlacement
from scalemani.stages.arrays.landmarks import StoredLandmarks


@dataclass(frozen=True)
class AxesPlacer(Placer):
    """All that placing a point takes: the mean (D,) of the points and the directions (D, d).

    The landmarks, with their `spacings` (L,), say how isolated it is.
    """

    mean: np.ndarray
    axes: np.ndarray
    prepared: PreparedLandmarks
    spacings: np.ndarray

    measured = (StoredPlacement.isolation,)

    @classmethod
    def read(cls, run: Run, in_memory: bool) -> Self:
        """Return the mean and the directions of a finished run; they are always read whole."""
        stored, landmarks = run.stored(StoredDiscriminants), run.stored(StoredLandmarks)
        prepared = prepare_landmarks(landmarks.points.read())
        return cls(stored.mean.read(), stored.axes.read(), prepared, landmarks.read_spacings())

    def place(self, points: Points) -> Arrays:
        """Return points (n, D) placed: each row depends on its point only."""
        # Row by row: the bits of a product of matrices depend on the number of rows.
        placed, isolated = np.empty((points.shape[0], self.axes.shape[1])), np.empty(points.shape[0])
        for part in slices(points.shape[0], ROWS_AT_ONCE):
            rows = dense_rows(points[part])
            isolated[part] = isolation(rows, self.prepared, self.spacings)
            for row, point in enumerate(rows, part.start):
                placed[row] = (point - self.mean) @ self.axes
        return {StoredPlacement.coordinates: placed, StoredPlacement.isolation: isolated}


def placer_of(run: Run) -> type[AxesPlacer] | None:
    """Return what places new points of a run with discriminants."""
    return AxesPlacer if StoredDiscriminants.STAGE in run.keys else None
