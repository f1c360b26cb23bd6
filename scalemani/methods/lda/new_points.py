"""New points along the discriminants: projected as training points are."""

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np

from scalemani.engine.work import Arrays
from scalemani.kernels.rows.compressed import Points, dense_tiles
from scalemani.methods.lda.discriminants import StoredDiscriminants
from scalemani.runs.new_points.placements import Placer
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import StoredPlacement


@dataclass(frozen=True)
class AxesPlacer(Placer):
    """All that placing a point takes: the mean (D,) of the points and the directions (D, d)."""

    mean: np.ndarray
    axes: np.ndarray

    @classmethod
    def read(cls, run: Run, in_memory: bool) -> Self:
        """Return the mean and the directions of a finished run; they are always read whole."""
        stored = run.stored(StoredDiscriminants)
        return cls(stored.mean.read(), stored.axes.read())

    def place(self, points: Points) -> Arrays:
        """Return points (n, D) placed: each row depends on its own point only."""
        # Row by row: the bits of a product of matrices depend on the number of rows.
        placed = np.empty((points.shape[0], self.axes.shape[1]))
        for row, point in enumerate(itertools.chain.from_iterable(dense_tiles(points))):
            placed[row] = (point - self.mean) @ self.axes
        return {StoredPlacement.coordinates: placed}


def placer_of(run: Run) -> type[AxesPlacer] | None:
    """Return what places new points of a run with discriminants."""
    return AxesPlacer if StoredDiscriminants.STAGE in run.keys else None
