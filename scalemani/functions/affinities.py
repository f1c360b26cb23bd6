"""`entropic_affinities` of a neighbour graph in memory, and the checks of its input."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from scalemani.errors import ConfigError, DataError, nearest_name
from scalemani.kernels.affinities import entropic
from scalemani.kernels.affinities.entropy import LARGEST, SMALLEST
from scalemani.kernels.affinities.multiplicities import Multiplicities, copies_of_neighbors, repeated_affinities
from scalemani.kernels.affinities.orders import GRAPH_ORDERS, ORDERS
from scalemani.kernels.affinities.root_finders import SOLVERS
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.sources.weights import check_weights
from scalemani.validation import check_seed, refuse_masked

LEAST_TOLERANCE = 1e-13  # the rounding of an entropy is 1e-15 to 1e-14
SQUARING_SAFE = 1e150  # powers of two keep the distances of a call under this, and its largest over the inverse


@dataclass(frozen=True)
class Affinities:
    """Affinities of n points to their k neighbours.

    values (n, k) float64: p, each row sums to one, columns in the order of the distances.
    beta (n,) float64: 1 / (2 sigma^2); the largest float64 where saturated.
    iterations (n,) int32: steps of the root finder.
    saturated (n,) bool: at least `perplexity` neighbours tie at the smallest distance; uniform over those.
    residuals (n,) float64: entropy minus log perplexity, in nats; within `tol` unless saturated.
    twins (n,) float64, with weights w alone, else None: the affinity of a copy of the point to each of its w - 1 other
    copies. `values` are then those to one copy of each neighbour, and w times them and w - 1 times `twins` sum to one.
    """

    values: np.ndarray
    beta: np.ndarray
    iterations: np.ndarray
    saturated: np.ndarray
    residuals: np.ndarray
    twins: np.ndarray | None = None


def entropic_affinities(  # noqa: PLR0913 - what a run takes of affinities, and a graph in memory
    distances: np.ndarray,
    perplexity: float = 30.0,
    *,
    solver: str = "halley",
    order: str = "density",
    tol: float = 1e-10,
    indices: np.ndarray | None = None,
    random_state: Any = 0,
    sample_weight: Any = None,
) -> Affinities:
    """Return Gaussian affinities of which every row has the perplexity asked for.

    Parameters
    ----------
    distances : (n, k) array-like of real numbers, distances (not squared) to the k >= 2 nearest neighbours, ascending,
        self excluded; squared in float64. Rows may be data points or queries
    perplexity : K, the effective number of neighbours, 1 < K < k. The papers use k = 3 K to 5 K
    solver : "halley", "newton", "euler", "bisection", "brent" or "ridder"; all find the same root
    order : what each point starts from: "density", "bounds", "mst", "path" (these two need `indices`), "raster",
        "random", "oracle". Changes the number of steps, not the result
    tol : largest |entropy - log K| in nats, from 1e-13 to below 1
    indices : (n, k) int, rows of the neighbours, for "mst", "path" and `sample_weight`
    random_state : seed of "random" and "path"; None or a generator to draw one
    sample_weight : (n,) real numbers of at least one, how many equal points each stands for; None: one. Affinities are
        then those of the set in which each point is repeated, whose copies have the others at distance zero. Rows are
        data points, k counts distinct neighbours, and K has to be below the neighbours of every row with all copies

    Returns
    -------
    Affinities

    Raises
    ------
    ConfigError
        For a perplexity, solver, order, tolerance or seed that cannot be used, and an order or weights without their
        `indices`.
    DataError
        For distances that are not a finite, non-negative, ascending (n, k) table, indices of another shape, and
        weights that are not one finite number of at least one a row.

    References
    ----------
    [EA]

    Examples
    --------
    >>> found = entropic_affinities([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]], perplexity=2)
    >>> found.values.sum(axis=1), found.saturated
    (array([1., 1.]), array([False,  True]))
    """
    table = checked_distances(distances)
    check_search(solver, order, tol)
    seed = check_seed(random_state)
    if order in GRAPH_ORDERS:
        indices = checked_indices(indices, table.shape, f"order {order!r} follows the graph", " or order='density'")
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(table))
        indices = checked_indices(indices, table.shape, "sample_weight is that of neighbours too")
        check_range(indices, len(table))
    check_perplexity(perplexity, table.shape[1], least_copies(weights, indices))
    scale = power_of_two_scale(table)
    rows, twins = entropic.empty_rows(*table.shape), np.zeros(len(table))
    for start in range(0, len(table), TILE_ROWS):
        tile = slice(start, min(start + TILE_ROWS, len(table)))
        squares = np.square(table[tile].astype(np.float64) * scale)
        of_data = entropic.RowsOfData(None if indices is None else indices[tile], start, seed)
        search: Any = {"solver": solver, "order": order, "tol": tol, "rows": of_data}
        if weights is None or indices is None:
            part = entropic.entropic_affinities(squares, perplexity, **search)
        else:
            counts = Multiplicities.of_rows(weights, start, indices[tile])
            part, twins[tile] = repeated_affinities(squares, perplexity, counts, **search)
        for whole, values in zip(rows, part, strict=True):
            whole[tile] = values
    if scale != 1.0:
        with np.errstate(over="ignore", under="ignore"):
            beta = np.clip(rows.beta * scale * scale, SMALLEST, LARGEST)
        rows.beta[:] = np.where(rows.saturated, LARGEST, beta)
    return Affinities(*rows, twins=None if weights is None else twins)


def least_copies(weights: np.ndarray | None, indices: np.ndarray | None) -> float | None:
    """Return the fewest neighbours that a row has with all copies; None where nothing is weighted."""
    if weights is None or indices is None:
        return None
    return float(copies_of_neighbors(Multiplicities.of_rows(weights, 0, indices)).min(initial=np.inf))


def power_of_two_scale(distances: np.ndarray) -> float:
    """Return the factor that keeps squares in range: 1 for distances anyone measures, else an exact power of two.

    Parameters
    ----------
    distances : (n, k) float32 or float64, ascending in each row
    """
    largest = float(distances[:, -1].max(initial=0.0))
    if largest == 0.0 or 1.0 / SQUARING_SAFE < largest < SQUARING_SAFE:
        return 1.0
    return math.ldexp(1.0, -max(math.frexp(largest)[1], -1000))


def checked_distances(distances: np.ndarray) -> np.ndarray:
    """Return the distances (n, k) as float32 or float64, or raise a DataError that says what is wrong and where."""
    refuse_masked(distances, "distances")
    table = np.asarray(distances)
    if table.dtype.kind not in "fiu":
        raise DataError(f"distances must be real numbers, got dtype {table.dtype}: give float32 or float64")
    if table.ndim != 2 or table.shape[1] < 2:
        raise DataError(f"distances must be (n_points, k) with k >= 2, got shape {table.shape}")
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
