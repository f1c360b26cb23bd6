from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.errors import RankError
from scalemani.kernels.arrays.columns import column_squares, combine_columns, inner_products, residuals_into, unit_roots
from scalemani.kernels.arrays.workspace import Workspace
from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.spectral.eigenmaps import exact_eigenmaps
from scalemani.kernels.spectral.refinement import (
    RefinementProblem,
    RefinementState,
    initial_state,
    n_columns,
    random_columns,
    refined_embedding,
    refinement,
    step,
)


@pytest.fixture(scope="module")
def graph(knn_affinities, graph_of):
    return graph_of(knn_affinities(3000))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_product_equals_scipy_for_any_blocks(graph_of, graph, dtype):
    x = np.random.default_rng(0).normal(size=(3000, 5)).astype(dtype)
    scale = sp.diags_array(1 / np.sqrt(graph.degrees))
    expected = scale @ graph.w.astype(np.float64) @ scale @ x.astype(np.float64)
    found = graph_of(graph.w, 700).apply(x)
    np.testing.assert_allclose(found, expected, atol=1e-6 if dtype == "f4" else 1e-14)
    np.testing.assert_array_equal(found, graph.apply(x))


def test_tall_algebra_equals_numpy_and_does_not_depend_on_threads():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 70_000, 3)).astype(np.float32)
    both = np.hstack([x, y]).astype(float)
    expected = both.T @ np.hstack([y, x]).astype(float)
    np.testing.assert_allclose(inner_products((x, y), (y, x)), expected, rtol=1e-4, atol=1e-1)
    doubles = x.astype(float), y.astype(float)
    np.testing.assert_allclose(inner_products(doubles, doubles[::-1]), expected, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(column_squares(x), np.linalg.norm(x.astype(float), axis=0) ** 2, rtol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(unit_roots(rng.random(70_000))), 1, rtol=1e-12)
    coefficients = rng.normal(size=(6, 2))
    expected, out = both @ coefficients, y.copy()
    combine_columns((x, out), coefficients, out)
    np.testing.assert_allclose(out[:, :2], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(out[:, 2], y[:, 2])
    values, residuals = np.array([1.0, 2.0]), np.empty((70_000, 2), np.float32)
    lengths = residuals_into(residuals, x, y, values)
    np.testing.assert_allclose(residuals, (y - x * np.array([1.0, 2.0, 3.0]))[:, :2], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(lengths, np.linalg.norm(residuals, axis=0), rtol=1e-5)
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_array_equal(inner_products((x, y), (y,), pool.map), inner_products((x, y), (y,)))
        np.testing.assert_array_equal(column_squares(x, pool.map), column_squares(x))


def unchanged(residuals):
    """Correct without any coarse graph: the residual itself."""
    return residuals


def problem_of(graph, over=map):
    return RefinementProblem(graph.apply, unchanged, graph.trivial, Workspace(over))


def refined_from(graph, vectors, n_wanted, target, max_passes):
    problem = problem_of(graph)
    state = initial_state(vectors.copy(), problem, vectors.shape[1])
    return last_of(state, refinement(state, problem, n_wanted, target, max_passes))


def last_of(state, following):
    """Return the last of the states that follow, or the first where none does."""
    return [state, *following][-1]


@pytest.mark.parametrize(("dtype", "target"), [(np.float32, 1e-5), (np.float64, 1e-9)])
def test_reaches_the_exact_vectors_and_certifies_the_residual(knn_affinities, graph_of, dtype, target):
    graph = graph_of(knn_affinities(3000), dtype=np.float64)
    exact = exact_eigenmaps(graph.w, 4)
    gap = exact.eigenvalues[3] - exact.eigenvalues[2]
    state = refined_from(graph, random_columns(3000, n_columns(3, 3000), 0).astype(dtype), 3, target, 600)
    assert state.residuals[:3].max() <= target
    values, embedding = refined_embedding(state, graph.degrees, 3)
    np.testing.assert_allclose(values, exact.eigenvalues[:3], atol=target)
    assert embedding.dtype == dtype
    # Davis and Kahan: the angle is at most the residual of the block over the gap.
    roots = np.sqrt(graph.degrees)[:, np.newaxis]
    assert subspace_angle(roots * embedding, roots * exact.embedding[:, :3]) < np.sqrt(3) * target / (gap - target)
    u = embedding * np.sqrt(graph.degrees)[:, None]
    np.testing.assert_allclose(u.T @ u, np.eye(3), atol=1e-5)
    direct = np.linalg.norm(graph.apply(u.astype(np.float64)) - u * (1 - values), axis=0)
    np.testing.assert_allclose(direct.max(), state.residuals[:3].max(), rtol=0.2, atol=1e-6)


def test_the_best_vectors_of_a_wide_start_are_kept(graph):
    exact = exact_eigenmaps(graph.w, 3)
    roots = np.sqrt(graph.degrees)[:, None]
    start = np.hstack([random_columns(3000, 9, 0), (exact.embedding * roots).astype(np.float32)])
    state = initial_state(start, problem_of(graph), 4)
    assert state.vectors.shape == (3000, 4)
    np.testing.assert_allclose(1 - state.values[:3], exact.eigenvalues, atol=1e-6)
    assert state.residuals[:3].max() < 1e-5


def test_a_step_is_a_pass_and_never_makes_the_block_worse(graph):
    graph.passes = 0
    problem = problem_of(graph)
    state = initial_state(random_columns(3000, 10, 0), problem, 10)
    for _ in range(7):
        values = state.values
        state = step(state, problem, 1e-9)
        assert (state.values >= values - 1e-6).all()
    assert state.passes == graph.passes == 8


def test_any_blocks_threads_and_a_resumed_run_give_the_same_bits(graph_of, graph):
    start = random_columns(3000, 10, 3)
    one = refined_from(graph, start, 2, 1e-4, 200)
    blocked = graph_of(graph.w, 1024)
    with ThreadPoolExecutor(2) as pool:
        problem = problem_of(blocked, pool.map)
        state = initial_state(start.copy(), problem, 10)
        for _ in range(4):
            state = step(state, problem, 1e-4)
        arrays = {name: np.copy(values) for name, values in state.arrays().items()}
        *_, other = refinement(RefinementState.of_arrays(arrays), problem, 2, 1e-4, 200)
    np.testing.assert_array_equal(one.vectors, other.vectors)
    assert one.passes == other.passes
    assert one.residuals[:2].max() <= 1e-4


def test_regular_graph_and_dependent_columns(graph_of):
    ring = sp.diags_array([np.ones(2999), np.ones(2999)], offsets=[1, -1]).tolil()
    ring[0, 2999] = ring[2999, 0] = 1
    graph = graph_of(sp.csr_matrix(ring))
    columns = np.hstack([np.ones((3000, 1), np.float32), random_columns(3000, 3, 0)])
    state = initial_state(np.hstack([columns, columns]), problem_of(graph), 8)
    assert state.vectors.shape[1] == 3
    with pytest.raises(RankError):
        initial_state(np.zeros((3000, 2), np.float32), problem_of(graph), 2)


def test_a_run_out_of_passes_stops_with_its_residual(graph):
    state = refined_from(graph, random_columns(3000, 8, 0), 2, 1e-9, 6)
    assert state.passes == 6
    assert state.residuals[:2].max() > 1e-9


def test_exact_start_vectors_stay_exact(graph):
    exact = exact_eigenmaps(graph.w, 2)
    state = refined_from(graph, exact.embedding * np.sqrt(graph.degrees)[:, None], 2, 1e-6, 50)
    assert state.passes == 1
    assert state.fresh
    np.testing.assert_allclose(1 - state.values, exact.eigenvalues, atol=1e-8)


def test_what_is_known_of_a_basis_stays_true(graph):
    problem = problem_of(graph)
    state = initial_state(random_columns(3000, 10, 0), problem, 10)
    for _ in range(15):
        state = step(state, problem, 1e-9)
    width = len(state.quotients)
    basis, images = state.basis[:, :width].astype(float), state.images[:, :width].astype(float)
    np.testing.assert_allclose(basis.T @ basis, np.eye(width), atol=1e-5)
    np.testing.assert_allclose(basis.T @ images, state.quotients, atol=1e-5)
    np.testing.assert_allclose(images, graph.apply(state.basis)[:, :width], atol=1e-5)
    np.testing.assert_allclose(np.diag(state.quotients)[:10], state.values, atol=1e-6)


def test_dependent_and_known_corrections_are_left_out(graph):
    state = initial_state(random_columns(3000, 6, 0), problem_of(graph), 6)
    first = state.vectors[:, :1].copy()

    def known(residuals):
        residuals[:] = first
        return residuals

    before = state.values
    state = step(state, RefinementProblem(graph.apply, known, graph.trivial), 1e-9)
    assert np.isfinite(state.in_use[0]).all()
    np.testing.assert_allclose(state.values, before, atol=1e-5)
