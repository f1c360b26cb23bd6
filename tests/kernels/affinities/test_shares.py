"""Entropies of rows of weights, against their definition."""

import math

import numpy as np
import pytest

from scalemani.kernels.affinities.bandwidths import row_entropies


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entropies_are_those_of_the_shares(dtype):
    weights = np.random.default_rng(0).gamma(1.0, size=(40, 15)).astype(dtype)
    weights[3, 4:] = 0
    expected = [-sum(p * math.log(p) for p in (row / row.sum(dtype=float)).tolist() if p > 0) for row in weights]
    np.testing.assert_allclose(row_entropies(weights), expected, rtol=1e-6 if dtype == np.float32 else 1e-13)


def test_equal_weights_of_any_size_count_as_all_neighbours_and_one_weight_as_one():
    for weight in (np.finfo(np.float32).tiny, 1.0, 1e30):
        np.testing.assert_allclose(np.exp(row_entropies(np.full((2, 9), weight, np.float32))), 9)
    np.testing.assert_array_equal(row_entropies(np.eye(3)), 0)
