"""Points as a metric takes them: a source whose rows are mapped as they are read, and refused where it cannot be."""

import numpy as np
import scipy.sparse as sp
from dask.utils import format_bytes

from scalemani.config.validation import N_REPORTED_ROWS, check_finite_block
from scalemani.errors import DataError
from scalemani.io.sources.base import PointsSource, nonzeros_of, read_rows
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS, keeps_zeros, map_rows, mapped_dtype


class MetricPoints:
    """Points (N, D) of another source in the geometry of a metric, in which distances are Euclidean."""

    def __init__(self, points: PointsSource, metric: str) -> None:
        self.points, self.metric = points, metric
        self.shape = points.shape
        self.dtype = mapped_dtype(points.dtype)
        self.description = points.description
        self.preferred_rows = points.preferred_rows
        self.sequential = points.sequential
        self.remote = points.remote
        self.remark, self.held_bytes = getattr(points, "remark", ""), getattr(points, "held_bytes", 0)
        if nonzeros_of(points) is not None and not keeps_zeros(metric):
            size = format_bytes(points.shape[0] * points.shape[1] * self.dtype.itemsize)
            kept = ", ".join(name for name in METRICS if METRICS[name].nonzeros is not None)
            self.remark = (
                f"metric {metric} leaves no zeros in {points.description}, which becomes dense: {size}; {kept} "
                "keep it sparse"
            )

    @property
    def nonzeros(self) -> int | None:
        """As of the points that are mapped; None where the metric leaves no zeros."""
        return nonzeros_of(self.points) if keeps_zeros(self.metric) else None

    def with_points(self, points: PointsSource) -> "MetricPoints":
        """Return the same of the rows of another source of as many points."""
        return MetricPoints(points, self.metric)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), mapped.

        Raises
        ------
        DataError
            For values that are not finite, and for rows that the metric cannot take.
        """
        return self._mapped(self.points.read(start, stop), start)

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop), mapped, as `read` does; of a metric that keeps zeros."""
        return self._mapped(read_rows(self.points, start, stop, sparse=True), start)

    def _mapped(self, rows: Points, start: int) -> Points:
        check_finite_block(rows, start)
        check_rows(rows, self.metric, start)
        return map_rows(rows, self.metric)


def check_rows(rows: Points, metric: str, first_row: int = 0) -> None:
    """Refuse rows (n, D) that a metric cannot take; `first_row` is the number of the first one in the whole input."""
    if rows.shape[0] == 0:
        return
    for refusal in METRICS[metric].refusals:
        found = np.flatnonzero(refusal.concerns(rows))
        if len(found):
            listed = ", ".join(str(first_row + row) for row in found[:N_REPORTED_ROWS])
            raise DataError(
                f"{len(found)} of rows [{first_row}, {first_row + rows.shape[0]}) of points {refusal.why}: first rows "
                f"{listed}. metric={metric!r} cannot take them: remove these rows, or use another metric"
            )
