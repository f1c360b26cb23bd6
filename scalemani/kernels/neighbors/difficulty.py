"""How hard the neighbours of points are to find by their leading axes, measured on a sample of the points.

References
----------
Levina and Bickel, Maximum likelihood estimation of intrinsic dimension, 2004; MacKay and Ghahramani on it, 2005.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.exact import about
from scalemani.kernels.neighbors.rerank import found_shares
from scalemani.kernels.rows.sketches import fit_sketch, sketch_points

N_NEAREST = 15
RANKED = 3  # times as many are looked at by sketches, as the search does
N_QUERIES = 512
QUERIES_AT_ONCE = 64
LEAST_KEPT = 0.9  # 0.995 to 1 on digits, patches and clusters, 0.24 to 0.77 on tokens, their sums and noise
MOST_DIMENSIONS = 25.0  # 9 to 14 on patches and digits; cells and rounds take as long as exact search from 25 to 30 on


class Difficulty(NamedTuple):
    """The share of the nearest that sketches rank among three times as many, and the intrinsic dimension."""

    kept: float
    dimension: float

    @property
    def hard(self) -> bool:
        """Whether cells of sketches lose neighbours that later rounds do not find again."""
        return self.kept < LEAST_KEPT or self.dimension > MOST_DIMENSIONS


def measure_difficulty(sample: np.ndarray, n_sketch_dims: int) -> Difficulty:
    """Return how hard it is to find the neighbours within a sample (m, D) real, finite, by so many leading axes."""
    basis = fit_sketch(sample, n_sketch_dims)
    sketches, vectors = sketch_points(sample, basis), about(basis.mean, sample, basis.scale)
    queries = np.arange(0, len(sample), -(-len(sample) // N_QUERIES))
    parts = [queries[part] for part in slices(len(queries), QUERIES_AT_ONCE)]
    found = [nearest_squares(vectors, sketches, part) for part in parts]
    true, by_sketches = (np.concatenate(squares) for squares in zip(*found, strict=True))
    return Difficulty(float(found_shares(by_sketches, true).mean()), intrinsic_dimension(true))


def nearest_squares(vectors: np.ndarray, sketches: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared distances (q, k) of the nearest, ascending, and of the nearest of those that sketches rank.

    Parameters
    ----------
    vectors, sketches : (m, D) and (m, s) float32
    queries : (q,) int, rows of both
    """
    exact = squares_to(vectors, queries)
    count = min(RANKED * N_NEAREST, len(vectors) - 1)
    ranked = np.argpartition(squares_to(sketches, queries), count - 1, axis=1)[:, :count]
    kept = np.take_along_axis(exact, ranked, axis=1)
    k = min(N_NEAREST, count)
    return np.sort(np.partition(exact, k - 1, axis=1)[:, :k], axis=1), np.partition(kept, k - 1, axis=1)[:, :k]


def squares_to(vectors: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the squared distances (q, m) float64 of all vectors to some, infinite to themselves."""
    lengths = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    squares = lengths[queries, np.newaxis] + lengths - 2.0 * (vectors[queries] @ vectors.T)
    least = max(float(np.finfo(np.float32).eps * lengths.max()), np.finfo(np.float32).tiny)
    squares = np.maximum(squares, least)  # what float32 cannot tell apart is equal
    squares[np.arange(len(queries)), queries] = np.inf
    return squares


def intrinsic_dimension(squares: np.ndarray) -> float:
    """Return the intrinsic dimension by squared distances (q, k) of nearest neighbours, ascending; 0 of equal ones."""
    ratios = 0.5 * np.log(squares[:, -1:] / squares[:, :-1])
    return float(1.0 / ratios.mean()) if ratios.any() else 0.0
