"""Ridder's and Brent's methods against SciPy's root of the entropy written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import entropy

from scalemani.kernels.affinities.entropy import Row, bracket, differences_from_nearest, entropy_problem, padded_length
from scalemani.kernels.affinities.root_finders import brent_point, brent_root, ridder_root

K, PERPLEXITY, TOLERANCE = 24, 7.0, 1e-11


def problem_of(squared):
    """Return the row of squared distances (k,) and the bracket of its root."""
    differences = np.empty(padded_length(len(squared)))
    n_ties = differences_from_nearest(squared, differences)
    row = Row(differences, np.empty_like(differences), float(np.log(PERPLEXITY)), TOLERANCE, None)
    return row, *bracket(differences, n_ties, entropy_problem(K, PERPLEXITY, TOLERANCE))


def root_by_scipy(squared, lower, upper):
    def value(alpha):
        return entropy(np.exp(-np.exp(alpha) * (squared - squared[0]))) - np.log(PERPLEXITY)

    return np.exp(brentq(value, np.log(lower), np.log(upper), xtol=1e-14, rtol=1e-14))


@pytest.mark.parametrize("find", [ridder_root, brent_root])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.01, 0.99), scale=st.sampled_from([1e-8, 1.0, 1e9]))
def test_the_root_is_scipys_from_any_start_in_the_bracket(find, seed, share, scale):
    squared = np.sort(np.random.default_rng(seed).gamma(2.0, scale, K))
    row, lower, upper = problem_of(squared)
    start = lower ** (1 - share) * upper**share
    found = find(row, start, lower, upper)
    assert abs(found.residual) <= TOLERANCE
    assert found.beta == pytest.approx(root_by_scipy(squared, lower, upper), rel=1e-9)
    np.testing.assert_allclose(row.exponentials[:K], np.exp(-found.beta * (squared - squared[0])), rtol=1e-12)
    assert 0 < found.steps < 60


@pytest.mark.parametrize("find", [ridder_root, brent_root])
def test_a_bracket_that_begins_at_the_root_ends_there(find):
    squared = np.sort(np.random.default_rng(3).gamma(2.0, 1.0, K))
    row, lower, upper = problem_of(squared)
    beta = root_by_scipy(squared, lower, upper)
    for ends in ((beta, upper), (lower, beta)):
        assert find(row, np.sqrt(ends[0] * ends[1]), *ends).beta == pytest.approx(beta, rel=1e-8)


def test_brents_point_is_exact_where_the_interpolation_is():
    """Of a straight line the secant meets the root; of x = y^2 - 3 y the quadratic in y through three points does."""
    assert brent_point(1.0, 2.0, -3.0, -6.0, -3.0, -6.0) == pytest.approx(-1.0)
    inverse = {y: y * y - 3 * y for y in (0.5, -1.0, 2.0)}
    best, counter, former = inverse.items()
    step = brent_point(best[1], best[0], counter[1], counter[0], former[1], former[0])
    assert best[1] + step == pytest.approx(0.0, abs=1e-12)
