"""Draws of a determinantal process against its probabilities, over all sets, and the errors that follow."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

import scalemani as sm
from scalemani.errors import ConfigError, DataError

POINTS = np.random.default_rng(0).normal(size=(7, 2))
KERNEL = 2 * np.exp(-0.5 * np.square(POINTS[:, np.newaxis] - POINTS).sum(axis=2))
N_DRAWS = 800


def frequencies(n_drawn, **options):
    draws = (sm.determinantal_draw(KERNEL, n_drawn, random_state=seed, **options) for seed in range(N_DRAWS))
    return Counter(tuple(sorted(draw.rows.tolist())) for draw in draws)


def determinants(sizes):
    return {rows: np.linalg.det(KERNEL[np.ix_(rows, rows)]) for k in sizes for rows in combinations(range(7), k)}


def agree(found, weights):
    """Compare counts with weights by chi squared; sets that are rarely expected count together."""
    total = sum(weights.values())
    expected = {rows: N_DRAWS * weight / total for rows, weight in weights.items()}
    usual = [rows for rows, count in expected.items() if count >= 5]
    observed = [found[rows] for rows in usual]
    rest = N_DRAWS - sum(observed), N_DRAWS - sum(expected[rows] for rows in usual)
    return chisquare([*observed, rest[0]], [*(expected[rows] for rows in usual), rest[1]]).pvalue > 0.001


def test_sets_of_any_size_come_by_their_determinants():
    """The empty set has one, and all of them add up to det(K + I)."""
    weights = determinants(range(8))
    assert sum(weights.values()) == pytest.approx(np.linalg.det(KERNEL + np.eye(7)))
    assert agree(frequencies(None), weights)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 3.0])
def test_sets_of_a_size_come_by_a_power_of_their_determinants(exponent):
    weights = {rows: value**exponent for rows, value in determinants([3]).items()}
    found = frequencies(3, exponent=exponent)
    assert agree(found, weights)
    other = {rows: value ** (exponent + 1) for rows, value in determinants([3]).items()}
    assert not agree(found, other)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_errors_are_those_of_all_sets(k):
    weights, errors = determinants([k]), {}
    for rows in weights:
        left = KERNEL[:, rows] @ np.linalg.inv(KERNEL[np.ix_(rows, rows)]) @ KERNEL[list(rows)]
        errors[rows] = np.trace(KERNEL) - np.trace(left)
    draw = sm.determinantal_draw(KERNEL, k, random_state=4)
    assert draw.error == pytest.approx(errors[tuple(sorted(draw.rows.tolist()))], abs=1e-9)
    mean = sum(weights[rows] * errors[rows] for rows in weights) / sum(weights.values())
    assert draw.expected == pytest.approx(mean, rel=1e-6)
    best = np.linalg.eigvalsh(KERNEL)[: 7 - k].sum()
    assert (draw.best, draw.bound) == (pytest.approx(best), pytest.approx((k + 1) * best))
    assert best - 1e-12 <= min(errors.values())
    assert draw.expected <= draw.bound


def test_what_is_no_kernel_and_no_exponent_is_refused():
    with pytest.raises(ConfigError, match="exponent must be 1, or with n_drawn"):
        sm.determinantal_draw(KERNEL, exponent=2.0)
    with pytest.raises(DataError, match="kernel must be symmetric"):
        sm.determinantal_draw(KERNEL + np.triu(KERNEL, 1), 2)
    with pytest.raises(DataError, match="kernel must be a square matrix"):
        sm.determinantal_draw(KERNEL[:3], 2)
