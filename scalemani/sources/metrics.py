"""Points as a metric takes them: a source whose rows are mapped as they are read, and refused where it cannot be."""

import numpy as np

from scalemani.errors import ConfigError, DataError
from scalemani.kernels.rows.metrics import EUCLIDEAN, METRICS, PRECOMPUTED, map_rows, mapped_dtype
from scalemani.sources.base import PointsSource
from scalemani.sources.beside import PointsBeside
from scalemani.sources.neighbor_lists import NeighborLists
from scalemani.validation import N_REPORTED_ROWS, check_finite_block


class MetricPoints:
    """Points (N, D) of another source in the geometry of a metric, in which distances are Euclidean."""

    def __init__(self, points: PointsSource, metric: str) -> None:
        self._points, self._metric = points, metric
        self.shape = points.shape
        self.dtype = mapped_dtype(points.dtype)
        self.description = points.description
        self.preferred_rows = points.preferred_rows
        self.sequential = points.sequential
        self.remote = points.remote
        self.remark = getattr(points, "remark", "")

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), mapped.

        Raises
        ------
        DataError
            For values that are not finite, and for rows that the metric cannot take.
        """
        rows = self._points.read(start, stop)
        check_finite_block(rows, start)
        check_rows(rows, self._metric, start)
        return map_rows(rows, self._metric)


def map_points(metric: str, points: PointsSource) -> PointsSource:
    """Return points in the geometry of a metric, a name of `METRICS`; Euclidean ones stay."""
    if isinstance(points, PointsBeside):
        return points.with_rows_of(map_points(metric, points.points))
    if isinstance(points, NeighborLists) != (metric == PRECOMPUTED):
        raise ConfigError(
            "neighbour lists go with metric='precomputed', and points with another metric: this metric is "
            f"{metric!r}, and what was given is {points.description}"
        )
    return points if metric in (EUCLIDEAN, PRECOMPUTED) else MetricPoints(points, metric)


def check_rows(rows: np.ndarray, metric: str, first_row: int = 0) -> None:
    """Refuse rows (n, D) that a metric cannot take; `first_row` is the number of the first one in the whole input."""
    if len(rows) == 0:
        return
    for refusal in METRICS[metric].refusals:
        found = np.flatnonzero(refusal.concerns(rows))
        if len(found):
            listed = ", ".join(str(first_row + row) for row in found[:N_REPORTED_ROWS])
            raise DataError(
                f"{len(found)} of rows [{first_row}, {first_row + len(rows)}) of points {refusal.why}: first rows "
                f"{listed}. metric={metric!r} cannot take them: remove these rows, or use another metric"
            )
