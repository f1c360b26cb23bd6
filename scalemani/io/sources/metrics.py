"""Points as a metric takes them: a source whose rows are mapped as they are read, and refused where it cannot be."""

import numpy as np
import scipy.sparse as sp
from dask.utils import format_bytes

from scalemani.config.validation import N_REPORTED_ROWS, check_finite_block
from scalemani.errors import DataError
from scalemani.io.sources.base import PointsSource, WrappedPoints, nonzeros_of
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.metrics import METRICS, keeps_zeros, map_rows, mapped_dtype


class MetricPoints(WrappedPoints):
    """Points (N, D) of another source in the geometry of a metric, in which distances are Euclidean."""

    def __init__(self, points: PointsSource, metric: str) -> None:
        super().__init__(points)
        self.metric, self.dtype = metric, mapped_dtype(points.dtype)
        if nonzeros_of(points) is not None and not keeps_zeros(metric):
            size = format_bytes(points.shape[0] * points.shape[1] * self.dtype.itemsize)
            kept = ", ".join(name for name in METRICS if METRICS[name].nonzeros is not None)
            self.remark = (
                f"metric {metric} leaves no zeros in {points.description}, which becomes dense: {size}; {kept} "
                "keep it sparse"
            )

    @property
    def nonzeros(self) -> int | None:
        """The number of nonzeros; None where the metric leaves no zeros."""
        return nonzeros_of(self.points) if keeps_zeros(self.metric) else None

    def with_points(self, points: PointsSource) -> "MetricPoints":
        """Return another source of the same rows in this metric."""
        return MetricPoints(points, self.metric)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), mapped; DataError for rows that are not finite or that the metric cannot take."""
        return self._mapped(super().read(start, stop), start)

    def read_sparse(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) as `read` does, of a metric that keeps zeros."""
        return self._mapped(super().read_sparse(start, stop), start)

    def _mapped(self, rows: Points, start: int) -> Points:
        check_finite_block(rows, start)
        check_rows(rows, self.metric, start)
        return map_rows(rows, self.metric)


def check_rows(rows: Points, metric: str, first_row: int = 0) -> None:
    """Refuse rows (n, D) that a metric cannot take; `first_row` is the number of the first one in the whole input."""
    if rows.shape[0] == 0:
        return
    for refusal in METRICS[metric].refusals:
        refused = np.flatnonzero(refusal.concerns(rows))
        if len(refused):
            listed = ", ".join(str(first_row + row) for row in refused[:N_REPORTED_ROWS])
            raise DataError(
                f"{len(refused)} of rows [{first_row}, {first_row + rows.shape[0]}) of points {refusal.why}: "
                f"first rows {listed}. metric={metric!r} cannot take them: remove these rows, or use another metric"
            )
