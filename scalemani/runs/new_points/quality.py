"""What is known of new points once they are placed: which lie far from what is known, and how well each was placed."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from scalemani.engine.work import Arrays
from scalemani.errors import ScalemaniWarning, ShortfallWarning
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.landmarks.quality import USUAL, WIDE
from scalemani.kernels.rows.compressed import Points, squared_lengths
from scalemani.runs.opened import Run
from scalemani.stages.arrays.embeddings import BEYOND_REACH, StoredPlacement
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
        """Return which of points (n, D) are more than `FAR` radii from the center: (n,) bool."""
        if sp.issparse(points):
            # Far from the centre little cancels.
            squares = squared_lengths(points.indptr, points.data) - 2.0 * (points @ self.center)
            return squares + self.center @ self.center > (FAR * self.radius) ** 2
        beyond = np.empty(len(points), np.bool_)
        with np.errstate(over="ignore"):  # what overflows is far away
            for part in slices(len(points), ROWS_AT_ONCE):
                differences = np.subtract(points[part], self.center, dtype=np.float64)
                beyond[part] = np.linalg.norm(differences, axis=1) > FAR * self.radius
        return beyond


def reach_of(run: Run) -> Reach:
    """Return how far nearly all points of a run reach."""
    found = run.stored(StoredLandmarks).read_coverage()
    return Reach(found.center, found.radius)


BEYOND = (
    f"times as far out as {USUAL:.0%} of the training points, first rows {{}}: the embedding knows nothing out "
    "there, so their positions mean little"
)
LOST = "new points have no coordinates, first rows {}: they lie so far out that no affinity reaches them"
ALONE = (
    f"times as far from what the embedding knows, landmarks or neighbours, as {USUAL:.0%} of the training points, "
    "first rows {}: their positions mean little; embed them with the others, or raise landmarks.n_landmarks where "
    "landmarks place new points"
)


@dataclass
class Account:
    """Adds up what is known of the new points that were placed.

    `spacing` is that of the placement, `remark` what is to be said of the source of the points. `totals` are sums over
    all points; `far` are the rows beyond reach that are not next to a known point either, `alone` the other ones that
    are isolated, `lost` those beyond reach without coordinates.
    """

    spacing: float
    remark: str = ""
    totals: Counter[str] = field(default_factory=Counter)
    fall: float = 0.0
    far: list[np.ndarray] = field(default_factory=list)
    alone: list[np.ndarray] = field(default_factory=list)
    lost: list[np.ndarray] = field(default_factory=list)
    errors: list[np.ndarray] = field(default_factory=list)

    def add(self, start: int, placed: Arrays) -> None:
        """Take note of placed points, the rows from `start` on; those without coordinates are told of apart."""
        there = ~np.isnan(placed[StoredPlacement.coordinates][:, 0])
        far, isolated = placed[StoredPlacement.far] & BEYOND_REACH != 0, np.zeros(len(there), np.bool_)
        if StoredPlacement.nearest in placed:
            nearest = placed[StoredPlacement.nearest]
            far, isolated = far & (nearest > self.spacing), there & (nearest > WIDE * self.spacing)
        self.far.append(start + np.flatnonzero(far & there))
        self.alone.append(start + np.flatnonzero(isolated & ~far))
        self.lost.append(start + np.flatnonzero(far & ~there))
        self.totals.update(points=int(there.sum()), isolated=int(isolated.sum()))
        if StoredPlacement.errors in placed:
            self.errors.append(placed[StoredPlacement.errors][there])
        if StoredPlacement.falls in placed:
            descended = placed[StoredPlacement.descended] != 0
            arrived, falls = placed[StoredPlacement.arrived][descended], placed[StoredPlacement.falls][descended]
            self.totals.update(descended=len(falls), arrived=int(arrived.sum()))
            self.fall += float(falls.sum())

    @property
    def certificates(self) -> dict[str, float]:
        """How well the points were placed.

        The shares of points beyond reach, and isolated; quantiles of the relative errors of those that landmarks
        place; the share of those that descended which arrived, and how far their objectives fell. Nothing of no points.
        """
        totals, n_points = self.totals, self.totals["points"]
        if n_points == 0:
            return {}
        found = {"far": sum(map(len, self.far)) / n_points}
        if np.isfinite(self.spacing):
            found["isolated"] = totals["isolated"] / n_points
        if self.errors:
            quantiles = np.quantile(np.concatenate(self.errors), list(ERROR_QUANTILES.values()))
            found |= zip(ERROR_QUANTILES, quantiles.tolist(), strict=True)
        if descended := totals["descended"]:
            found |= {"arrived": totals["arrived"] / descended, "mean_fall": self.fall / descended}
        return found

    @property
    def warnings(self) -> list[tuple[str, type[ScalemaniWarning]]]:
        """What whoever uses the coordinates should know."""
        found: list[tuple[str, type[ScalemaniWarning]]] = [(self.remark, ScalemaniWarning)] if self.remark else []
        n_points, moving = self.totals["points"], self.totals["descended"] - self.totals["arrived"]
        lying = "of {} new points lie more than {:g}"
        far, alone = (lying.format(n_points, times) for times in (FAR, WIDE))
        for parts, said in ((self.far, f"{far} {BEYOND}"), (self.alone, f"{alone} {ALONE}"), (self.lost, LOST)):
            if count := sum(map(len, parts)):
                listed = said.format(", ".join(map(str, np.sort(np.concatenate(parts))[:SHOWN_ROWS])))
                found.append((f"{count} {listed}", ScalemaniWarning))
        if moving:
            message = (
                f"{moving} of {n_points} new points were still moving when their descent ended: their positions "
                "are nearer to a minimum than their start, not at one"
            )
            found.append((message, ShortfallWarning))
        return found
