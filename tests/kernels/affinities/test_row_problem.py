"""The value of F = H - log K and the sum of exponentials, against the entropy of NumPy's own probabilities."""

import numpy as np
import pytest
from scipy.stats import entropy

from scalemani.kernels.affinities.entropy import Row, differences_from_nearest, padded_length, value_at

K = 21


def row_of(squared, perplexity, tolerance=1e-10, masses=None):
    """Return the problem of squared distances (k,), with `masses` padded as the kernels pad them."""
    differences = np.empty(padded_length(len(squared)))
    differences_from_nearest(squared, differences)
    if masses is not None:
        masses = np.concatenate([masses, np.ones(len(differences) - len(masses))])
    return Row(differences, np.empty_like(differences), float(np.log(perplexity)), tolerance, masses)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("beta", [1e-3, 0.4, 30.0])
def test_the_value_is_the_entropy_less_that_of_the_perplexity(beta, weighted):
    draws = np.random.default_rng(0)
    squared = np.sort(draws.gamma(2.0, 1.0, K))
    masses = draws.integers(1, 5, K).astype(float) if weighted else None
    total, value = value_at(row_of(squared, 6.0, masses=masses), beta)
    exponentials = np.exp(-beta * (squared - squared[0]))
    counted = np.ones(K) if masses is None else masses
    p = exponentials / (counted * exponentials).sum()
    assert total == pytest.approx((counted * exponentials).sum(), rel=1e-12)
    # each of several equal neighbours has the affinity p
    assert value == pytest.approx(entropy(np.repeat(p, counted.astype(int))) - np.log(6.0), abs=1e-12)
