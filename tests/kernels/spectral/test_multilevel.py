"""Transfers between graphs, against the matrix P that they stand for, and eigenvectors against those of the graph."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.kernels.spectral.coarsening import coarser
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps
from scalemani.kernels.spectral.multilevel import Multilevel, Transfer, loops_of

N_NODES, N_COARSE = 300, 70


@pytest.fixture
def aggregates():
    """Return labels of all coarse nodes, and degrees of both graphs: those of a coarse node are its members' sum."""
    rng = np.random.default_rng(3)
    labels = rng.permutation(np.concatenate([np.arange(N_COARSE), rng.integers(0, N_COARSE, N_NODES - N_COARSE)]))
    degrees = rng.uniform(0.5, 2.0, N_NODES)
    return labels.astype(np.int32), degrees, np.bincount(labels, degrees)


def prolongation(labels, degrees, coarse_degrees):
    """Return P = D^1/2 Q D_c^-1/2 as a dense matrix (N, C)."""
    members = (labels[:, np.newaxis] == np.arange(len(coarse_degrees))).astype(float)
    return np.sqrt(degrees)[:, np.newaxis] * members / np.sqrt(coarse_degrees)


def test_columns_of_p_are_orthonormal(aggregates):
    matrix = prolongation(*aggregates)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(N_COARSE), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_are_carried_by_p_and_by_its_transpose(aggregates, dtype):
    matrix, transfer = prolongation(*aggregates), Transfer(*aggregates)
    rng = np.random.default_rng(4)
    fine, coarse = rng.normal(size=(N_NODES, 3)).astype(dtype), rng.normal(size=(N_COARSE, 3)).astype(dtype)
    np.testing.assert_allclose(transfer.restricted(fine), matrix.T @ fine, rtol=1e-5, atol=1e-5)
    out = np.empty((N_NODES, 3), dtype)
    transfer.prolong(coarse, out)
    np.testing.assert_allclose(out, matrix @ coarse, rtol=1e-5, atol=1e-6)


def test_a_smoothed_right_side_is_added_and_may_be_written_over(aggregates):
    matrix, transfer = prolongation(*aggregates), Transfer(*aggregates)
    rng = np.random.default_rng(5)
    right, coarse, smoothing = rng.normal(size=(N_NODES, 2)), rng.normal(size=(N_COARSE, 2)), rng.uniform(size=N_NODES)
    expected = smoothing[:, np.newaxis] * right + matrix @ coarse
    transfer.prolong(coarse, right, (right, smoothing))
    np.testing.assert_allclose(right, expected, rtol=1e-12, atol=1e-12)


def test_what_is_carried_up_comes_back(aggregates):
    transfer, coarse = Transfer(*aggregates), np.random.default_rng(6).normal(size=(N_COARSE, 2))
    out = np.empty((N_NODES, 2))
    transfer.prolong(coarse, out)
    np.testing.assert_allclose(transfer.restricted(out), coarse, rtol=1e-5, atol=1e-5)


def test_a_hierarchy_finds_the_leading_eigenvectors_of_its_finest_graph(knn_affinities, graph_of):
    graph = graph_of(knn_affinities(3000))
    levels = list(coarser((graph.w.indptr.astype(np.int64), graph.w.indices, graph.w.data)))
    vectors = Multilevel(levels).eigenvectors(6).astype(np.float64)
    images = graph.apply(vectors)
    values = np.einsum("ij,ij->j", vectors, images)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-5)
    np.testing.assert_allclose(values[:2], 1 - exact_eigenmaps(graph.w, 2).eigenvalues, atol=1e-5)
    assert np.linalg.norm(images - vectors * values, axis=0).max() < 3e-3  # prolonged alone they have twenty times that


def test_diagonals_of_full_graphs_are_taken_in_little_memory_beside_these():
    """Coarse graphs of points of no low dimension have hundreds of nonzeros a row."""
    n_rows, width = 5000, 200
    draws = np.random.default_rng(0)
    columns = (np.arange(n_rows)[:, np.newaxis] + np.arange(-90, width - 90) * draws.integers(1, 9)) % 7000
    graph = sp.csr_matrix(
        (draws.random(columns.size).astype(np.float32), columns.ravel(), np.arange(0, columns.size + 1, width)),
        (n_rows, 7000),
    )
    graph.sort_indices()
    rows = (graph.indptr.astype(np.int64), graph.indices, graph.data)
    loops_of((np.arange(2, dtype=np.int64), graph.indices[:1], graph.data[:1]))  # compiles
    tracemalloc.start()
    found = loops_of(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(found, graph.diagonal())
    assert peak < graph.data.nbytes + graph.indices.nbytes
