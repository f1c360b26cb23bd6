"""Principal components and discriminants of reduced problems, against dense matrices."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from scalemani.errors import RankError
from scalemani.kernels.measures import subspace_angle
from scalemani.kernels.spectral.linear import add_moments, discriminants, independent, principal_components, row_space


def weights_and_points(n_points=200, n_landmarks=12, n_features=7, seed=0):
    rng = np.random.default_rng(seed)
    indices = np.array([rng.choice(n_landmarks, 3, replace=False) for _ in range(n_points)])
    values = rng.dirichlet(np.ones(3), n_points)
    z = np.zeros((n_points, n_landmarks))
    np.put_along_axis(z, indices, values, axis=1)
    return indices, values, z, rng.normal(size=(n_points, n_features)) @ np.diag(3.0 ** -np.arange(n_features)) + 5


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_moments_are_those_of_dense_matrices(dtype):
    indices, values, z, points = weights_and_points()
    rows, center = points.astype(dtype), np.arange(7.0)
    moments, weights = np.zeros((12, 7)), np.zeros(12)
    for part in (slice(0, 90), slice(90, 200)):
        add_moments(rows[part], center, indices[part], values[part], moments, weights)
    np.testing.assert_allclose(moments, z.T @ (rows - center), atol=1e-10)
    np.testing.assert_allclose(weights, z.sum(axis=0), atol=1e-12)


def test_components_are_the_extremes_over_what_landmarks_can_say():
    """The scores are the projections of the points' principal directions within the span of Z, by QR of Z."""
    _, _, z, points = weights_and_points()
    centred = points - points.mean(axis=0)
    found = principal_components(sp.csr_matrix(z.T @ z), z.T @ centred, 3)
    basis = np.linalg.qr(z)[0]
    left, singular, _ = np.linalg.svd(basis.T @ centred)
    np.testing.assert_allclose(found.eigenvalues, singular[:3] ** 2, rtol=1e-10)
    scores = z @ found.vectors
    assert subspace_angle(scores, basis @ left[:, :3]) < 1e-8
    np.testing.assert_allclose(scores.T @ scores, np.diag(singular[:3] ** 2), atol=1e-9 * singular[0] ** 2)


def test_repeated_and_unused_landmarks_change_nothing():
    _, _, z, points = weights_and_points()
    centred = points - points.mean(axis=0)
    more = np.column_stack([z, z[:, :2], np.zeros(len(z))])
    plain = principal_components(sp.csr_matrix(z.T @ z), z.T @ centred, 3)
    found = principal_components(sp.csr_matrix(more.T @ more), more.T @ centred, 3)
    np.testing.assert_allclose(found.eigenvalues, plain.eigenvalues, rtol=1e-8)
    assert subspace_angle(more @ found.vectors, z @ plain.vectors) < 1e-7


def test_independent_columns_and_their_factor():
    _, _, z, _ = weights_and_points()
    twice = np.column_stack([z, z[:, 0] - z[:, 1]])
    kept, factor = independent(sp.csr_matrix(twice.T @ twice))
    assert len(kept) == 12
    np.testing.assert_allclose(factor.T @ factor, (twice.T @ twice)[np.ix_(kept, kept)], atol=1e-12)


def test_more_components_than_dimensions_are_refused():
    _, _, z, points = weights_and_points()
    with pytest.raises(RankError, match="span 1 dimensions"):
        principal_components(sp.csr_matrix(np.ones((12, 12))), z.T @ points, 2)


def test_the_row_space_has_the_rank_of_the_matrix():
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(9, 3)) @ rng.normal(size=(3, 20))
    axes = row_space(matrix)
    assert axes.shape == (20, 3)
    np.testing.assert_allclose(matrix @ axes @ axes.T, matrix, atol=1e-12)
    assert row_space(np.zeros((4, 5))).shape == (5, 0)


def test_discriminants_solve_the_generalised_problem_of_both_scatters():
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(4), 25)
    rows = rng.normal(size=(100, 6)) + 2 * rng.normal(size=(4, 6))[labels]
    rows -= rows.mean(axis=0)
    means = np.array([rows[labels == label].mean(axis=0) for label in range(4)])
    within = sum((rows[labels == c] - means[c]).T @ (rows[labels == c] - means[c]) for c in range(4))
    found = discriminants(rows.T @ rows, means, np.full(4, 25), 3)
    values, vectors = scipy.linalg.eigh(25 * means.T @ means, within)
    np.testing.assert_allclose(found.eigenvalues / (1 - found.eigenvalues), values[::-1][:3], rtol=1e-9)
    assert subspace_angle(found.vectors, vectors[:, ::-1][:, :3]) < 1e-8
    np.testing.assert_allclose(found.vectors.T @ within @ found.vectors / 96, np.eye(3), atol=1e-9)


def test_a_constant_feature_is_left_out():
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.normal(size=(60, 3)), np.zeros(60)])
    rows[:30, 0] += 4
    rows -= rows.mean(axis=0)
    means = np.array([rows[:30].mean(axis=0), rows[30:].mean(axis=0)])
    found = discriminants(rows.T @ rows, means, np.array([30, 30]), 1)
    assert found.vectors[3, 0] == 0
    assert np.isfinite(found.vectors).all()
