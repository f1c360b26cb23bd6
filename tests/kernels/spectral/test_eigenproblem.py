import contextlib
import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.errors import ConvergenceError, NumericalError, RankError
from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.spectral import eigenproblem
from scalemani.kernels.spectral.eigenproblem import EnvelopeFactor, Triangle, sign_rule, solve_reduced
from scalemani.kernels.spectral.reduced import lower_triangle

solved = functools.partial(solve_reduced, dense_up_to=1000)  # else each large problem would have 2,500 landmarks


def laplacian(w):
    degrees = np.asarray(w.sum(axis=1)).ravel()
    mass = sp.csr_matrix(sp.diags_array(degrees))
    return sp.csr_matrix(mass - w), mass


def ring(n):
    rows = np.arange(n)
    w = sp.csr_matrix((np.ones(n), (rows, (rows + 1) % n)), shape=(n, n))
    return sp.csr_matrix(w + w.T)


def reduced_problem(n_landmarks, seed=0, width=4, n_points=None):
    """Points on a line between landmarks: a sparse, well-posed Z^T L Z."""
    rng = np.random.default_rng(seed)
    n_points = n_points or 6 * n_landmarks
    at = np.sort(rng.random(n_points)) * (n_landmarks - 1)
    near = np.clip(np.floor(at).astype(int)[:, None] + np.arange(width) - width // 2 + 1, 0, n_landmarks - 1)
    z = sp.csr_matrix((rng.random((n_points, width)).ravel(), near.ravel(), np.arange(0, width * n_points + 1, width)))
    z = sp.csr_matrix((z.data, z.indices, z.indptr), shape=(n_points, n_landmarks))
    z = sp.csr_matrix(sp.diags_array(1 / np.asarray(z.sum(axis=1)).ravel()) @ z)
    w = sp.diags_array([rng.random(n_points - 1) + 0.1, rng.random(n_points - 3)], offsets=[1, 3])
    a, b = laplacian(sp.csr_matrix(w + w.T))
    return sp.csr_matrix(z.T @ a @ z), sp.csr_matrix(z.T @ b @ z)


def check(a, b, solution, n_components):
    norm_a, norm_b = np.linalg.norm(a.data), np.linalg.norm(b.data)
    v = solution.vectors
    errors = np.linalg.norm(a @ v - (b @ v) * solution.eigenvalues, axis=0) / np.linalg.norm(v, axis=0)
    assert (errors <= 1e-8 * (norm_a + solution.eigenvalues * norm_b)).all()
    np.testing.assert_allclose(v.T @ (b @ v), np.eye(n_components), atol=1e-10)
    assert (v[np.argmax(abs(v), axis=0), np.arange(n_components)] > 0).all()


@pytest.mark.parametrize("n", [7, 40, 1501])
def test_ring_has_its_closed_form_spectrum(n):
    a, b = laplacian(ring(n))
    solution = solved(a, b, 4)
    expected = np.sort(1 - np.cos(2 * np.pi * np.arange(n) / n))[1:5]
    np.testing.assert_allclose(solution.eigenvalues, expected, atol=1e-10)
    assert solution.n_zero == 1
    check(a, b, solution, 4)


def test_path_and_complete_graph_have_their_closed_form_spectra():
    n = 30
    np.testing.assert_allclose(
        solved(*laplacian(path(n)), 5).eigenvalues, 1 - np.cos(np.pi * np.arange(1, 6) / (n - 1)), atol=1e-10
    )
    complete = sp.csr_matrix(np.ones((n, n)) - np.eye(n))
    np.testing.assert_allclose(solved(*laplacian(complete), 5).eigenvalues, n / (n - 1), atol=1e-10)


def path(n):
    return sp.csr_matrix(sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1]))


def grid(n_rows, n_columns):
    """Edges along the border weigh half of those inside: L is then the mean of those of the two paths."""
    one, other = path(n_rows), path(n_columns)
    return sp.csr_matrix(sp.kron(one, laplacian(other)[1]) + sp.kron(laplacian(one)[1], other))


@pytest.mark.parametrize("sizes", [(3, 8), (12, 12), (33, 40)])
def test_a_grid_has_its_closed_form_spectrum(sizes):
    of_paths = [1 - np.cos(np.pi * np.arange(n) / (n - 1)) for n in sizes]
    expected = np.sort(np.add.outer(*of_paths).ravel() / 2)[1:7]
    a, b = laplacian(grid(*sizes))
    solution = solved(a, b, 6)
    np.testing.assert_allclose(solution.eigenvalues, expected, atol=1e-10)
    check(a, b, solution, 6)


@pytest.mark.parametrize("n", [9, 40, 1501])
def test_vectors_of_equal_eigenvalues_span_their_whole_space(n):
    turns = 2 * np.pi * np.outer(np.arange(n), [1, 2]) / n
    solution = solved(*laplacian(ring(n)), 4)
    for number in (0, 1):
        waves = np.column_stack([np.cos(turns[:, number]), np.sin(turns[:, number])])
        assert subspace_angle(solution.vectors[:, 2 * number : 2 * number + 2], waves) <= 1e-6


def test_the_vectors_of_a_complete_graph_are_all_that_are_orthogonal_to_the_constant_one():
    a, b = laplacian(sp.csr_matrix(np.ones((12, 12)) - np.eye(12)))
    vectors = solved(a, b, 11).vectors
    assert subspace_angle(vectors, np.eye(12)[:, 1:] - np.eye(12)[:, :1]) <= 1e-6


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 30), exponent=st.integers(-100, 100), two_sided=st.booleans())
def test_all_eigenvalues_of_a_graph_are_between_zero_and_two_and_the_constant_vector_is_dropped(
    seed, n, exponent, two_sided
):
    w = np.abs(ring(n).toarray() * np.random.default_rng(seed).gamma(1.0, size=(n, n))) + 1e-3 * ring(n).toarray()
    if two_sided:  # edges between even and odd rows alone: 2 is then an eigenvalue
        w = np.where(np.add.outer(np.arange(n), np.arange(n)) % 2 == 1, w + 0.1, 0.0)
    a, b = laplacian(sp.csr_matrix((w + w.T) * 10.0**exponent))
    solution = solved(a, b, n - 1)
    assert solution.eigenvalues.min() >= -1e-8
    assert solution.eigenvalues.max() <= 2 + 1e-8
    assert not two_sided or solution.eigenvalues.max() >= 2 - 1e-8
    degrees = b.diagonal()
    shares = degrees @ solution.vectors / np.sqrt(degrees.sum())
    np.testing.assert_allclose(shares, 0, atol=1e-8)


@pytest.mark.parametrize("width", [4, 20], ids=["few nonzeros", "many nonzeros"])
def test_large_problems_equal_the_dense_solver(width):
    a, b = reduced_problem(1300, width=width)
    assert (a.nnz < eigenproblem.SPARSE_DENSITY * a.shape[0] ** 2) == (width == 4)
    solution = solved(a, b, 6, following=True)
    expected = scipy.linalg.eigh(a.toarray(), b.toarray(), eigvals_only=True, subset_by_index=[1, 7])
    np.testing.assert_allclose(solution.eigenvalues, expected[:-1], atol=1e-10)
    assert solution.following == pytest.approx(expected[-1], rel=1e-3)
    assert solution.following >= expected[-1] - 1e-12
    assert solution.residuals.max() < 1e-8
    check(a, b, solution, 6)


@pytest.mark.parametrize("n", [90, 1300])
def test_a_lower_triangle_stands_for_the_whole_matrix(n):
    a, b = reduced_problem(n)
    of_wholes, of_triangles = solved(a, b, 3), solved(lower_triangle(a), lower_triangle(b), 3)
    np.testing.assert_allclose(of_triangles.eigenvalues, of_wholes.eigenvalues, rtol=1e-12)
    np.testing.assert_allclose(of_triangles.vectors, of_wholes.vectors, atol=1e-9)


@pytest.mark.parametrize("width", [4, 30], ids=["few nonzeros", "many nonzeros"])
def test_the_factor_solves_whatever_its_envelope_and_runs_the_same_on_threads(width):
    n = eigenproblem.SLAB_ROWS + 2 * eigenproblem.PANEL_COLUMNS  # panels of several slabs, in either case
    a, b = reduced_problem(n, width=width)
    assert (a.nnz < eigenproblem.SPARSE_DENSITY * n**2) == (width == 4)
    shuffled = np.random.default_rng(2).permutation(n)
    a, b = a[shuffled][:, shuffled], b[shuffled][:, shuffled]
    halves = Triangle(lower_triangle(a)), Triangle(lower_triangle(b))
    right = np.random.default_rng(3).normal(size=(n, 4))
    with ThreadPoolExecutor(3) as pool:
        factors = EnvelopeFactor(*halves, 0.3), EnvelopeFactor(*halves, 0.3, pool.map)
    expected = scipy.linalg.solve(a.toarray() + 0.3 * b.toarray(), right)
    np.testing.assert_allclose(factors[0].solve(right), expected, atol=1e-10 * abs(expected).max())
    np.testing.assert_allclose(factors[0].solve(right[:, 0]), expected[:, 0], atol=1e-10 * abs(expected).max())
    np.testing.assert_array_equal(factors[0].solve(right), factors[1].solve(right))


def test_the_factor_refuses_what_is_not_positive_definite():
    indefinite = Triangle(lower_triangle(sp.csr_matrix([[1.0, 2.0], [2.0, 1.0]])))
    with pytest.raises(np.linalg.LinAlgError):
        EnvelopeFactor(indefinite, Triangle(sp.csr_matrix((2, 2))), 1.0)


def test_asking_for_the_following_eigenvalue_changes_no_bit_of_the_others():
    a, b = reduced_problem(300)
    alone, solution = solved(a, b, 3), solved(a, b, 3, following=True)
    np.testing.assert_array_equal(solution.vectors, alone.vectors)
    expected = scipy.linalg.eigh(a.toarray(), b.toarray(), eigvals_only=True)[4]
    assert solution.following == pytest.approx(expected, rel=1e-9)
    assert solved(*laplacian(ring(4)), 3, following=True).following == np.inf


@pytest.mark.parametrize(("n", "apart"), [(40, 1e-9), (1200, 1e-7)])
def test_problems_drop_unused_landmarks_and_say_so(n, apart):
    a, b = reduced_problem(n)
    place = np.delete(np.arange(n + 2), [3, 17])
    wide = sp.csr_matrix((np.ones(n), (np.arange(n), place)), shape=(n, n + 2))
    solution, plain = solved(wide.T @ a @ wide, wide.T @ b @ wide, 3), solved(a, b, 3)
    assert solution.dropped.tolist() == [3, 17]
    np.testing.assert_array_equal(solution.vectors[[3, 17]], 0)
    np.testing.assert_allclose(solution.vectors[place], plain.vectors, atol=apart)


@pytest.mark.parametrize("sizes", [(20, 30, 25), (600, 500, 400)])
def test_zero_eigenvalues_count_components_and_the_constant_leaves_the_rest(sizes):
    a, b = laplacian(sp.csr_matrix(sp.block_diag([ring(n) for n in sizes])))
    solution = solved(a, b, 4)
    assert solution.n_zero == 3
    np.testing.assert_allclose(solution.eigenvalues[:2], 0, atol=1e-10)
    np.testing.assert_allclose(solution.vectors.T @ (b @ np.ones(sum(sizes))), 0, atol=1e-8)
    check(a, b, solution, 4)


def test_without_a_constant_nothing_is_left_out():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(30, 30))
    a, b = sp.csr_matrix(root @ root.T), sp.csr_matrix(np.diag(rng.random(30) + 1))
    expected = scipy.linalg.eigh(a.toarray(), b.toarray(), eigvals_only=True)[:3]
    np.testing.assert_allclose(solved(a, b, 3, constant=False).eigenvalues, expected, rtol=1e-8)
    with pytest.raises(NumericalError, match="sum to zero"):
        solved(a, b, 3)


@pytest.mark.parametrize("n", [50, 1400])
def test_repeated_landmarks_are_refused(n):
    a, b = reduced_problem(n)
    halves = sp.eye_array(n, format="lil")
    double = sp.hstack([halves, sp.csr_matrix(([0.0], ([0], [0])), shape=(n, 1))]).tolil()
    double[5, 5], double[5, n] = 0.5, 0.5
    spread = sp.csr_matrix(double)
    with pytest.raises(RankError, match="repeated"):
        solved(spread.T @ a @ spread, spread.T @ b @ spread, 2)


@pytest.mark.parametrize(("share", "is_refused"), [(0.5, True), (2.0, False)])
def test_b_is_singular_below_the_least_condition_whatever_its_scale(share, is_refused):
    scales = np.array([1e-3, 1.0, 50.0, 7.0])
    unit = np.eye(4)
    unit[0, 1] = unit[1, 0] = 1 - share * eigenproblem.RANK_TOLERANCE  # the least eigenvalue is that share
    b = sp.csr_matrix(unit * scales[:, None] * scales)
    a = sp.csr_matrix(np.diag(scales**2))
    with pytest.raises(RankError, match="singular") if is_refused else contextlib.nullcontext():
        solved(a, b, 2, constant=False)


def test_more_components_than_landmarks_are_refused():
    with pytest.raises(RankError, match="at most 9"):
        solved(*laplacian(ring(10)), 10)


def crowded_problem(n):
    """A problem whose eigenvalues are equally spaced from one to two: too close for a small Krylov space."""
    return sp.csr_matrix(sp.diags_array(np.linspace(1, 2, n))), sp.csr_matrix(sp.eye_array(n))


def test_a_solver_that_stops_early_says_so():
    with pytest.raises(ConvergenceError, match="stopped at residual"):
        solve_reduced(*crowded_problem(eigenproblem.DENSE_LANDMARKS + 1), 1, constant=False)


def test_few_landmarks_are_solved_dense_where_a_space_is_too_small():
    a, b = crowded_problem(700)
    expected = solve_reduced(a, b, 1, constant=False, following=True)
    solution = solve_reduced(a, b, 1, constant=False, following=True, dense_up_to=100)
    np.testing.assert_array_equal(solution.vectors, expected.vectors)
    assert solution.following == expected.following


def test_same_input_same_bits():
    a, b = reduced_problem(1100)
    one, other = solved(a, b, 3), solved(a, b, 3)
    np.testing.assert_array_equal(one.vectors, other.vectors)


def test_sign_rule_breaks_ties_by_row():
    np.testing.assert_array_equal(sign_rule(np.array([[-2.0, 1.0], [2.0, -3.0]])), [[2.0, -1.0], [-2.0, 3.0]])
