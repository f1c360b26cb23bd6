"""Bounds on eigenvectors and eigenvalues, against the exact ones of dense solves."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.spectral.accuracy import Following, following_value, subspace_accuracy


def ritz(matrix, vectors):
    """Return Ritz values, descending, unit Ritz vectors and their residuals."""
    basis = np.linalg.qr(vectors)[0]
    values, rotation = np.linalg.eigh(basis.T @ matrix @ basis)
    values, vectors = values[::-1], basis @ rotation[:, ::-1]
    return values, vectors, np.linalg.norm(matrix @ vectors - vectors * values, axis=0)


def leading(matrix, count):
    """Return the largest eigenvalues and their eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def matrix_of(spectrum, seed):
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(spectrum), len(spectrum))))[0]
    return (rotation * spectrum) @ rotation.T


@given(
    seed=st.integers(0, 2**31),
    n_kept=st.integers(1, 4),
    n_following=st.integers(1, 6),
    eigengap=st.sampled_from([1e-6, 1e-4, 1e-2, 0.2]),
    error=st.sampled_from([1e-9, 1e-6, 1e-4, 1e-3, 1e-2]),
)
def test_no_angle_and_no_eigenvalue_is_farther_off_than_the_bounds(seed, n_kept, n_following, eigengap, error):
    draws = np.random.default_rng(seed)
    rest = 0.97 - eigengap - np.append(0, np.cumsum(draws.uniform(0.005, 0.08, 24)))
    spectrum = np.append(np.linspace(0.99, 0.97, n_kept) if n_kept > 1 else [0.97], rest)
    matrix = matrix_of(spectrum, seed)
    exact_values, exact = leading(matrix, n_kept + n_following)
    values, vectors, residuals = ritz(matrix, exact + error * draws.normal(size=exact.shape))
    following = Following(values[n_kept:], residuals[n_kept:])
    found = subspace_accuracy(values[:n_kept], residuals[:n_kept], following, rounding=1e-15)
    if found.angle_bound is not None:
        assert subspace_angle(vectors[:, :n_kept], exact[:, :n_kept]) <= found.angle_bound + 1e-12
    if found.resolved_angle_bound is not None:
        first = slice(found.resolved_components)
        assert subspace_angle(vectors[:, first], exact[:, first]) <= found.resolved_angle_bound + 1e-12
    assert (found.resolved_components == n_kept) == (found.angle_bound is not None)
    assert np.abs(exact_values[:n_kept] - values[:n_kept]).max() <= found.eigenvalue_error_bound + 1e-14
    assert found.eigengap == pytest.approx(values[n_kept - 1] - values[n_kept], abs=1e-15)
    if error <= 1e-6 and eigengap >= 1e-2:
        assert found.angle_bound is not None
        assert found.angle_bound < 1e-2  # a bound that says nothing would pass above


def test_one_value_that_follows_gives_the_sine_theorem():
    found = subspace_accuracy(np.array([0.9, 0.8]), np.array([3e-3, 4e-3]), Following.one(0.75, 0.0))
    assert found.angle_bound == pytest.approx(np.arcsin(5e-3 / 0.05))
    assert found.eigenvalue_error_bound == pytest.approx(5e-3**2 / 0.05)
    assert found.eigengap == pytest.approx(0.05)


def test_the_residual_of_what_follows_narrows_the_gap():
    wide, narrow = (
        subspace_accuracy(np.array([0.9]), np.array([1e-3]), Following.one(0.8, error)) for error in (0.0, 0.05)
    )
    assert np.sin(narrow.angle_bound) == pytest.approx(2 * np.sin(wide.angle_bound))


@pytest.mark.parametrize("value", [0.9, 0.90000001, 0.95])
def test_where_no_gap_is_left_no_angle_is_stated(value):
    found = subspace_accuracy(np.array([0.9]), np.array([1e-8]), Following.one(value, 1e-7))
    assert found.angle_bound is None
    assert (found.resolved_components, found.resolved_angle_bound) == (0, None)
    assert found.eigenvalue_error_bound == 1e-8
    assert found.eigengap <= 0


def test_a_near_neighbour_beyond_the_last_vector_kept_costs_little_where_it_is_known_too():
    """Eigenvalues 1e-5 apart: the sine theorem alone says nothing at residuals of 1e-5."""
    spectrum = np.append([0.99, 0.98, 0.98 - 1e-5], np.linspace(0.9, -0.5, 57))
    matrix = matrix_of(spectrum, 0)
    exact = leading(matrix, 4)[1]
    values, vectors, residuals = ritz(matrix, exact + 1e-6 * np.random.default_rng(1).normal(size=exact.shape))
    known = subspace_accuracy(values[:2], residuals[:2], Following(values[2:], residuals[2:]))
    alone = subspace_accuracy(values[:2], residuals[:2], Following.one(values[2], residuals[2]))
    assert subspace_angle(vectors[:, :2], exact[:, :2]) <= known.angle_bound < 1e-3
    assert alone.angle_bound is None
    assert alone.resolved_components == 1
    assert subspace_angle(vectors[:, :1], exact[:, :1]) <= alone.resolved_angle_bound < 1e-2


def test_first_columns_are_told_from_others_where_the_last_gap_is_not_resolved():
    """Of eigenvalues 0.95, 0.9, 0.5 and 0.49 at residuals of 0.05, two have vectors that no other pair comes near."""
    values, residuals = np.array([0.95, 0.9, 0.5]), np.full(3, 0.05)
    found = subspace_accuracy(values, residuals, Following.one(0.49, 0.05))
    assert found.angle_bound is None
    assert found.resolved_components == 2
    rest = Following(np.array([0.5, 0.49]), np.full(2, 0.05))
    assert found.resolved_angle_bound == subspace_accuracy(values[:2], residuals[:2], rest).angle_bound
    assert np.sin(found.resolved_angle_bound) == pytest.approx(0.05 * np.sqrt(2) / 0.35, rel=0.01)


def test_an_eigenvalue_is_no_farther_off_than_the_largest_that_there_can_be():
    found = subspace_accuracy(np.array([0.9, 0.8]), np.array([0.3, 0.4]), Following.one(0.75, 0.1), largest=1.0)
    assert found.eigenvalue_error_bound == pytest.approx(0.2)


@pytest.fixture(scope="module")
def graph(knn_affinities):
    """W of 800 points, and the spectrum and eigenvectors of S, the trivial one first."""
    weights = sp.csr_matrix(knn_affinities(800))
    scale = 1 / np.sqrt(np.asarray(weights.sum(axis=1)).ravel())
    return weights, *leading(weights.toarray() * scale[:, np.newaxis] * scale, 800)


@pytest.mark.parametrize("dense_up_to", [2500, 10])
@pytest.mark.parametrize("n_kept", [1, 2, 5])
def test_the_value_that_follows_is_that_of_a_dense_solve(graph, dense_up_to, n_kept):
    weights, values, vectors = graph
    kept = slice(1, 1 + n_kept)
    found = following_value(weights, values[kept], vectors[:, kept], dense_up_to)
    gap = values[n_kept] - values[n_kept + 1]
    assert abs(found.values[0] - values[n_kept + 1]) <= 0.1 * gap + 1e-12
    assert found.residuals[0] <= 0.11 * gap


@pytest.mark.parametrize("dense_up_to", [2500, 10])
def test_an_eigenvalue_that_is_missing_among_those_kept_is_found(graph, dense_up_to):
    weights, values, vectors = graph
    kept = [1, 3]
    following = following_value(weights, values[kept], vectors[:, kept], dense_up_to)
    assert following.values[0] == pytest.approx(values[2], abs=1e-2 * abs(values[2] - values[3]) + 1e-12)
    found = subspace_accuracy(values[kept], np.full(2, 1e-12), following)
    assert found.eigengap < 0
    assert found.angle_bound is None


def test_nothing_follows_where_all_vectors_are_kept():
    weights = sp.csr_matrix(np.ones((3, 3)) - np.eye(3))
    vectors = np.array([[1, -1, 0], [1, 1, -2]]).T / np.sqrt([2, 6])
    found = subspace_accuracy(np.full(2, -0.5), np.zeros(2), following_value(weights, np.full(2, -0.5), vectors))
    assert found.angle_bound == 0
    assert found.eigengap == 0.5
