from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.graph.product import smoothed
from scalemani.kernels.spectral.coarsening import aggregated, coarse_graph, coarse_part, coarser, joined, no_aggregates
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps
from scalemani.kernels.spectral.multilevel import DAMPING, LevelGraph, Multilevel, Transfer
from scalemani.kernels.spectral.refinement import (
    RefinementProblem,
    initial_state,
    n_columns,
    n_start_columns,
    refinement,
)


@pytest.fixture(scope="module")
def graph(knn_affinities, graph_of):
    return graph_of(knn_affinities(3000))


@pytest.fixture(scope="module")
def large(knn_affinities, graph_of):
    return graph_of(knn_affinities(20_000, n_neighbors=10))


def csr_arrays(w):
    return w.indptr.astype(np.int64), w.indices, w.data


def members(labels, count):
    return sp.csr_matrix((np.ones(len(labels)), (np.arange(len(labels)), labels)), shape=(len(labels), count))


def test_aggregates_do_not_depend_on_blocks_and_cover_connected_points(block_of, graph):
    inverse_roots = 1 / np.sqrt(graph.degrees)
    states = []
    for size in (3000, 500):
        state = no_aggregates(3000)
        for start in range(0, 3000, size):
            state = aggregated(state, block_of(graph.w, start, min(start + size, 3000)), inverse_roots, start)
        states.append(state)
    np.testing.assert_array_equal(states[0].labels, states[1].labels)
    labels, count = states[0].labels, states[0].count
    sizes = np.bincount(labels, minlength=count)
    assert sizes.min() >= 1
    assert sizes.max() <= 9
    assert count < 1700


def test_a_block_is_added_without_a_copy_of_what_is_known_of_all_points(block_of, graph):
    first = no_aggregates(3000)
    following = aggregated(first, block_of(graph.w, 0, 100), 1 / np.sqrt(graph.degrees), 0)
    assert np.shares_memory(first.labels, following.labels)
    assert np.shares_memory(first.sizes, following.sizes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_a_node_are_summed_in_their_order_and_its_columns_come_as_they_are_met(dtype):
    draws = np.random.default_rng(0)
    for _ in range(30):
        n_rows, n_nodes = draws.integers(1, 60), draws.integers(1, 20)
        counts = draws.integers(0, 40, n_rows)
        counts[draws.integers(0, n_rows)] = draws.integers(0, 2000)  # a hub
        indptr = np.concatenate([[0], np.cumsum(counts)])
        columns = draws.integers(0, draws.integers(1, 3000), indptr[-1]).astype(np.int32)
        values = draws.random(indptr[-1]).astype(dtype)
        labels = np.arange(3000, dtype=np.int32)
        labels[:n_rows] = draws.integers(0, n_nodes, n_rows)
        found, met = coarse_part((indptr, columns, values), labels, 0), {}
        for row in range(n_rows):
            sums = met.setdefault(int(labels[row]), {})
            for entry in range(indptr[row], indptr[row + 1]):
                column = int(labels[columns[entry]])
                sums[column] = sums.get(column, 0.0) + float(values[entry])
        assert found.nodes.tolist() == sorted(met)
        for place, node in enumerate(found.nodes.tolist()):
            entries = slice(found.indptr[place], found.indptr[place + 1])
            assert found.indices[entries].tolist() == list(met[node])
            assert found.values[entries].tolist() == list(met[node].values())


@pytest.mark.parametrize("group_size", [7, 900])
def test_coarse_graph_equals_the_sparse_product_and_keeps_degrees(block_of, graph, group_size):
    labels = (np.random.default_rng(0).permutation(3000) // group_size).astype(np.int32)
    count = int(labels.max()) + 1
    found = []
    for size in (3000, 1024):
        blocks = [(s, min(s + size, 3000)) for s in range(0, 3000, size)]
        parts = [coarse_part(block_of(graph.w, first, stop), labels, first) for first, stop in blocks]
        indptr, indices, values = coarse_graph(joined(parts), count)
        found.append(sp.csr_matrix((values, indices, indptr), shape=(count, count)))
    q = members(labels, count)
    expected = (q.T @ graph.w.astype(float) @ q).toarray()
    np.testing.assert_allclose(found[0].toarray(), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(found[0].sum(axis=1)).ravel(), q.T @ graph.degrees, rtol=1e-6)
    np.testing.assert_array_equal(found[0].data, found[1].data)
    np.testing.assert_array_equal(found[0].indices, found[1].indices)


def test_levels_shrink_keep_the_total_weight_and_do_not_depend_on_threads(large):
    levels = list(coarser(csr_arrays(large.w)))
    sizes = [len(level.degrees) for level in levels]
    assert sizes == sorted(sizes, reverse=True)
    assert len(levels) >= 3
    assert sizes[-1] <= 2000
    for level in levels:
        np.testing.assert_allclose(level.degrees.sum(), large.degrees.sum(), rtol=1e-5)
    with ThreadPoolExecutor(2) as pool:
        for one, other in zip(levels, coarser(csr_arrays(large.w), Workspace(pool.map)), strict=True):
            for a, b in zip((*one.rows, one.degrees, one.labels), (*other.rows, *other[1:]), strict=True):
                np.testing.assert_array_equal(a, b)


def test_prolongation_has_orthonormal_columns_and_gives_the_galerkin_problem(graph):
    fine, coarse = list(coarser(csr_arrays(graph.w)))[:2]
    transfer = Transfer(fine.labels, fine.degrees, coarse.degrees)
    p = np.empty((3000, len(coarse.degrees)), np.float32)
    transfer.prolong(np.eye(len(coarse.degrees), dtype=np.float32), p)
    np.testing.assert_allclose(p.T @ p, np.eye(p.shape[1]), atol=1e-5)
    x = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)
    np.testing.assert_allclose(transfer.restricted(x), p.T @ x, atol=1e-4)
    y = np.random.default_rng(1).normal(size=(p.shape[1], 3)).astype(np.float32)
    np.testing.assert_allclose(LevelGraph(coarse).product(y), p.T @ LevelGraph(fine).product(p @ y), atol=1e-5)


def test_smoothing_steps_are_those_of_jacobi(graph, block_of):
    rng, scale = np.random.default_rng(2), 1 / np.sqrt(graph.degrees)
    right, found = rng.normal(size=(2, 3000, 7))
    smoothing = rng.random(3000)
    s = sp.diags_array(scale) @ graph.w.astype(float) @ sp.diags_array(scale)
    out = np.empty((3000, 7))
    for start, stop in ((0, 1100), (1100, 3000)):
        rows = block_of(graph.w, start, stop)
        smoothed(rows, scale, smoothing, start, right, found, out[start:stop])
    np.testing.assert_allclose(out, found + smoothing[:, None] * (right - (found - s @ found)), atol=1e-12)


def test_v_cycles_solve_the_equation(large):
    levels = Multilevel(list(coarser(csr_arrays(large.w))))
    right = np.random.default_rng(0).normal(size=(20_000, 2)).astype(np.float32)
    right -= np.outer(large.trivial, large.trivial @ right).astype(np.float32)
    found, lengths = np.zeros_like(right), []
    for _ in range(30):
        residual = right - found + large.apply(found)
        lengths.append(np.linalg.norm(residual))
        found += levels.corrected(residual)
    assert lengths[-1] < 1e-2 * lengths[0]


def test_eigenvectors_of_coarse_graphs_and_corrections_make_few_passes(large):
    fine, *coarse = coarser(csr_arrays(large.w))
    levels = Multilevel(coarse)
    transfer = Transfer(fine.labels, fine.degrees, coarse[0].degrees)
    vectors = levels.eigenvectors(n_start_columns(2, 20_000))
    start = np.empty((20_000, vectors.shape[1]), np.float32)
    transfer.prolong(vectors, start)

    smoothing = np.full(20_000, DAMPING)

    def correct(residuals):
        return levels.correct_below(transfer, 0, smoothing, residuals)

    problem = RefinementProblem(large.apply, correct, large.trivial)
    state = initial_state(start, problem, n_columns(2, 20_000))
    *_, final = refinement(state, problem, 2, 1e-5, 30)
    assert final.residuals[:2].max() <= 1e-5
    assert final.passes <= 20
    np.testing.assert_allclose(1 - final.values[:2], exact_eigenmaps(large.w, 2).eigenvalues, atol=1e-6)


def test_a_star_does_not_coarsen_and_is_solved_all_the_same():
    n = 7000
    rows = np.concatenate([np.zeros(n - 1, int), np.arange(1, n), np.arange(1, n)])
    columns = np.concatenate([np.arange(1, n), np.zeros(n - 1, int), np.arange(1, n)])
    star = sp.csr_matrix((np.ones(rows.size), (rows, columns)), shape=(n, n))
    levels = list(coarser(csr_arrays(star)))
    assert len(levels) == 1
    vectors = Multilevel(levels).eigenvectors(4)
    assert vectors.shape == (n, 4)
    assert np.isfinite(vectors).all()


def test_components_that_become_one_node_do_no_harm(knn_affinities):
    parts = [knn_affinities(4000, seed=1), *(sp.csr_matrix(np.ones((3, 3)) - np.eye(3)) for _ in range(2))]
    w = sp.csr_matrix(sp.block_diag(parts))
    vectors = Multilevel(list(coarser(csr_arrays(w)))).eigenvectors(6)
    assert np.isfinite(vectors).all()
