"""Eigenvalues at both ends against those of dense matrices, with motions that do not count."""

import numpy as np
import pytest
import scipy.linalg

from scalemani.methods.partial_hessian.kernels import extreme, metric_of, rigid_motions


def draws(seed, n_points=15, n_dims=2):
    draw = np.random.default_rng(seed)
    size = n_points * n_dims
    root, symmetric = draw.normal(size=(size, 2 * size)), draw.normal(size=(size, size))
    return draw.normal(size=(n_points, n_dims)), root @ root.T / size, symmetric + symmetric.T


@pytest.mark.parametrize("seed", range(4))
def test_both_ends_are_those_of_the_dense_problem_beside_motions(seed):
    positions, metric, hessian = draws(seed)
    shape = positions.shape
    motions = rigid_motions(positions)
    assert len(motions) == 3
    flat = np.array([motion.ravel() for motion in motions])
    still = scipy.linalg.null_space(flat).T  # H has no part along motions, as at a minimum
    hessian = still.T @ still @ hessian @ still.T @ still
    made = metric_of(
        lambda v: (metric @ v.ravel()).reshape(shape),
        lambda v: np.linalg.solve(metric, v.ravel()).reshape(shape),
        motions,
    )
    np.testing.assert_allclose(made.still.reshape(3, -1) @ metric @ made.still.reshape(3, -1).T, np.eye(3), atol=1e-10)

    def product(v):
        return (hessian @ v.ravel()).reshape(shape)

    start = np.random.default_rng(9).normal(size=shape)
    first = extreme(product, made, 1.0, start)
    second = extreme(product, made, 1.0 + first.value, start)
    basis = scipy.linalg.null_space(flat @ metric)
    values = scipy.linalg.eigh(basis.T @ hessian @ basis, basis.T @ metric @ basis, eigvals_only=True)
    ends = sorted([1 + first.value, 1 + first.value + second.value])
    np.testing.assert_allclose(ends, values[[0, -1]], rtol=2e-2, atol=1e-3)
    assert np.abs(values - 1 - first.value).min() <= first.residual + 1e-9


def test_turns_of_space_are_three_and_vanishing_motions_are_left_out():
    positions = np.random.default_rng(1).normal(size=(9, 3))
    assert len(rigid_motions(positions)) == 6
    assert len(rigid_motions(positions, turns=False)) == 3
    line = np.column_stack([np.zeros(5), np.zeros(5)])  # a turn of one place moves nothing
    assert len(metric_of(lambda v: v, lambda v: v, rigid_motions(line)).still) == 2
