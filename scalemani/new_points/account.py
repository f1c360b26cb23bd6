"""What is known of new points once they are placed: which lie too far out, and how well those that descend arrived."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from scalemani.errors import ScalemaniWarning, ShortfallWarning
from scalemani.new_points.reach import Reach, far_away


class Placed(NamedTuple):
    """New points' coordinates (n, d); how many descended to them, how many of these arrived, their objectives' fall.

    One has arrived where the step that it would take next is too short to matter. `fall` is the sum over all that
    descended, in the units of their objectives.
    """

    coordinates: np.ndarray
    descended: int = 0
    arrived: int = 0
    fall: float = 0.0


class Placement(Protocol):
    """A finished embedding that can place points."""

    @property
    def shape(self) -> tuple[int, int]:
        """The columns D that points must have, and the dimensions d of the embedding."""

    @property
    def metric(self) -> str:
        """The metric of the training points."""

    @property
    def reach(self) -> Reach:
        """How far out the training points lie."""

    def place(self, points: np.ndarray) -> Placed:
        """Return points (n, D), mapped for the metric, placed: each row depends on its own point only."""


@dataclass
class Account:
    """Adds up what is known of the new points that it places."""

    placement: Placement
    n_points: int = 0
    descended: int = 0
    arrived: int = 0
    fall: float = 0.0
    far: list[np.ndarray] = field(default_factory=list)

    def place(self, rows: np.ndarray, start: int) -> np.ndarray:
        """Return the coordinates (n, d) of points (n, D), the rows from `start` on."""
        placed = self.placement.place(rows)
        self.n_points += len(rows)
        self.descended += placed.descended
        self.arrived += placed.arrived
        self.fall += placed.fall
        self.far.append(start + self.placement.reach.beyond(rows))
        return placed.coordinates

    @property
    def certificates(self) -> dict[str, float]:
        """How well the points arrived: nothing is to be said where none descended."""
        if self.descended == 0:
            return {}
        return {"arrived": self.arrived / self.descended, "mean_fall": self.fall / self.descended}

    @property
    def warnings(self) -> list[tuple[str, type[ScalemaniWarning]]]:
        """What whoever uses the coordinates should know."""
        found: list[tuple[str, type[ScalemaniWarning]]] = []
        far = np.sort(np.concatenate(self.far)) if self.far else np.empty(0, np.int64)
        if len(far):
            found.append((far_away(far, self.n_points), ScalemaniWarning))
        if self.arrived < self.descended:
            missing = self.descended - self.arrived
            message = (
                f"{missing} of {self.n_points} new points were still moving when their descent ended: their positions "
                "are nearer to a minimum than their start, not at one"
            )
            found.append((message, ShortfallWarning))
        return found
