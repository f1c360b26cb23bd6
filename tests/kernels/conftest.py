"""Graphs for the tests of kernels that multiply by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import cKDTree

from scalemani.kernels.arrays.columns import unit_roots
from scalemani.kernels.graph.product import normalized_product
from scalemani.kernels.graph.symmetric import row_sums


def random_affinities(n_points, seed=0, n_neighbors=8):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.random(n_points)) * 4
    points = np.column_stack([np.cos(t), np.sin(t), rng.random(n_points)])
    _, indices = cKDTree(points).query(points, n_neighbors + 1)
    rows = np.repeat(np.arange(n_points), n_neighbors)
    p = sp.csr_matrix((rng.random(rows.size), (rows, indices[:, 1:].ravel())), shape=(n_points, n_points))
    return sp.csr_matrix((p + p.T) / 2)


def rows_of(w, start, stop):
    indptr = w.indptr[start : stop + 1]
    return indptr - indptr[0], w.indices[indptr[0] : indptr[-1]], w.data[indptr[0] : indptr[-1]]


class Graph:
    def __init__(self, w, size=None, dtype=np.float32):
        self.w, self.size = sp.csr_matrix(w, dtype=dtype), size or w.shape[0]
        self.degrees = row_sums(self.w.data, self.w.indptr)
        self.trivial, self.passes = unit_roots(self.degrees), 0

    def apply(self, vectors):
        self.passes += 1
        out = np.empty_like(vectors)
        inverse_roots = 1 / np.sqrt(self.degrees)
        for start in range(0, self.w.shape[0], self.size):
            stop = min(start + self.size, self.w.shape[0])
            normalized_product(rows_of(self.w, start, stop), inverse_roots, start, vectors, out[start:stop])
        return out


@pytest.fixture(scope="session")
def knn_affinities():
    """Affinities (N, N) of points on a bent sheet, drawn at random: knn_affinities(n_points, seed, n_neighbors)."""
    return random_affinities


@pytest.fixture(scope="session")
def graph_of():
    """A graph in memory as an operator that counts its passes: graph_of(affinities, rows a block, dtype)."""
    return Graph


@pytest.fixture(scope="session")
def block_of():
    """Rows [start, stop) of a sparse matrix: (indptr, indices, values)."""
    return rows_of
