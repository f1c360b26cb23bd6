"""How isolated points are, against gaps and quantiles by brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors.isolation import FARTHEST, Gaps, gaps_of, n_around, ratios_to, spacings_of, usual_ratio

POINTS = np.random.default_rng(0).normal(size=(60, 3))


def others(points, k):
    """Return the (rows, distances) of the k nearest other ones of each point."""
    away = cdist(points, points)
    np.fill_diagonal(away, np.inf)
    rows = np.argsort(away, axis=1)[:, :k]
    return rows, np.take_along_axis(away, rows, axis=1)


@pytest.mark.parametrize(("k", "number"), [(1, 1), (2, 1), (3, 2), (5, 4), (6, 5), (9, 5)])
def test_the_gap_is_the_distance_of_the_fifth_or_the_last_but_one(k, number):
    np.testing.assert_array_equal(gaps_of(others(POINTS, k)[1]).lengths, np.sort(cdist(POINTS, POINTS))[:, number])


def test_gaps_of_points_left_out_are_those_of_the_other_points_alone():
    rows, distances = others(POINTS, 8)
    found = gaps_of(distances).left_out(rows[:, :5], distances[:, :5])
    for row, nearest in enumerate(rows[:, :5]):
        rest = np.delete(POINTS, row, axis=0)
        np.testing.assert_array_equal(found[row], np.sort(cdist(POINTS[nearest], rest))[:, 5])


def test_copies_have_the_gaps_of_the_point_that_they_are():
    rows = gaps_of(np.array([[0, 0, 2.0, 3], [0, 0, 0, 4], [0, 0, 0, 0], [1, 2, 3, 4]]))
    assert rows.lengths.tolist() == [2, 4, np.inf, 3]
    assert rows.lacking.tolist() == [3, 4, np.inf, 4]
    assert spacings_of(rows, 2.0).tolist() == [4, 8, 6, 6]  # the median gap is 3
    assert spacings_of(Gaps(*np.full((2, 3), np.inf)), 2.0).tolist() == [0, 0, 0]


@given(st.integers(0, 2**32 - 1), st.integers(0, 20), st.floats(1e2, 1e12))
def test_outliers_up_to_a_fifth_do_not_count(seed, percent, times):
    rng = np.random.default_rng(seed)
    usual = np.exp(0.3 * rng.normal(size=1000))
    outliers = times * np.exp(rng.normal(size=10 * percent))
    found = usual_ratio(rng.permutation(np.concatenate([usual, outliers, np.zeros(50)])))
    # Of the usual ones themselves, those beyond twice the quantile do not count either: few.
    assert np.quantile(usual, 0.965) <= found <= np.quantile(usual, 0.98, method="higher")


def test_without_ratios_that_are_told_apart_distances_are_compared_with_gaps():
    assert usual_ratio(np.zeros(9)) == usual_ratio(np.empty(0)) == 1.0
    assert usual_ratio(np.array([0.0, 5.0])) == 5.0


def test_ratios_are_finite_whatever_distances_and_scales_are():
    distances, scales = np.array([0, 0, 1, 3, np.inf, np.nan, 1e300]), np.array([0, 2, 0, 2, 1, 1, 1e-300])
    found = ratios_to(distances[:, np.newaxis], scales[:, np.newaxis])
    assert found.tolist() == [0, 0, FARTHEST, 1.5, FARTHEST, FARTHEST, FARTHEST]


def test_a_ratio_is_of_the_last_distance_to_the_median_scale_and_none_next_to_a_known_point():
    scales = np.array([[1e6, 2.0, 3, 1, 1e6]])
    distances = np.array([[4.0, 5, 6, 7, 8], [0.25, 5, 6, 7, 8], [0, 5, 6, 7, 8]])
    np.testing.assert_allclose(ratios_to(distances, np.repeat(scales, 3, 0)), [8 / 3, 2.5 / 3, 0])
    assert [n_around(others) for others in (0, 1, 4, 5, 80)] == [1, 1, 4, 5, 5]
