"""New points along the discriminants: projected as training points are."""

import itertools
from typing import NamedTuple

import numpy as np

from scalemani.kernels.rows.compressed import Points, dense_tiles
from scalemani.methods.lda.discriminants import StoredDiscriminants
from scalemani.runs.new_points.quality import Placed, Reach, reach_of
from scalemani.runs.opened import Run

AMONG_NEIGHBORS = False


def places(run: Run) -> bool:
    """Return whether new points of a run are placed here: of all runs with discriminants."""
    return StoredDiscriminants.STAGE in run.keys


class PlacedByAxes(NamedTuple):
    """All that placing a point takes: the mean (D,) of the points and the directions (D, d)."""

    mean: np.ndarray
    axes: np.ndarray
    metric: str
    reach: Reach
    sparse: bool
    spacing: float = np.inf  # no landmark is looked for

    @property
    def shape(self) -> tuple[int, int]:
        """The columns D that points must have, and the dimensions d of the embedding."""
        return self.axes.shape[0], self.axes.shape[1]

    def place(self, points: Points) -> Placed:
        """Return points (n, D) placed: each row depends on its own point only."""
        # Row by row: the bits of a product of matrices depend on the number of rows.
        placed = np.empty((points.shape[0], self.axes.shape[1]))
        for row, point in enumerate(itertools.chain.from_iterable(dense_tiles(points))):
            placed[row] = (point - self.mean) @ self.axes
        return Placed(placed)


def read_placement(run: Run, in_memory: bool) -> PlacedByAxes:
    """Return the mean and the directions of a finished run; they are always read whole."""
    stored = run.stored(StoredDiscriminants)
    return PlacedByAxes(stored.mean.read(), stored.axes.read(), run.metric, reach_of(run), run.dimensions.sparse)
