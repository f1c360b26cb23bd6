"""How far out the training points lie, and which new points lie so much farther that their positions mean little."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.landmarks.quality import USUAL, WIDE
from scalemani.kernels.rows.compressed import Points, squared_lengths
from scalemani.runs.opened import Run
from scalemani.stages.arrays.landmarks import StoredLandmarks

FAR = 2.0  # times the distance within which nearly all points lie: a sample does not hold the farthest of them
SHOWN_ROWS = 5
ROWS_AT_ONCE = 4096  # differences in float64 are many times as large as points of one byte


@dataclass(frozen=True)
class Reach:
    """A ball around nearly all training points: their center (D,) and its radius."""

    center: np.ndarray
    radius: float

    def beyond(self, points: Points) -> np.ndarray:
        """Return the rows (m,) of points (n, D) that are more than `FAR` radii from the center."""
        if sp.issparse(points):
            # Far from the centre little cancels.
            squares = squared_lengths(points.indptr, points.data) - 2.0 * (points @ self.center)
            return np.flatnonzero(squares + self.center @ self.center > (FAR * self.radius) ** 2)
        distances = np.empty(len(points))
        with np.errstate(over="ignore"):  # what overflows is far away
            for start in range(0, len(points), ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                distances[part] = np.linalg.norm(np.subtract(points[part], self.center, dtype=np.float64), axis=1)
        return np.flatnonzero(distances > FAR * self.radius)


def reach_of(run: Run) -> Reach:
    """Return how far nearly all points of a run reach."""
    found = StoredLandmarks(run.group("landmarks")).read_coverage()
    return Reach(found.center, found.radius)


def far_away(rows: np.ndarray, n_points: int) -> str:
    """Return what to say of new points beyond reach, by their rows: ascending, at least one."""
    return (
        f"{len(rows)} of {n_points} new points lie more than {FAR:g} times as far out as {USUAL:.0%} of the training "
        f"points, first rows {listed(rows)}: the embedding knows nothing out there, so their positions mean little"
    )


def far_from_all(rows: np.ndarray, n_points: int) -> str:
    """Return what to say of new points within reach that nothing known is near to, by their rows, as above."""
    return (
        f"{len(rows)} of {n_points} new points lie more than {WIDE:g} times as far from what the embedding knows, "
        f"landmarks or neighbours, as {USUAL:.0%} of the training points, first rows {listed(rows)}: their positions "
        "mean little; embed them with the others, or raise landmarks.n_landmarks where landmarks place new points"
    )


def listed(rows: np.ndarray) -> str:
    """Return the first of some rows."""
    return ", ".join(map(str, rows[:SHOWN_ROWS]))
