"""What is known of new points once they are placed: which lie far from what is known, and how well each was placed."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from scipy.special import bdtrc

from scalemani.engine.context import Arrays
from scalemani.errors import ScalemaniWarning, ShortfallWarning
from scalemani.kernels.neighbors.isolation import USUAL, WIDE
from scalemani.stages.arrays.embeddings import StoredPlacement

EXPECTED = 1.5 * (1.0 - USUAL)  # share of isolated points at most, of new ones that are like the training points
CHANCE = 1e-3  # below which more of them are no coincidence
SHOWN_ROWS = 5
ERROR_QUANTILES = {"median_error": 0.5, "p95_error": 0.95, "largest_error": 1.0}


OFF_THE_DATA = (
    f"of {{}} new points lie more than {WIDE:g} times as far from the nearest landmarks or neighbours as {USUAL:.0%} "
    "of the training points, by the spacing of these there, first rows {}: the embedding knows nothing of where they "
    "are, so their positions mean little; embed them with the others, or raise landmarks.n_landmarks where landmarks "
    "place new points"
)
IN_GAPS = (
    f"of {{}} new points lie farther from the nearest landmarks or neighbours than {USUAL:.0%} of the training points, "
    "by the spacing of these there, first rows {}: more than chance explains, so that the new points have another "
    "distribution than the training points; embed them with the others"
)
LOST = "new points have no coordinates, first rows {1}: they lie so far out that no affinity reaches them"


@dataclass
class Account:
    """Adds up what is known of the new points that were placed.

    `remark` is what is to be said of the source of the points. `totals` are sums over all points; `far` are the rows
    that lie off the data, `alone` the other ones that are isolated, `lost` those off the data without coordinates.
    """

    remark: str = ""
    totals: Counter[str] = field(default_factory=Counter)
    fall: float = 0.0
    far: list[np.ndarray] = field(default_factory=list)
    alone: list[np.ndarray] = field(default_factory=list)
    lost: list[np.ndarray] = field(default_factory=list)
    errors: list[np.ndarray] = field(default_factory=list)

    def add(self, start: int, placed: Arrays) -> None:
        """Count placed points, the rows from `start` on; those without coordinates are counted apart."""
        there = ~np.isnan(placed[StoredPlacement.coordinates][:, 0])
        isolation = placed[StoredPlacement.isolation]
        far, isolated = isolation > WIDE, isolation > 1.0
        self.far.append(start + np.flatnonzero(far & there))
        self.alone.append(start + np.flatnonzero(isolated & ~far & there))
        self.lost.append(start + np.flatnonzero(far & ~there))
        self.totals.update(points=int(there.sum()))
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

        The shares of points off the data, and isolated, these among them; quantiles of the relative errors of those
        that landmarks place; the share of those that descended which arrived, and how far their objectives fell.
        Nothing of no points.
        """
        totals, n_points = self.totals, self.totals["points"]
        if n_points == 0:
            return {}
        n_far, n_alone = count(self.far), count(self.alone)
        shares = {"far": n_far / n_points, "isolated": (n_far + n_alone) / n_points}
        if self.errors:
            quantiles = np.quantile(np.concatenate(self.errors), list(ERROR_QUANTILES.values()))
            shares |= zip(ERROR_QUANTILES, quantiles.tolist(), strict=True)
        if descended := totals["descended"]:
            shares |= {"arrived": totals["arrived"] / descended, "mean_fall": self.fall / descended}
        return shares

    @property
    def warnings(self) -> list[tuple[str, type[ScalemaniWarning]]]:
        """What users of the coordinates should know."""
        warnings: list[tuple[str, type[ScalemaniWarning]]] = [(self.remark, ScalemaniWarning)] if self.remark else []
        n_points, moving = self.totals["points"], self.totals["descended"] - self.totals["arrived"]
        for parts, said in ((self.far, OFF_THE_DATA), (self.alone, IN_GAPS), (self.lost, LOST)):
            n_rows = count(parts)
            if n_rows == 0 or (parts is self.alone and bdtrc(n_rows - 1, n_points, EXPECTED) > CHANCE):
                continue
            rows = ", ".join(map(str, np.sort(np.concatenate(parts))[:SHOWN_ROWS]))
            warnings.append((f"{n_rows} {said.format(n_points, rows)}", ScalemaniWarning))
        if moving:
            message = (
                f"{moving} of {n_points} new points were still moving when their descent ended: their positions "
                "are nearer to a minimum than their start, not at one"
            )
            warnings.append((message, ShortfallWarning))
        return warnings


def count(parts: list[np.ndarray]) -> int:
    """Return how many rows there are in parts."""
    return sum(map(len, parts))
