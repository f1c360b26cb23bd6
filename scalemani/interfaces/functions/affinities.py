"""Affinities of a neighbour graph in memory: entropic, Gaussian and self-tuning."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalemani.config.validation import check_count, check_seed
from scalemani.errors import ConfigError
from scalemani.interfaces.functions.validation import (
    check_perplexity,
    check_range,
    check_search,
    checked_distances,
    checked_indices,
    is_number,
)
from scalemani.io.sources.side_data import check_weights
from scalemani.kernels.affinities import bandwidths, entropic
from scalemani.kernels.affinities.entropic import Multiplicities, copies_of_neighbors, repeated_affinities
from scalemani.kernels.affinities.entropy import LARGEST, SMALLEST
from scalemani.kernels.affinities.orders import GRAPH_ORDERS
from scalemani.kernels.arrays.tiles import TILE_ROWS

LEAST_SIGMA = float(np.finfo(np.float64).tiny)
SQUARING_SAFE = 1e150  # powers of two keep the distances of a call under this, and its largest over the inverse


@dataclass(frozen=True)
class Affinities:
    """Affinities of n points to their k neighbours.

    Attributes
    ----------
    values : (n, k) float64, p; each row sums to one, columns are in the order of the distances
    beta : (n,) float64, 1 / (2 sigma^2); the largest float64 where saturated
    iterations : (n,) int32, steps of the root finder
    saturated : (n,) bool, whether at least `perplexity` neighbours tie at the smallest distance; uniform over those
    residuals : (n,) float64, entropy minus log perplexity, in nats; within `tol` unless saturated
    twins : (n,) float64, with weights w alone, else None: the affinity of a copy of the point to each of its w - 1
        other copies. `values` are then those to one copy of each neighbour, and w times them and w - 1 times `twins`
        sum to one
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
    """Return Gaussian affinities of which every row has the requested perplexity.

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
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, chapter 2.

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
        check_range(indices, len(table), "rows are those of the points that have the weights")
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
    """Return the factor, 1 or a power of two, that keeps squares of ascending distances (n, k) in range."""
    largest = float(distances[:, -1].max(initial=0.0))
    if largest == 0.0 or 1.0 / SQUARING_SAFE < largest < SQUARING_SAFE:
        return 1.0
    return math.ldexp(1.0, -max(math.frexp(largest)[1], -1000))


def gaussian_affinities(
    distances: np.ndarray, sigma: float | None = None, *, neighbor: int = 7, random_state: Any = 0
) -> np.ndarray:
    """Return the weights w = exp(-d^2 / (2 sigma^2)) with one sigma for all points, those of a run with as many points.

    Parameters
    ----------
    distances : (n, k) array-like of real numbers, distances (not squared) to the k nearest neighbours, ascending, self
        excluded; squared in float64
    sigma : above zero, in the unit of the distances. None: the median distance of points to their `neighbor`-th
        neighbour, over 10,000 points where there are more; a point whose neighbours are all duplicates does not count
    neighbor : from 1 to k, read where `sigma` is None
    random_state : seed of the 10,000 points; None or a generator to draw one

    Returns
    -------
    (n, k) float64, not normalised, none below 1.2e-38, so that every edge keeps a weight; a run stores them as float32

    Raises
    ------
    ConfigError
        For a sigma that is not above zero, a neighbour that rows do not have, and a seed that cannot be used.
    DataError
        For distances that are not a finite, non-negative, ascending (n, k) table.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 4.8.1.

    Examples
    --------
    >>> gaussian_affinities([[0.0, 1.0], [1.0, 2.0]], sigma=1.0).round(3)
    array([[1.   , 0.607],
           [0.607, 0.135]])
    >>> gaussian_affinities([[1.0, 2.0], [1.0, 4.0]], neighbor=2).round(3)  # sigma is 3
    array([[0.946, 0.801],
           [0.946, 0.411]])
    """
    table = checked_distances(distances, least_neighbors=1)
    scale = power_of_two_scale(table)
    if sigma is not None:
        return bandwidths.gaussian_affinities(_squares(table, scale), max(_checked_sigma(sigma) * scale, LEAST_SIGMA))
    nth = check_count(neighbor, "neighbor", 1, table.shape[1], "the number of neighbours that a row has")
    sampled = bandwidths.rows_to_choose_by(check_seed(random_state), len(table))
    chosen = bandwidths.typical_bandwidth(_squares(table[sampled], scale), nth)
    return bandwidths.gaussian_affinities(_squares(table, scale), chosen)


def self_tuning_affinities(distances: np.ndarray, neighbor: int = 7) -> np.ndarray:
    """Return the weights w = exp(-d^2 / (2 sigma_n^2)), sigma_n each point's distance to its `neighbor`-th neighbour.

    Parameters
    ----------
    distances : (n, k) array-like of real numbers, as in `gaussian_affinities`
    neighbor : from 1 (the nearest) to k; the first beyond it that is no duplicate where this one is

    Returns
    -------
    (n, k) float64, not normalised, none below 1.2e-38; a run stores them as float32

    Raises
    ------
    ConfigError
        For a neighbour that rows do not have.
    DataError
        For distances that are not a finite, non-negative, ascending (n, k) table.

    References
    ----------
    Vladymyrov, Large-scale methods for nonlinear manifold learning, thesis 2014, section 2.1.
    Zelnik-Manor and Perona, Self-tuning spectral clustering, 2004, who take the bandwidths of both ends of an edge,
    and 7.

    Examples
    --------
    >>> self_tuning_affinities([[1.0, 2.0], [0.0, 4.0]], neighbor=1).round(3)
    array([[0.607, 0.135],
           [1.   , 0.607]])
    """
    table = checked_distances(distances, least_neighbors=1)
    nth = check_count(neighbor, "neighbor", 1, table.shape[1], "the number of neighbours that a row has")
    return bandwidths.self_tuning_affinities(_squares(table, power_of_two_scale(table)), nth)


def _squares(distances: np.ndarray, scale: float) -> np.ndarray:
    return (distances.astype(np.float64) * scale) ** 2


def _checked_sigma(sigma: Any) -> float:
    if not is_number(sigma):
        raise ConfigError(f"sigma must be a finite number above zero, got {sigma!r}: None chooses it by the distances")
    return float(sigma)
