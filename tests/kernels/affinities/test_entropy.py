import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.affinities.entropy import (
    bracket,
    differences_from_nearest,
    entropy_and_derivatives,
    entropy_problem,
    padded_length,
    rest_mass,
)


def shifted(squared):
    differences = np.empty(padded_length(len(squared)))
    return differences, differences_from_nearest(np.asarray(squared, dtype=np.float64), differences)


def plain_entropy(squared, beta):
    """Entropy by its definition, in extended precision."""
    exponents = -np.longdouble(beta) * (np.asarray(squared, dtype=np.longdouble) - squared[0])
    p = np.exp(exponents)
    p /= p.sum()
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


def entropy(differences, beta):
    return entropy_and_derivatives(differences, np.empty_like(differences), None, beta)


@pytest.mark.parametrize("k", [2, 3, 15, 16, 17, 90])
def test_entropy_and_derivatives_match_the_definition(k):
    squared = np.sort(np.random.default_rng(k).gamma(4.0, 3.0, k)) + 50.0
    differences, n_ties = shifted(squared)
    assert n_ties == 1
    for beta in (1e-3, 0.1, 1.0, 30.0):
        total, found, slope, curvature = entropy(differences, beta)
        assert found == pytest.approx(plain_entropy(squared, beta), abs=1e-13)
        assert total == pytest.approx(np.exp(-beta * (squared - squared[0])).sum(), rel=1e-14)
        step = 1e-4
        ahead, behind = (plain_entropy(squared, beta * math.exp(s)) for s in (step, -step))
        assert slope == pytest.approx((ahead - behind) / (2 * step), abs=2e-7)
        assert curvature == pytest.approx((ahead - 2 * found + behind) / step**2, abs=2e-6)


def test_differences_count_ties_and_pad_with_infinity():
    differences, n_ties = shifted([2.0, 2.0, 2.0, 5.0])
    assert n_ties == 3
    assert np.array_equal(differences[:4], [0.0, 0.0, 0.0, 3.0])
    assert np.all(np.isinf(differences[4:]))


rows = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=60).map(sorted)
exponents = st.integers(-150, 150)


@settings(derandomize=True, deadline=None)
@given(row=rows, exponent=exponents, log_beta=st.floats(-12.0, 12.0), factor=st.floats(1.0, 3.0))
def test_entropy_does_not_increase_with_beta(row, exponent, log_beta, factor):
    differences, _ = shifted(np.square(np.array(row)) * 10.0**exponent)
    beta = math.exp(log_beta) * 10.0**-exponent
    before, after = (entropy(differences, b)[1] for b in (beta, beta * factor))
    assert after <= before + 1e-12


@pytest.mark.parametrize(
    ("k", "perplexity"),
    [(2, 1.001), (20, 1.0 + 4e-16), (3, 2.9), (15, 5.0), (90, 30.0), (250, 30.0), (10_000, 9_999.0)],
)
def test_rest_mass_solves_its_equation(k, perplexity):
    rest = rest_mass(k, perplexity)
    assert 0.0 < rest <= 0.25
    target = math.log(min(math.sqrt(2 * k), perplexity))
    assert 2 * rest * math.log(k / (2 * rest)) == pytest.approx(target, rel=1e-12)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(row=rows, exponent=exponents, ties=st.integers(1, 4), share=st.floats(1e-6, 1.0 - 1e-6))
def test_bracket_holds_the_root(row, exponent, ties, share):
    squared = np.square(np.array([row[0]] * (ties - 1) + row)) * 10.0 ** (2 * exponent)
    differences, n_ties = shifted(squared)
    k = len(squared)
    if n_ties == k:
        return
    perplexity = max(n_ties, 1) + share * (k - n_ties)
    if not n_ties < perplexity < k:
        return
    lower, upper = bracket(differences, n_ties, entropy_problem(k, perplexity, 1e-10))
    assert 0.0 < lower < upper < math.inf
    assert entropy(differences, lower)[1] >= math.log(perplexity) - 1e-12
    assert entropy(differences, upper)[1] <= math.log(perplexity) + 1e-12
