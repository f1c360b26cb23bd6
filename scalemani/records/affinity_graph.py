"""The W that a stage works on: stored by blocks of rows, or made of the pixels of an image as its rows are read."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scalemani.kernels.affinities.window import window_affinities
from scalemani.records.affinities import StoredNormalizedAffinities, StoredSymmetricAffinities
from scalemani.records.points import StoredWorkPoints
from scalemani.store.groups import StageGroup


@dataclass(frozen=True)
class WindowAffinities(StoredSymmetricAffinities):
    """Gaussian affinities of pixels: their degrees are stored, their rows are made anew each time they are read."""

    pixels: StoredWorkPoints

    def read_rows(self, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (indptr, indices, values) of one block's rows of W."""
        start = block * self.group.block_rows
        return self.rows_of(start, start + len(self.read_row_bounds(block)) - 1)

    def rows_of(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (indptr, indices, values) of rows [start, stop) of W."""
        frames, rows, columns = self.reader(self.IMAGE).read_once().tolist()
        side, deep = self.reader(self.REACH).read_once().tolist()
        sigma = float(self.reader(self.SIGMA).read_once())
        points = self.pixels.points.read_once()
        return window_affinities(points, (frames, rows, columns), (side, deep), sigma, (start, stop))


def affinity_graph(inputs: Mapping[str, StageGroup]) -> StoredSymmetricAffinities:
    """Return the W that a stage works on, from its inputs: normalised by density where the method has that stage."""
    if StoredNormalizedAffinities.STAGE in inputs:
        return StoredNormalizedAffinities(inputs[StoredNormalizedAffinities.STAGE])
    group = inputs[StoredSymmetricAffinities.STAGE]
    if group.committed(StoredSymmetricAffinities.WINDOW_UNIT):
        return WindowAffinities(group, StoredWorkPoints(inputs[StoredWorkPoints.STAGE]))
    return StoredSymmetricAffinities(group)
