"""Points of weights 1 to 9 beside the set in which each is repeated: affinities, spectral embedding, t-SNE's objective.

Affinities of the repeated set are found by bisection of its rows, in which a neighbour stands as often as it is
repeated: no code is shared with the affinities of weights.

    python weights.py --points 5000
"""

import argparse

import numpy as np
import scipy.sparse as sp

import scalemani as sm
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps

NEIGHBORS, PERPLEXITY, MOST_COPIES = 60, 30.0, 9
HALVINGS = 80  # of an interval of 80: log beta to the last bit


def repeated_rows(distances: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the affinities (N, k) of a copy of each point to one of each neighbour, and (N,) to another of its own.

    Each row is that of the repeated set: the other copies of the point at distance zero, then all of each neighbour.
    """
    n_points = len(distances)
    twins = np.arange(MOST_COPIES - 1) < (weights - 1)[:, np.newaxis]
    copies = np.arange(MOST_COPIES) < weights[indices][:, :, np.newaxis]
    there = np.hstack([twins, copies.reshape(n_points, -1)])
    squares = np.hstack([np.zeros(twins.shape), np.repeat(distances**2, MOST_COPIES, axis=1)])
    low, high = np.full(n_points, -40.0), np.full(n_points, 40.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        shares = shares_of(squares, there, middle)
        entropies = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
        above = entropies > np.log(PERPLEXITY)
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    shares = shares_of(squares, there, (low + high) / 2)
    return shares[:, MOST_COPIES - 1 :: MOST_COPIES], shares[:, 0]


def shares_of(squares: np.ndarray, there: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return the affinities of rows at log beta `alpha` (N,), zero where no copy is."""
    least = np.where(there, squares, np.inf).min(axis=1, keepdims=True)
    kernels = np.where(there, np.exp(-np.exp(alpha)[:, np.newaxis] * np.maximum(squares - least, 0.0)), 0.0)
    return np.asarray(kernels / kernels.sum(axis=1, keepdims=True))


def repeated_matrix(indices: np.ndarray, values: np.ndarray, twins: np.ndarray, weights: np.ndarray) -> sp.csr_matrix:
    """Return W of the repeated set, a row a copy."""
    n_points, k = indices.shape
    rows = np.repeat(np.arange(n_points), weights)
    between = sp.csr_matrix((values.ravel(), indices.ravel(), np.arange(0, n_points * k + 1, k)), (n_points, n_points))
    with_twins = sp.csr_matrix(between + sp.diags_array(twins))
    of_copies = with_twins[rows][:, rows] - sp.diags_array(twins[rows])
    return sp.csr_matrix(of_copies + of_copies.T) * 0.5


def differences(n_points: int, seed: int) -> dict[str, float]:
    """Return how far the weighted points are from the repeated ones, relative to the largest of these."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_points, 6)) * [8.0, 4.0, 2.0, 1.0, 0.5, 0.5]
    weights = rng.integers(1, MOST_COPIES + 1, n_points)
    rows = np.repeat(np.arange(n_points), weights)
    graph = sm.knn_graph(points, NEIGHBORS, method="exact")
    indices, distances = np.asarray(graph.indices[...]), np.asarray(graph.distances[...])
    found = sm.entropic_affinities(distances, PERPLEXITY, indices=indices, sample_weight=weights, tol=1e-13)
    values, twins = repeated_rows(distances, indices, weights)
    weighted = sm.symmetric_affinities(indices, found.values, sample_weight=weights, twins=found.twins)
    repeated = repeated_matrix(indices, values, np.where(weights > 1, twins, 0.0), weights)

    maps, of_copies = exact_eigenmaps(weighted, 2), exact_eigenmaps(repeated, 2)
    positions = rng.normal(size=(n_points, 2)) * 10
    given = {"method": "t-sne", "repulsion": "exact"}
    value, gradient = sm.objective(positions, weighted, sample_weight=weights, **given)
    expected, of_rows = sm.objective(positions[rows], repeated, **given)
    sums = np.zeros_like(gradient)
    np.add.at(sums, rows, of_rows)
    return {
        "repeated points": len(rows),
        "affinities": float(np.abs(found.values - values).max()),
        "eigenvalues": float(np.abs(maps.eigenvalues - of_copies.eigenvalues).max()),
        "spectral embedding": relative(maps.embedding[rows], of_copies.embedding),
        "objective of t-SNE": abs(value - expected) / abs(expected),
        "gradient of t-SNE": relative(gradient, sums),
    }


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the largest value."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for name, difference in differences(asked.points, asked.seed).items():
        print(f"{name:<20}{difference:.3g}")
