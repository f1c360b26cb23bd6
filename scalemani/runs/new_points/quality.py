"""What is known of new points once they are placed: which lie far from what is known, and how well each was placed."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.errors import ScalemaniWarning, ShortfallWarning
from scalemani.kernels.landmarks.quality import USUAL, WIDE
from scalemani.kernels.rows.compressed import Points, squared_lengths
from scalemani.runs.opened import Run
from scalemani.stages.arrays.landmarks import StoredLandmarks

FAR = 2.0  # times the distance within which nearly all points lie: a sample does not hold the farthest of them
SHOWN_ROWS = 5
ROWS_AT_ONCE = 4096  # differences in float64 are many times as large as points of one byte
ERROR_QUANTILES = {"median_error": 0.5, "p95_error": 0.95, "largest_error": 1.0}


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
    found = run.stored(StoredLandmarks).read_coverage()
    return Reach(found.center, found.radius)


BEYOND = (
    f"times as far out as {USUAL:.0%} of the training points, first rows {{}}: the embedding knows nothing out "
    "there, so their positions mean little"
)
ALONE = (
    f"times as far from what the embedding knows, landmarks or neighbours, as {USUAL:.0%} of the training points, "
    "first rows {}: their positions mean little; embed them with the others, or raise landmarks.n_landmarks where "
    "landmarks place new points"
)


class Placed(NamedTuple):
    """New points' coordinates (n, d), and what is known of each of them (n,).

    `nearest` is the distance of the nearest landmark or training point, where one is looked for; `errors`, of points
    that are placed by landmarks, how far these miss the point, in units of the distance of the nearest one; of points
    that descend, `descended` says whether a point had to, `arrived` whether the step that it would take next is too
    short to matter, and `falls` by how much its objective fell.
    """

    coordinates: np.ndarray
    nearest: np.ndarray | None = None
    errors: np.ndarray | None = None
    descended: np.ndarray | None = None
    arrived: np.ndarray | None = None
    falls: np.ndarray | None = None


@dataclass
class Account:
    """Adds up what is known of the new points that were placed.

    `spacing` is that of the placement, `remark` what is to be said of the source of the points. `far` are the rows
    beyond reach that are not next to a known point either, `alone` the other ones that are isolated.
    """

    spacing: float
    n_points: int = 0
    isolated: int = 0
    descended: int = 0
    arrived: int = 0
    fall: float = 0.0
    far: list[np.ndarray] = field(default_factory=list)
    alone: list[np.ndarray] = field(default_factory=list)
    errors: list[np.ndarray] = field(default_factory=list)
    remark: str = ""

    def add(self, start: int, far: np.ndarray, placed: Placed) -> None:
        """Take note of placed points, the rows from `start` on, of which those in `far` (m,) are beyond reach.

        Rows that have no coordinates, as they have a gap, do not count.
        """
        there = ~np.isnan(placed.coordinates[:, 0])
        self.n_points += int(there.sum())
        if placed.nearest is not None:
            far = far[placed.nearest[far] > self.spacing]
            alone = np.flatnonzero(placed.nearest > WIDE * self.spacing)
            self.isolated += len(alone)
            self.alone.append(start + np.setdiff1d(alone, far))
        self.far.append(start + far)
        if placed.errors is not None:
            self.errors.append(placed.errors[there])
        if placed.descended is not None and placed.arrived is not None and placed.falls is not None:
            descended = placed.descended.astype(np.bool_)
            self.descended += int(descended.sum())
            self.arrived += int(placed.arrived[descended].sum())
            self.fall += float(placed.falls[descended].sum())

    @property
    def certificates(self) -> dict[str, float]:
        """How well the points were placed.

        The shares of points beyond reach, and isolated; quantiles of the relative errors of those that landmarks
        place; the share of those that descended which arrived, and how far their objectives fell. Nothing of no points.
        """
        if self.n_points == 0:
            return {}
        far = sum(map(len, self.far))
        found = {"far": far / self.n_points}
        if np.isfinite(self.spacing):
            found["isolated"] = self.isolated / self.n_points
        if self.errors:
            errors = np.concatenate(self.errors)
            found |= {name: float(np.quantile(errors, share)) for name, share in ERROR_QUANTILES.items()}
        if self.descended:
            found |= {"arrived": self.arrived / self.descended, "mean_fall": self.fall / self.descended}
        return found

    @property
    def warnings(self) -> list[tuple[str, type[ScalemaniWarning]]]:
        """What whoever uses the coordinates should know."""
        found: list[tuple[str, type[ScalemaniWarning]]] = []
        if self.remark:
            found.append((self.remark, ScalemaniWarning))
        for parts, times, said in ((self.far, FAR, BEYOND), (self.alone, WIDE, ALONE)):
            if rows := sorted(row for part in parts for row in part.tolist()):
                listed = said.format(", ".join(map(str, rows[:SHOWN_ROWS])))
                message = f"{len(rows)} of {self.n_points} new points lie more than {times:g} {listed}"
                found.append((message, ScalemaniWarning))
        if self.arrived < self.descended:
            missing = self.descended - self.arrived
            message = (
                f"{missing} of {self.n_points} new points were still moving when their descent ended: their positions "
                "are nearer to a minimum than their start, not at one"
            )
            found.append((message, ShortfallWarning))
        return found
