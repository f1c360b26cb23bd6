"""New points in a finished embedding: of any kind, by blocks, each placed on its own."""

import numpy as np

from scalemani.errors import DataError
from scalemani.new_points.account import Account, Placement
from scalemani.new_points.by_descent import placed_by_descent
from scalemani.new_points.by_landmarks import placed_landmarks
from scalemani.runs.opened import Run
from scalemani.sources import PointsSource
from scalemani.validation import check_finite_block

ROWS_AT_ONCE = 65536


def placement_of(run: Run, in_memory: bool = False) -> Placement:
    """Return what places new points in a run.

    `in_memory` reads all that is needed of its store, which may go then.
    """
    if run.last_stage == "layout":
        return placed_by_descent(run, in_memory)
    return placed_landmarks(run)


def placed_rows(account: Account, points: np.ndarray) -> np.ndarray:
    """Return the coordinates (n, d) of points (n, D), after a look at their columns."""
    expected = account.placement.shape[0]
    if points.shape[1] != expected:
        raise DataError(f"X has {points.shape[1]} features, but the embedding was made of {expected} features")
    return account.place(points, 0)


def placed_source(account: Account, points: PointsSource) -> np.ndarray:
    """Return the coordinates (n, d) of all points of a source, read by blocks."""
    n_points, step = points.shape[0], max(ROWS_AT_ONCE, points.preferred_rows or 0)
    check_features(account.placement, points)
    placed = np.empty((n_points, account.placement.shape[1]))
    for start in range(0, n_points, step):
        rows = points.read(start, min(start + step, n_points))
        check_finite_block(rows, start)
        placed[start : start + step] = account.place(rows, start)
    return placed


def check_features(placement: Placement, points: PointsSource) -> None:
    """Refuse points with other columns than those that were embedded."""
    if points.shape[1] != placement.shape[0]:
        raise DataError(
            f"{points.description} has {points.shape[1]} features, the embedding was made of {placement.shape[0]} "
            "features: give points with the same columns"
        )


class NewPoints:
    """The embedding of new points as a source of rows, computed as they are read; `account` says how well."""

    sequential: bool
    preferred_rows: int | None = ROWS_AT_ONCE

    def __init__(self, run: Run, points: PointsSource) -> None:
        placement = placement_of(run)
        self._points, self.account = points, Account(placement)
        self.shape = (points.shape[0], placement.shape[1])
        self.dtype = np.dtype(np.float64)
        self.sequential = points.sequential
        self.description = f"{points.description} placed in {run.store.root}"
        check_features(placement, points)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the coordinates of rows [start, stop)."""
        rows = self._points.read(start, stop)
        check_finite_block(rows, start)
        return self.account.place(rows, start)
