"""The neighbours of new points among the points of a run, numbered and measured as these came."""

from dataclasses import dataclass

import numpy as np

from scalemani.config.validation import check_finite_block
from scalemani.io.sources import PointsSource
from scalemani.io.sources.base import read_rows
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.kernels.rows.metrics import convert_distances
from scalemani.runs.new_points import check_features
from scalemani.runs.new_points.neighbors import NeighborIndex, neighbor_index
from scalemani.runs.opened import Run
from scalemani.stages.arrays.points import StoredWorkPoints

ROWS_AT_ONCE = 65_536  # of new points


@dataclass(frozen=True)
class InputNeighbors:
    """What finds neighbours in input order.

    `input_rows` (N,) are those of the rows of the index; distances are given in `metric`.
    """

    index: NeighborIndex
    input_rows: np.ndarray
    metric: str

    def find(self, points: PointsSource, n_neighbors: int) -> Neighbors:
        """Return the nearest points (n, k) of the run of new points (n, D), which are mapped for the metric.

        Distances ascend; a point of the run is a neighbour of itself. Raises DataError for points with other columns
        and with values that are not finite.
        """
        check_features(points, len(self.index.basis.mean))
        dtype = np.result_type(points.dtype, self.index.dtype)
        indices = np.empty((points.shape[0], n_neighbors), np.int64)
        distances = np.empty(indices.shape, np.float64 if dtype == np.float64 else np.float32)
        for rows in slices(points.shape[0], ROWS_AT_ONCE):
            given = read_rows(points, rows.start, rows.stop, self.index.sparse)
            check_finite_block(given, rows.start)
            found = self.index.neighbors(given, n_neighbors)
            indices[rows] = self.input_rows[found.indices]
            distances[rows] = convert_distances(self.metric, found.distances)
        return Neighbors(indices, distances)


def read_input_neighbors(run: Run, in_memory: bool) -> InputNeighbors:
    """Return what finds neighbours among the points of a finished run; `in_memory`, so that its store may go."""
    order = StoredWorkPoints(run.group("work_points")).input_rows.read()
    return InputNeighbors(neighbor_index(run, in_memory), order, run.metric)
