"""Gaussian affinities with one bandwidth for all points, or one for each point from the distance to a neighbour."""

import numpy as np
import scipy.special

from scalemani.kernels.arrays.draws import sample_rows
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.vector_math import exp_nonpositive


def row_entropies(weights: np.ndarray) -> np.ndarray:
    """Return the entropy (n,) float64, in nats, of rows of weights (n, k), none negative, each divided by its sum.

    Its exponential is the effective number of neighbours: k where all weights are equal, 1 where one holds them all.
    """
    shares = weights.astype(np.float64)
    shares /= shares.sum(axis=1, keepdims=True)
    return scipy.special.entr(shares).sum(axis=1)


# Every edge keeps a weight: an isolated vertex would have no degree. The least normal float32 survives storage as
# float32 and is negligible compared with any weight that has not underflowed.
LEAST_WEIGHT = float(np.finfo(np.float32).tiny)
SAMPLED_POINTS = 10_000  # their median bandwidth is that of all points to a percent or two


def gaussian_affinities(squared_distances: np.ndarray, sigma: float) -> np.ndarray:
    """Return w = exp(-d^2 / (2 sigma^2)), (n, k) float64, not normalised, none below 1.2e-38.

    Spectral methods take these weights as they are, symmetric when the graph is; divide by the row sums for a random
    walk. Where d is many sigma all weights of a row are the least one: the row is joined to its neighbours weakly and
    evenly instead of not at all. Source: [LLL] 4.8.1, with sigma = 200 for raw digits.

    Parameters
    ----------
    squared_distances : (n, k) float64 or float32, finite, not negative
    sigma : above zero, in the unit of the distances
    """
    return weights_at(np.ascontiguousarray(squared_distances), np.full(squared_distances.shape[0], float(sigma)))


def self_tuning_affinities(
    squared_distances: np.ndarray, kth: int = 7, indices: np.ndarray | None = None
) -> np.ndarray:
    """Return w = exp(-d^2 / (2 sigma_n^2)) with each row's bandwidth sigma_n the distance to its `kth` neighbour.

    Arguments are those of `self_tuning_bandwidths`, weights those of `gaussian_affinities`. Sources: [EA] 2.1, a rule
    of thumb that needs nothing but the row. Zelnik-Manor and Perona, Self-tuning spectral clustering, 2004, take the
    bandwidths of both ends of an edge, exp(-d^2 / (sigma_n sigma_m)): with `indices` (n, k), neighbours by row.
    """
    sigmas = self_tuning_bandwidths(squared_distances, kth)
    if indices is None:
        return weights_at(np.ascontiguousarray(squared_distances), sigmas)
    # Each edge by the geometric mean of its ends' bandwidths, as a row of its own.
    pairs = (np.sqrt(sigmas)[:, np.newaxis] * np.sqrt(sigmas)[indices] / np.sqrt(2.0)).ravel()
    return weights_at(squared_distances.reshape(-1, 1), pairs).reshape(squared_distances.shape)


def self_tuning_bandwidths(squared_distances: np.ndarray, kth: int = 7) -> np.ndarray:
    """Return each row's distance (n,) float64 to its `kth` neighbour, or to the first beyond it that is not zero.

    `squared_distances` (n, k) float64 or float32 ascend in each row. A row whose neighbours from the `kth` on are all
    duplicates gets 1: its weights are 1 at any bandwidth.
    """
    beyond = squared_distances[:, kth - 1 :]
    first_positive = np.argmax(beyond > 0.0, axis=1)
    bandwidths = np.sqrt(beyond[np.arange(beyond.shape[0]), first_positive].astype(np.float64))
    bandwidths[bandwidths == 0.0] = 1.0
    return bandwidths


def rows_to_choose_by(seed: int, n_points: int) -> np.ndarray:
    """Return the rows (n,) int64, ascending, whose typical bandwidth is the sigma of all points."""
    return sample_rows(seed, "affinities/sigma", n_points, SAMPLED_POINTS)


def typical_bandwidth(squared_distances: np.ndarray, kth: int = 7) -> float:
    """Return the median bandwidth of rows (n, k) of squared distances, ascending; rows of duplicates say nothing.

    1 where all neighbours of all rows are duplicates: their weights are 1 at any bandwidth.
    """
    distinct = squared_distances[squared_distances[:, -1] > 0.0]
    return float(np.median(self_tuning_bandwidths(distinct, kth))) if len(distinct) else 1.0


@compiled
def weights_at(squared_distances: np.ndarray, bandwidths: np.ndarray) -> np.ndarray:
    """Return exp(-d^2 / (2 sigma_n^2)), (n, k) float64, `bandwidths` (n,) being sigma_n."""
    weights = np.empty(squared_distances.shape)
    for i in range(weights.shape[0]):
        bandwidth = bandwidths[i]
        for m in range(weights.shape[1]):
            # divided twice: the square of the bandwidth under- or overflows long before the ratio does
            x = 0.5 * ((np.float64(squared_distances[i, m]) / bandwidth) / bandwidth)
            weights[i, m] = max(exp_nonpositive(-x), LEAST_WEIGHT)
    return weights
