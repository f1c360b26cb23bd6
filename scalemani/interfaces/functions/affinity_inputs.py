"""Checks of what `entropic_affinities` is given."""

import math
from numbers import Real

import numpy as np

from scalemani.config.validation import refuse_masked
from scalemani.errors import ConfigError, DataError, nearest_name
from scalemani.kernels.affinities.orders import ORDERS
from scalemani.kernels.affinities.root_finders import SOLVERS
from scalemani.kernels.arrays.tiles import TILE_ROWS

LEAST_TOLERANCE = 1e-13  # the rounding of an entropy is 1e-15 to 1e-14


def checked_distances(distances: np.ndarray, least_neighbors: int = 2) -> np.ndarray:
    """Return the distances (n, k) as float32 or float64, or raise a DataError that says what is wrong and where."""
    refuse_masked(distances, "distances")
    table = np.asarray(distances)
    if table.dtype.kind not in "fiu":
        raise DataError(f"distances must be real numbers, got dtype {table.dtype}: give float32 or float64")
    if table.ndim != 2 or table.shape[1] < least_neighbors:
        raise DataError(f"distances must be (n_points, k) with k >= {least_neighbors}, got shape {table.shape}")
    if table.dtype not in (np.float32, np.float64) or not table.dtype.isnative:
        table = table.astype(np.float32 if table.dtype.kind == "f" and table.dtype.itemsize <= 4 else np.float64)
    for start in range(0, table.shape[0], TILE_ROWS):
        rows = table[start : start + TILE_ROWS]
        for name, wrong in (
            ("NaN or infinite", ~np.isfinite(rows).all(axis=1)),
            ("negative", (rows < 0.0).any(axis=1)),
            ("not ascending", (rows[:, 1:] < rows[:, :-1]).any(axis=1)),
        ):
            if wrong.any():
                listed = ", ".join(str(start + row) for row in np.flatnonzero(wrong)[:5])
                raise DataError(
                    f"distances are {name} in row(s) {listed}: each row must hold the finite distances to a point's "
                    "neighbours, nearest first, without the point itself"
                )
    return table


def check_range(indices: np.ndarray, n_points: int) -> None:
    """Raise DataError for neighbours (n, k) that are none of the points."""
    outside = np.argwhere((indices < 0) | (indices >= n_points))
    if len(outside):
        row, column = outside[0]
        raise DataError(
            f"indices must lie in [0, {n_points}), got {indices[row, column]} in row {row}, column {column} "
            f"({len(outside)} in all): rows are those of the points that have the weights"
        )


def checked_indices(indices: np.ndarray | None, shape: tuple[int, ...], why: str, instead: str = "") -> np.ndarray:
    """Return the neighbour indices (n, k) that are needed; `why` says what for, `instead` what else can be done.

    Raises
    ------
    ConfigError
        For none.
    DataError
        For a table that has not the shape of the distances, or no integers.
    """
    if indices is None:
        raise ConfigError(f"{why}: give indices=graph.indices{instead and ','}{instead}")
    table = np.asarray(indices)
    if table.shape != shape or table.dtype.kind not in "iu":
        raise DataError(f"indices must be integers of the distances' shape {shape}, got {table.dtype} {table.shape}")
    return table


def check_perplexity(perplexity: float, n_neighbors: int, copies: float | None = None) -> None:
    """Raise ConfigError for a perplexity that is not a finite number in (1, k).

    `copies` are the neighbours of the row that has fewest, where these stand for several: they take the place of k.
    """
    if isinstance(perplexity, bool | np.bool_) or not isinstance(perplexity, Real):
        raise ConfigError(f"perplexity must be a number, got {type(perplexity).__name__} {perplexity!r}: try 30")
    if not math.isfinite(perplexity):
        raise ConfigError(f"perplexity must be finite, got {perplexity}: try 30")
    if perplexity <= 1.0:
        raise ConfigError(f"perplexity must be > 1, got {perplexity}: it is the effective number of neighbours, try 30")
    if copies is not None and perplexity >= copies:
        raise ConfigError(
            f"perplexity must be below {copies:g}, the neighbours of some row with all copies, got {perplexity}: lower "
            "it or ask the graph for more neighbours"
        )
    if copies is None and perplexity >= n_neighbors:
        raise ConfigError(
            f"perplexity must be < n_neighbors (k={n_neighbors}), got {perplexity}: lower it or ask the graph for "
            "3 to 5 times as many neighbours"
        )


def check_search(solver: str, order: str, tol: float) -> None:
    """Raise ConfigError for an unknown solver or order, or a tolerance that rounding cannot reach."""
    if solver not in SOLVERS:
        raise ConfigError(f"unknown solver {solver!r}: {nearest_name(solver, SOLVERS)}")
    if order not in ORDERS:
        raise ConfigError(f"unknown order {order!r}: {nearest_name(order, ORDERS)}")
    if isinstance(tol, bool) or not isinstance(tol, Real) or not LEAST_TOLERANCE <= tol < 1.0:
        raise ConfigError(f"tol must be a number in [{LEAST_TOLERANCE:g}, 1), got {tol!r}: the default is 1e-10")
