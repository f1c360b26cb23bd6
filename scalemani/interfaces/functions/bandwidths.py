"""Gaussian weights of a neighbour graph in memory: `gaussian_affinities` and `self_tuning_affinities`."""

import math
from numbers import Real
from typing import Any

import numpy as np

from scalemani.config.validation import check_count, check_seed
from scalemani.errors import ConfigError
from scalemani.interfaces.functions.affinities import power_of_two_scale
from scalemani.interfaces.functions.affinity_inputs import checked_distances
from scalemani.kernels.affinities import bandwidths

SMALLEST = float(np.finfo(np.float64).tiny)


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
        return bandwidths.gaussian_affinities(_squares(table, scale), max(_checked_sigma(sigma) * scale, SMALLEST))
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
    if isinstance(sigma, bool | np.bool_) or not isinstance(sigma, Real) or not 0 < float(sigma) < math.inf:
        raise ConfigError(f"sigma must be a finite number above zero, got {sigma!r}: None chooses it by the distances")
    return float(sigma)
