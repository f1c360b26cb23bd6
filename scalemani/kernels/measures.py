"""How good an embedding is: against a reference embedding, against labels, against the neighbours in the data.

Source: ALGORITHMS section 6; [LLL] 4.8.1 for the Procrustes error and 4.8.4 for the clustering error.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree

ROWS_PER_BLOCK = 256  # sampled rows whose distances to all points are held at once


def procrustes_error(embedding: np.ndarray, reference: np.ndarray) -> float:
    """Return |procrustes(X) - R| / |R| after the best translation, rotation, reflection and scale of X.

    Parameters: `embedding` X and `reference` R, (N, d) each; R is centred first, so the error lies in [0, 1].
    Source: Cox and Cox 1994, chapter 5, as used in [LLL] 4.8.1.
    """
    x = np.asarray(embedding, np.float64) - np.mean(embedding, axis=0, dtype=np.float64)
    r = np.asarray(reference, np.float64) - np.mean(reference, axis=0, dtype=np.float64)
    size, total = float(np.sum(x * x)), float(np.sum(r * r))
    if total == 0:
        return 0.0 if size == 0 else 1.0
    nuclear = float(np.sum(np.linalg.svd(x.T @ r, compute_uv=False)))
    explained = nuclear**2 / size if size > 0 else 0.0
    return float(np.sqrt(max(0.0, 1.0 - explained / total)))


def subspace_angle(vectors: np.ndarray, reference: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the largest principal angle, in radians, between the spans of two sets of columns, (N, d) each.

    Parameters: `weights` (N,), positive: angles in the inner product x^T diag(weights) y. Small angles come from
    sines and keep their relative accuracy. Source: Knyazev and Argentati 2002.
    """
    scale = np.ones(len(vectors)) if weights is None else np.sqrt(weights)
    one = np.linalg.qr(np.asarray(vectors, np.float64) * scale[:, None])[0]
    other = np.linalg.qr(np.asarray(reference, np.float64) * scale[:, None])[0]
    sine = np.linalg.norm(other - one @ (one.T @ other), 2)
    return float(np.arcsin(min(1.0, sine)))


def label_accuracy(
    embedding: np.ndarray, labels: np.ndarray, n_neighbors: int = 1, rows: np.ndarray | None = None
) -> float:
    """Return the share of points whose label wins among their `n_neighbors` nearest others in the embedding.

    Parameters: `embedding` (N, d); `labels` (N,) of any type; `rows`, the points to judge (default: all). Ties between
    labels go to the one that comes first in sorted order.
    """
    _, codes = np.unique(labels, return_inverse=True)
    rows = np.arange(len(embedding)) if rows is None else rows
    neighbors = nearest_others(embedding, rows, n_neighbors)
    votes = np.zeros((len(rows), int(codes.max()) + 1), np.int32)
    for column in range(neighbors.shape[1]):
        votes[np.arange(len(rows)), codes[neighbors[:, column]]] += 1
    return float(np.mean(np.argmax(votes, axis=1) == codes[rows]))


def nearest_others(embedding: np.ndarray, rows: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Return the nearest other points of the given rows in the embedding: (len(rows), n_neighbors) int64.

    A point is left out by its row number: duplicates of it are neighbours.
    """
    _, found = cKDTree(embedding).query(embedding[rows], n_neighbors + 1)
    is_self = found == np.asarray(rows)[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    return found[~is_self].reshape(len(rows), n_neighbors)


def neighbor_preservation(embedding: np.ndarray, neighbors: np.ndarray, rows: np.ndarray) -> float:
    """Return the mean share of true neighbours that are among as many nearest others in the embedding.

    Parameters: `embedding` (N, d); `rows` (M,), the sampled points; `neighbors` (M, k), their true nearest neighbours
    in the data, self excluded.
    """
    found = nearest_others(embedding, rows, neighbors.shape[1])
    shared = [len(np.intersect1d(a, b)) for a, b in zip(found, neighbors, strict=True)]
    return float(np.mean(shared) / neighbors.shape[1])


def trustworthiness(points: np.ndarray, embedding: np.ndarray, rows: np.ndarray, n_neighbors: int = 15) -> float:
    """Return the trustworthiness of an embedding at sampled rows, in [0, 1].

    1 - 2 / (M k (2N - 3k - 1)) sum over rows and their k nearest in the embedding of max(0, rank in the data - k)
    [Venna and Kaski 2001]. Parameters: `points` (N, D), `embedding` (N, d), `rows` (M,), `n_neighbors` k < N / 2.
    """
    n_points, k = len(points), n_neighbors
    centre = points.mean(axis=0, dtype=np.float64)
    found = nearest_others(embedding, rows, k)
    excess = 0
    for first in range(0, len(rows), ROWS_PER_BLOCK):
        block = np.asarray(rows[first : first + ROWS_PER_BLOCK])
        distances = _squared_distances(points, centre, block)
        distances[np.arange(len(block)), block] = -1.0
        near = np.take_along_axis(distances, found[first : first + ROWS_PER_BLOCK], axis=1)
        for row, thresholds in enumerate(near):
            ranks = np.searchsorted(np.sort(distances[row]), thresholds)
            excess += int(np.maximum(0, ranks - k).sum())
    return 1.0 - 2.0 * excess / (len(rows) * k * (2 * n_points - 3 * k - 1))


def _squared_distances(points: np.ndarray, centre: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return squared distances (M, N) float64 of rows to all points, in panels so that no float copy of all is made."""
    queries = points[rows] - centre
    distances = np.empty((len(rows), len(points)))
    for first in range(0, len(points), 1 << 14):
        panel = points[first : first + (1 << 14)] - centre
        distances[:, first : first + (1 << 14)] = np.einsum("ij,ij->i", panel, panel) - 2.0 * (queries @ panel.T)
    return distances + np.einsum("ij,ij->i", queries, queries)[:, None]


def clustering_error(labels: np.ndarray, reference: np.ndarray) -> float:
    """Return the share of points in the wrong cluster after the best one-to-one matching of clusters (Hungarian).

    Parameters: `labels`, `reference`, (N,) of any type; the numbers of clusters may differ.
    """
    _, one = np.unique(labels, return_inverse=True)
    _, other = np.unique(reference, return_inverse=True)
    counts = np.zeros((int(one.max()) + 1, int(other.max()) + 1), np.int64)
    np.add.at(counts, (one, other), 1)
    return 1.0 - float(counts[linear_sum_assignment(-counts)].sum()) / len(one)
