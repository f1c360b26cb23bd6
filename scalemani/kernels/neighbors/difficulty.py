"""How hard the neighbours of points are to find by their leading axes, measured on a sample of the points.

References
----------
Levina and Bickel, Maximum likelihood estimation of intrinsic dimension, 2004; MacKay and Ghahramani on it, 2005.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.neighbors.exact import about
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.sketches import fit_sketch, sketch_points

N_NEAREST = 15
RANKED = 3  # times as many are looked at by sketches, as the search does
N_QUERIES = 256
BASIS_ROWS = 512
LEAST_RANKED = 0.9  # 0.998 and more on digits, patches and few dimensions, 0.22 to 0.82 on tokens, their sums and noise
MOST_DIMENSIONS = 25.0  # 9 to 14 on patches and digits; cells and rounds take as long as exact search from 25 to 30 on


class Difficulty(NamedTuple):
    """The share of the nearest that sketches rank among three times as many, and the intrinsic dimension."""

    kept: float
    dimension: float

    @property
    def hard(self) -> bool:
        """Whether cells of sketches lose neighbours that later rounds do not find again."""
        return self.kept < LEAST_RANKED or self.dimension > MOST_DIMENSIONS


def measure_difficulty(sample: Points, n_sketch_dims: int) -> Difficulty:
    """Return how hard it is to find the neighbours within a sample (m, D) real, finite, by so many leading axes."""
    n_rows = sample.shape[0]
    basis = fit_sketch(sample[:: -(-n_rows // BASIS_ROWS)], n_sketch_dims)
    queries = np.arange(0, n_rows, -(-n_rows // N_QUERIES))
    sparse = sp.issparse(sample)
    vectors = (sample / basis.scale).astype(np.float32) if sparse else about(basis.mean, sample, basis.scale)
    exact, by_sketches = squares_to(vectors, queries), squares_to(sketch_points(sample, basis), queries)
    count = min(RANKED * N_NEAREST, n_rows - 1)
    ranked = np.take_along_axis(exact, np.argpartition(by_sketches, count - 1, axis=1)[:, :count], axis=1)
    k = min(N_NEAREST, count)
    nearest, of_ranked = (np.sort(np.partition(squares, k - 1, axis=1)[:, :k], axis=1) for squares in (exact, ranked))
    reached = nearest[:, -1:].astype(np.float64) * (1.0 + np.finfo(np.float32).eps)  # ties count
    return Difficulty(float(np.mean(of_ranked <= reached)), intrinsic_dimension(nearest))


def squares_to(vectors: Points, queries: np.ndarray) -> np.ndarray:
    """Return the squared distances (q, m) float32 of vectors (m, D) float32 to some of them, infinite to themselves."""
    squares = vectors[queries] @ vectors.T
    if sp.issparse(vectors):
        squares, lengths = squares.toarray(), np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel()
    else:
        lengths = np.einsum("ij,ij->i", vectors, vectors)
    squares *= -2.0
    squares += lengths[queries, np.newaxis]
    squares += lengths
    least = max(np.finfo(np.float32).eps * lengths.max(), np.finfo(np.float32).tiny)
    np.maximum(squares, least, out=squares)  # what float32 cannot distinguish is equal
    squares[np.arange(len(queries)), queries] = np.inf
    return squares


def intrinsic_dimension(squares: np.ndarray) -> float:
    """Return the intrinsic dimension by squared distances (q, k) of nearest neighbours, ascending; 0 of equal ones."""
    ratios = 0.5 * np.log(squares[:, -1:].astype(np.float64) / squares[:, :-1])
    return float(1.0 / ratios.mean()) if ratios.any() else 0.0
