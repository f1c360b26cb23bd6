"""Moments of points over landmarks, and independent columns, against dense matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.kernels.spectral.linear import add_moments, independent
from tests.kernels.spectral.reduced_problems import weights_and_points


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_moments_are_those_of_dense_matrices(dtype):
    indices, values, z, points = weights_and_points()
    rows, center = points.astype(dtype), np.arange(7.0)
    moments, weights = np.zeros((12, 7)), np.zeros(12)
    for part in (slice(0, 90), slice(90, 200)):
        add_moments(rows[part], center, indices[part], values[part], moments, weights)
    np.testing.assert_allclose(moments, z.T @ (rows - center), atol=1e-10)
    np.testing.assert_allclose(weights, z.sum(axis=0), atol=1e-12)


def test_independent_columns_and_their_factor():
    _, _, z, _ = weights_and_points()
    twice = np.column_stack([z, z[:, 0] - z[:, 1]])
    kept, factor = independent(sp.csr_matrix(twice.T @ twice))
    assert len(kept) == 12
    np.testing.assert_allclose(factor.T @ factor, (twice.T @ twice)[np.ix_(kept, kept)], atol=1e-12)
