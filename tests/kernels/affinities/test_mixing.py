"""Memberships and their combinations, against the numbers of a few candidates."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.kernels.affinities.mixing import combined, log_memberships
from scalemani.kernels.measures import squared_distances_to

ROWS = np.random.default_rng(0).normal(size=(30, 4))
CANDIDATES = np.array([[1, 2, 3, 4, 5, 6, 6], [0, 2, 3, 4, 5, 7, 7]])
REPEATED = np.diff(CANDIDATES, axis=1, prepend=-1) == 0


@pytest.mark.parametrize("rows", [ROWS, ROWS.astype(np.float32), sp.csr_matrix(ROWS)])
def test_squares_are_those_of_differences(rows):
    dense = rows.toarray() if sp.issparse(rows) else rows.astype(np.float64)
    expected = ((dense[:2, None] - dense[CANDIDATES]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances_to(rows[:2], rows, CANDIDATES), expected, rtol=1e-12)


def test_memberships_have_the_perplexity_of_the_nearest_and_ties_share_alike():
    logs = log_memberships(squared_distances_to(ROWS[:2], ROWS, CANDIDATES), REPEATED, 5, 3.0)
    assert np.isneginf(logs[:, -1]).all()
    shares = np.exp(np.sort(logs, axis=1)[:, -5:])
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(-(shares * np.log(shares)).sum(axis=1), np.log(3.0), rtol=1e-8)
    tied = np.where(np.arange(30)[:, None] < 5, 0.0, 1.0)
    np.testing.assert_array_equal(
        log_memberships(squared_distances_to(tied[:2], tied, CANDIDATES), REPEATED, 5, 3.0)[0],
        [0, 0, 0, 0, -700, -700, -np.inf],
    )


def test_a_union_is_that_of_fuzzy_sets_and_a_mean_has_equal_shares():
    logs = np.log(np.array([[[1.0, 0.5, 0.25]], [[0.5, 1.0, 0.5]]]))
    union = combined(logs, "union", np.ones(2), 3, 2.0)[0]
    np.testing.assert_allclose(union, np.array([1.0, 1.0, 0.625]) / 2.625)
    mean = combined(logs, "mean", np.array([1.5, 0.5]), 3, 2.0)[0]
    np.testing.assert_allclose(mean, 0.75 * np.array([4, 2, 1]) / 7 + 0.25 * np.array([1, 2, 1]) / 4)
