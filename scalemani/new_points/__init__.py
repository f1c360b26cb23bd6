"""New points in a finished embedding: of any kind, by blocks, each placed on its own."""

import logging
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from scalemani.errors import DataError
from scalemani.new_points.by_descent import placed_by_descent
from scalemani.new_points.by_landmarks import placed_landmarks
from scalemani.new_points.reach import Reach, far_away
from scalemani.runs.opened import Run
from scalemani.sources import PointsSource
from scalemani.validation import check_finite_block

ROWS_AT_ONCE = 65536

logger = logging.getLogger("scalemani")


class Placement(Protocol):
    """A finished embedding that can place points."""

    @property
    def shape(self) -> tuple[int, int]:
        """The columns D that points must have, and the dimensions d of the embedding."""

    @property
    def reach(self) -> Reach:
        """How far out the training points lie."""

    def place(self, points: np.ndarray) -> np.ndarray:
        """Return the coordinates (n, d) of points (n, D): each row depends on its own point only."""


def placement_of(run: Run, in_memory: bool = False) -> Placement:
    """Return what places new points in a run.

    `in_memory` reads all that is needed of its store, which may go then.
    """
    if run.last_stage == "layout":
        return placed_by_descent(run, in_memory)
    return placed_landmarks(run)


def placed_rows(placement: Placement, points: np.ndarray) -> np.ndarray:
    """Return the coordinates (n, d) of points (n, D), after a look at their columns."""
    if points.shape[1] != placement.shape[0]:
        raise DataError(
            f"X has {points.shape[1]} features, but the embedding was made of {placement.shape[0]} features"
        )
    warn_far_away([placement.reach.beyond(points)], len(points))
    return placement.place(points)


def warn_far_away(rows: Sequence[np.ndarray], n_points: int) -> None:
    """Log a warning where new points are beyond reach, by their rows, a part a block."""
    if any(map(len, rows)):
        logger.warning(far_away(np.sort(np.concatenate(rows)), n_points))


def placed_source(placement: Placement, points: PointsSource) -> np.ndarray:
    """Return the coordinates (n, d) of all points of a source, read by blocks."""
    n_points, step = points.shape[0], max(ROWS_AT_ONCE, points.preferred_rows or 0)
    check_features(placement, points)
    placed, far = np.empty((n_points, placement.shape[1])), []
    for start in range(0, n_points, step):
        rows = points.read(start, min(start + step, n_points))
        check_finite_block(rows, start)
        far.append(start + placement.reach.beyond(rows))
        placed[start : start + step] = placement.place(rows)
    warn_far_away(far, n_points)
    return placed


def check_features(placement: Placement, points: PointsSource) -> None:
    """Refuse points with other columns than those that were embedded."""
    if points.shape[1] != placement.shape[0]:
        raise DataError(
            f"{points.description} has {points.shape[1]} features, the embedding was made of {placement.shape[0]} "
            "features: give points with the same columns"
        )


class NewPoints:
    """The embedding of new points as a source of rows, computed as they are read."""

    sequential: bool
    preferred_rows: int | None = ROWS_AT_ONCE

    def __init__(self, run: Run, points: PointsSource) -> None:
        self._placement = placement_of(run)
        self._points = points
        self.shape = (points.shape[0], self._placement.shape[1])
        self.dtype = np.dtype(np.float64)
        self.sequential = points.sequential
        self.description = f"{points.description} placed in {run.store.root}"
        self._far: list[np.ndarray] = []
        check_features(self._placement, points)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the coordinates of rows [start, stop)."""
        rows = self._points.read(start, stop)
        check_finite_block(rows, start)
        self._far.append(start + self._placement.reach.beyond(rows))
        return self._placement.place(rows)

    @property
    def far_rows(self) -> np.ndarray:
        """The rows among those read that lie far from all training points, ascending."""
        return np.sort(np.concatenate(self._far)) if self._far else np.empty(0, np.int64)
