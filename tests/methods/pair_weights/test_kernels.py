"""Sums over the pairs of a matrix: parts side by side have the bits of one, other targets are refused."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.errors import ConfigError
from scalemani.methods.pair_weights.kernels import WeightedPairs


def sparse_pairs(n_points, n_pairs):
    draws = np.random.default_rng(3)
    rows, columns = draws.integers(0, n_points, (2, n_pairs))
    apart = rows != columns
    half = sp.csr_matrix((draws.random(apart.sum()), (rows[apart], columns[apart])), (n_points, n_points))
    return half + half.T


@pytest.mark.parametrize("kernel", ["student", "gaussian", "epanechnikov", 0.5])
def test_threads_have_the_same_bits_and_rows_are_those_of_numpy(kernel):
    n_points = 9000
    pairs, positions = sparse_pairs(n_points, 40_000), np.random.default_rng(4).normal(size=(n_points, 3))
    sums, gradients = WeightedPairs(kernel, pairs).field(positions)
    with ThreadPoolExecutor(3) as pool:
        others = WeightedPairs(kernel, pairs, pool.map).field(positions)
    np.testing.assert_array_equal(sums, others[0])
    np.testing.assert_array_equal(gradients, others[1])
    entries = pairs.tocoo()
    apart = positions[entries.row] - positions[entries.col]
    squares = (apart**2).sum(axis=1)
    values, slopes = {
        "student": lambda s: (1 / (1 + s), -1 / (1 + s) ** 2),
        "gaussian": lambda s: (np.exp(-s), -np.exp(-s)),
        "epanechnikov": lambda s: (np.maximum(0, 1 - s), np.where(s < 1, -1.0, 0.0)),
        0.5: lambda s: ((1 + s / 0.5) ** -0.5, -((1 + s / 0.5) ** -1.5)),
    }[kernel](squares)
    np.testing.assert_allclose(sums, np.bincount(entries.row, entries.data * values, n_points), rtol=1e-12, atol=1e-14)
    for axis in range(3):
        along = np.bincount(entries.row, 2 * entries.data * slopes * apart[:, axis], n_points)
        np.testing.assert_allclose(gradients[:, axis], along, rtol=1e-11, atol=1e-13)


def test_other_points_have_no_weights():
    pairs = WeightedPairs("gaussian", sparse_pairs(20, 50))
    for given in ({"targets": np.zeros((2, 2))}, {"charges": np.ones(20)}):
        with pytest.raises(ConfigError, match="none of other points"):
            pairs.field(np.zeros((20, 2)), **given)
