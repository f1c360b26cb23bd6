"""What tests of several kernels compare with, or draw: NumPy and SciPy alone."""

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.graph.attraction import AffinityRows


def brute_force(points, k):
    """Neighbours by direct difference in the widest type, ties by index."""
    wide = points.astype(np.longdouble)
    squares = np.array([np.square(wide - row).sum(axis=1) for row in wide])
    np.fill_diagonal(squares, np.inf)
    squares = np.sqrt(squares).astype(np.float64)
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(squares, order, axis=1)


def squared_distances(points, others):
    """Return squared distances (n, m) by differences."""
    difference = points[:, np.newaxis].astype(np.float64) - others[np.newaxis].astype(np.float64)
    return (difference**2).sum(axis=2)


def drawn(n_points, n_columns, dtype, seed=0):
    """Return whole numbers below 256 as points."""
    values = np.random.default_rng(seed).integers(0, 256, (n_points, n_columns))
    return values.astype(dtype)


def tile(n_rows=200, k=8, seed=0):
    """Neighbours of random points in the plane; every second index points outside of the tile."""
    points = np.random.default_rng(seed).normal(size=(n_rows, 2))
    squared = np.square(points[:, None] - points[None]).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    indices = np.argsort(squared, axis=1)[:, :k]
    nearest = np.take_along_axis(squared, indices, axis=1)
    indices[:, 1::2] += np.where(np.arange(n_rows) % 2, n_rows, -n_rows)[:, None]
    return nearest, indices


def symmetric(n_points, seed, share=0.3):
    """Return a symmetric matrix without a diagonal, of which a share of the pairs have an affinity."""
    draws = np.random.default_rng(seed)
    dense = draws.random((n_points, n_points)) * (draws.random((n_points, n_points)) < share)
    dense = dense + dense.T
    np.fill_diagonal(dense, 0)
    return dense


def rows_of(dense, dtype=np.float64):
    """Return a dense matrix as rows of affinities."""
    matrix = sp.csr_matrix(dense)
    return AffinityRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data.astype(dtype))
