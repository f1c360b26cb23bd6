from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import cKDTree

from scalemani.errors import ConvergenceError, RankError
from scalemani.kernels.baselines import exact_eigenmaps
from scalemani.kernels.coarsening import (
    aggregated,
    coarse_eigenvectors,
    coarse_part,
    membership,
    no_aggregates,
)
from scalemani.kernels.graph_product import normalized_product
from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.reduced import tree_sum
from scalemani.kernels.refinement import (
    check_converged,
    initial_state,
    n_columns,
    random_columns,
    refined,
    refined_embedding,
    step,
    unit_roots,
)
from scalemani.kernels.symmetrize import row_sums
from scalemani.kernels.tall import combined, gram, residual_norms, without_direction


def knn_affinities(n_points, seed=0, n_neighbors=8):
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


@pytest.fixture(scope="module")
def graph():
    return Graph(knn_affinities(3000))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_product_equals_scipy_for_any_blocks(graph, dtype):
    x = np.random.default_rng(0).normal(size=(3000, 5)).astype(dtype)
    scale = sp.diags_array(1 / np.sqrt(graph.degrees))
    expected = scale @ graph.w.astype(np.float64) @ scale @ x.astype(np.float64)
    found = Graph(graph.w, 700).apply(x)
    np.testing.assert_allclose(found, expected, atol=1e-6 if dtype == "f4" else 1e-14)
    np.testing.assert_array_equal(found, graph.apply(x))


def test_tall_algebra_equals_numpy_and_does_not_depend_on_threads():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 70_000, 3)).astype(np.float32)
    np.testing.assert_allclose(gram(x, y), x.astype(float).T @ y.astype(float), rtol=1e-10)
    unit = unit_roots(rng.random(70_000))
    np.testing.assert_allclose(unit @ without_direction(x, unit), 0, atol=1e-4)
    np.testing.assert_allclose(combined(x, np.eye(3)[:, :2]), x[:, :2])
    values = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(residual_norms(y, x, values), np.linalg.norm(y - x * values, axis=0), rtol=1e-5)
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_array_equal(gram(x, y, pool.map), gram(x, y))
        np.testing.assert_array_equal(without_direction(x, unit, pool.map), without_direction(x, unit))


@pytest.mark.parametrize(("dtype", "target"), [(np.float32, 1e-5), (np.float64, 1e-9)])
def test_reaches_the_exact_vectors_and_certifies_the_residual(dtype, target):
    graph = Graph(knn_affinities(3000), dtype=np.float64)
    exact = exact_eigenmaps(graph.w, 4)
    gap = exact.eigenvalues[3] - exact.eigenvalues[2]
    start = initial_state(random_columns(3000, n_columns(3, 3000), 0, dtype), graph.trivial, graph.apply)
    state = refined(start, graph.apply, graph.trivial, 3, target, 600)
    check_converged(state, 3, target)
    values, embedding = refined_embedding(state, graph.degrees, 3)
    np.testing.assert_allclose(values, exact.eigenvalues[:3], atol=target)
    assert embedding.dtype == dtype
    # Davis and Kahan: the angle is at most the residual of the block over the gap.
    assert subspace_angle(embedding, exact.embedding[:, :3], graph.degrees) < np.sqrt(3) * target / (gap - target)
    u = embedding * np.sqrt(graph.degrees)[:, None]
    np.testing.assert_allclose(u.T @ u, np.eye(3), atol=1e-5)
    direct = np.linalg.norm(graph.apply(u.astype(np.float64)) - u * (1 - values), axis=0)
    np.testing.assert_allclose(direct.max(), state.residuals[:3].max(), rtol=0.2, atol=1e-6)


def test_counts_passes_and_leaves_arguments_alone(graph):
    graph.passes = 0
    state = initial_state(random_columns(3000, 10, 0), graph.trivial, graph.apply)
    for _ in range(7):
        before = (state.previous.copy(), state.current.copy())
        later = step(state, graph.apply, graph.trivial, 2, 1e-4)
        np.testing.assert_array_equal(state.previous, before[0])
        np.testing.assert_array_equal(state.current, before[1])
        state = later
    assert state.passes == graph.passes == 8


def test_any_blocks_threads_and_a_resumed_run_give_the_same_bits(graph):
    start = random_columns(3000, 10, 3)
    one = refined(initial_state(start, graph.trivial, graph.apply), graph.apply, graph.trivial, 2, 1e-4, 30)
    blocked = Graph(graph.w, 1024)
    with ThreadPoolExecutor(2) as pool:
        state = initial_state(start, graph.trivial, blocked.apply, pool.map)
        for _ in range(4):
            state = step(state, blocked.apply, graph.trivial, 2, 1e-4, pool.map)
        fields = {name: np.copy(value) for name, value in vars(state).items()}
        state = type(state)(**{k: v if v.ndim else v.item() for k, v in fields.items()})
        other = refined(state, blocked.apply, graph.trivial, 2, 1e-4, 30, pool.map)
    np.testing.assert_array_equal(one.previous, other.previous)
    assert one.passes == other.passes


def test_regular_graph_and_dependent_columns():
    ring = sp.diags_array([np.ones(2999), np.ones(2999)], offsets=[1, -1]).tolil()
    ring[0, 2999] = ring[2999, 0] = 1
    graph = Graph(sp.csr_matrix(ring))
    columns = np.hstack([np.ones((3000, 1), np.float32), random_columns(3000, 3, 0)])
    state = initial_state(np.hstack([columns, columns]), graph.trivial, graph.apply)
    assert state.previous.shape[1] == 3
    with pytest.raises(RankError):
        initial_state(np.zeros((3000, 2), np.float32), graph.trivial, graph.apply)


def test_a_run_out_of_passes_says_so(graph):
    state = refined(
        initial_state(random_columns(3000, 8, 0), graph.trivial, graph.apply), graph.apply, graph.trivial, 2, 1e-9, 6
    )
    with pytest.raises(ConvergenceError, match="after 6 passes"):
        check_converged(state, 2, 1e-9)


def test_aggregates_do_not_depend_on_blocks_and_cover_connected_points(graph):
    inverse_roots = 1 / np.sqrt(graph.degrees)
    states = []
    for size in (3000, 500):
        state = no_aggregates(3000)
        for start in range(0, 3000, size):
            state = aggregated(state, rows_of(graph.w, start, min(start + size, 3000)), inverse_roots, start)
        states.append(state)
    np.testing.assert_array_equal(states[0].labels, states[1].labels)
    labels, count = states[0].labels, states[0].count
    sizes = np.bincount(labels, minlength=count)
    assert sizes.min() >= 1
    assert sizes.max() <= 9
    assert count < 1700


def test_coarse_graph_equals_the_dense_product_and_keeps_degrees(graph):
    labels = np.arange(3000, dtype=np.int32) // 7
    parts = [coarse_part(rows_of(graph.w, s, s + 1000), labels, s) for s in range(0, 3000, 1000)]
    q = membership(labels, 429)
    coarse = tree_sum(parts)
    np.testing.assert_allclose(coarse.toarray(), (q.T @ graph.w.astype(float) @ q).toarray(), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(coarse.sum(axis=1)).ravel(), q.T @ graph.degrees, rtol=1e-12)


def test_multilevel_start_needs_few_passes():
    graph = Graph(knn_affinities(20_000, n_neighbors=10))
    inverse_roots = 1 / np.sqrt(graph.degrees)
    whole = rows_of(graph.w, 0, 20_000)
    state = aggregated(no_aggregates(20_000), whole, inverse_roots, 0)
    coarse = coarse_eigenvectors(coarse_part(whole, state.labels, 0), 24, 2, 1e-3)
    start = initial_state(coarse[state.labels], graph.trivial, graph.apply)
    final = refined(start, graph.apply, graph.trivial, 2, 1e-3, 20)
    check_converged(final, 2, 1e-3)
    assert final.passes <= 13
    exact = exact_eigenmaps(graph.w, 2)
    np.testing.assert_allclose(1 - final.values[:2], exact.eigenvalues, atol=2e-4)


def test_a_star_does_not_coarsen_and_is_solved_all_the_same():
    n = 7000
    rows = np.concatenate([np.zeros(n - 1, int), np.arange(1, n), np.arange(1, n)])
    columns = np.concatenate([np.arange(1, n), np.zeros(n - 1, int), np.arange(1, n)])
    star = sp.csr_matrix((np.ones(rows.size), (rows, columns)), shape=(n, n))
    vectors = coarse_eigenvectors(star, 4, 1, 1e-3)
    assert vectors.shape == (n, 4)
    assert np.isfinite(vectors).all()
