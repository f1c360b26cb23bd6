"""Gaussian affinities with a given bandwidth, and with each point's own from the distance to a neighbour."""

import math

import numpy as np

from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.vector_exp import exp_nonpositive

# Every edge keeps a weight: an isolated vertex would have no degree. The least normal float32 survives storage as
# float32 and is nothing beside any weight that is not itself underflown.
LEAST_WEIGHT = float(np.finfo(np.float32).tiny)


def gaussian_affinities(squared_distances: np.ndarray, sigma: float) -> np.ndarray:
    """Return w = exp(-d^2 / (2 sigma^2)), not normalised: (n, k) float64, none below 1.2e-38.

    `squared_distances` (n, k) float64 or float32, finite and not negative; `sigma` > 0, in units of distance.
    Spectral methods take these weights as they are, symmetric when the graph is (thesis section 4.8, sigma = 200 for
    raw digits); divide by the row sums for a random walk. Where d is many sigma all weights of a row sit at the floor:
    the row is joined to its neighbours weakly and evenly instead of not at all.
    """
    if not (math.isfinite(sigma) and sigma > 0.0):
        raise ValueError(f"sigma must be a finite number > 0, got {sigma}")
    weights = np.empty(squared_distances.shape)
    fill_weights(np.ascontiguousarray(squared_distances), np.full(squared_distances.shape[0], float(sigma)), weights)
    return weights


def self_tuning_affinities(
    squared_distances: np.ndarray, kth: int = 7, neighbor_bandwidths: np.ndarray | None = None
) -> np.ndarray:
    """Return Gaussian weights with each row's bandwidth sigma_n the distance to its `kth` neighbour (1-based).

    (n, k) float64, not normalised, none below 1.2e-38. Without `neighbor_bandwidths`: exp(-d^2 / (2 sigma_n^2)), the
    rule of thumb of thesis section 2.1, which needs nothing but the row. With the bandwidths of the neighbours, (n, k),
    positive: exp(-d^2 / (sigma_n sigma_m)), the symmetric form of Zelnik-Manor and Perona (2004).
    `squared_distances` (n, k) ascending. Default 7 as in both sources.
    """
    n_neighbors = squared_distances.shape[1]
    if not 1 <= kth <= n_neighbors:
        raise ValueError(f"kth must be in [1, k={n_neighbors}], got {kth}")
    weights = np.empty(squared_distances.shape)
    bandwidths = self_tuning_bandwidths(squared_distances, kth)
    if neighbor_bandwidths is None:
        fill_weights(np.ascontiguousarray(squared_distances), bandwidths, weights)
    else:
        fill_pair_weights(np.ascontiguousarray(squared_distances), bandwidths, neighbor_bandwidths, weights)
    return weights


def self_tuning_bandwidths(squared_distances: np.ndarray, kth: int = 7) -> np.ndarray:
    """Return each row's distance to its `kth` neighbour, or to the first beyond it that is not zero: (n,) float64.

    A row whose neighbours are all duplicates gets 1: its weights are 1 at any bandwidth.
    """
    beyond = squared_distances[:, kth - 1 :]
    first_positive = np.argmax(beyond > 0.0, axis=1)
    bandwidths = np.sqrt(beyond[np.arange(beyond.shape[0]), first_positive].astype(np.float64))
    bandwidths[bandwidths == 0.0] = 1.0
    return bandwidths


@compiled
def fill_weights(squared_distances: np.ndarray, bandwidths: np.ndarray, weights: np.ndarray) -> None:
    """Fill `weights` with exp(-d^2 / (2 sigma_n^2))."""
    for i in range(weights.shape[0]):
        bandwidth = bandwidths[i]
        for m in range(weights.shape[1]):
            # divided twice: the square of the bandwidth under- or overflows long before the ratio does
            x = 0.5 * ((np.float64(squared_distances[i, m]) / bandwidth) / bandwidth)
            weights[i, m] = max(exp_nonpositive(-x), LEAST_WEIGHT)


@compiled
def fill_pair_weights(
    squared_distances: np.ndarray, bandwidths: np.ndarray, neighbor_bandwidths: np.ndarray, weights: np.ndarray
) -> None:
    """Fill `weights` with exp(-d^2 / (sigma_n sigma_m))."""
    for i in range(weights.shape[0]):
        bandwidth = bandwidths[i]
        for m in range(weights.shape[1]):
            x = (np.float64(squared_distances[i, m]) / bandwidth) / neighbor_bandwidths[i, m]
            weights[i, m] = max(exp_nonpositive(-x), LEAST_WEIGHT)
