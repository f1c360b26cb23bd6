"""Discriminants of reduced problems, against dense matrices."""

import numpy as np
import scipy.linalg

from scalemani.kernels.measures import subspace_angle
from scalemani.methods.lda.kernels import discriminants, row_space


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
