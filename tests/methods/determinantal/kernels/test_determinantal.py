from itertools import combinations

import numpy as np
import pytest

from scalemani.errors import ConfigError
from scalemani.methods.determinantal.kernels.determinantal import (
    MOST_POINTS,
    Spectrum,
    draw_dpp,
    draw_k_dpp,
    euclidean_kernel,
    geodesic_kernel,
    kernel_spectrum,
    log_elementary_polynomials,
    refuse_large,
)

DRAWS = 20_000
DEVIATIONS = 4.5  # of a binomial share: once in 150,000 comparisons


def drawn_points(n_points, seed=0):
    return np.random.default_rng(seed).normal(size=(n_points, 2))


def share_error(share, n_draws=DRAWS):
    return DEVIATIONS * np.sqrt(np.maximum(share * (1 - share), 1 / n_draws) / n_draws)


def test_points_are_included_as_often_as_the_marginal_kernel_says():
    kernel = 3.0 * euclidean_kernel(drawn_points(12), 0.7)
    expected = np.diag(kernel @ np.linalg.inv(kernel + np.eye(12)))
    spectrum, random = kernel_spectrum(kernel), np.random.default_rng(1)
    counts = np.zeros(12)
    for _ in range(DRAWS):
        counts[draw_dpp(spectrum, random)] += 1
    assert np.all(np.abs(counts / DRAWS - expected) < share_error(expected))


def test_pairs_are_included_as_often_as_the_marginal_kernel_says():
    kernel = 2.0 * euclidean_kernel(drawn_points(6, 3), 1.0)
    marginal = kernel @ np.linalg.inv(kernel + np.eye(6))
    spectrum, random = kernel_spectrum(kernel), np.random.default_rng(2)
    counts = np.zeros((6, 6))
    for _ in range(DRAWS):
        rows = draw_dpp(spectrum, random)
        counts[np.ix_(rows, rows)] += 1
    for i, j in combinations(range(6), 2):
        expected = marginal[i, i] * marginal[j, j] - marginal[i, j] ** 2
        assert abs(counts[i, j] / DRAWS - expected) < share_error(expected)


@pytest.mark.parametrize("n_drawn", [1, 3, 8])
def test_sets_of_a_fixed_size_come_as_often_as_their_determinants(n_drawn):
    kernel = euclidean_kernel(drawn_points(8, 5), 0.8)
    subsets = list(combinations(range(8), n_drawn))
    weights = np.array([np.linalg.det(kernel[np.ix_(subset, subset)]) for subset in subsets])
    expected = weights / weights.sum()
    spectrum, random = kernel_spectrum(kernel), np.random.default_rng(6)
    counts = dict.fromkeys(subsets, 0)
    for _ in range(DRAWS):
        counts[tuple(sorted(draw_k_dpp(spectrum, n_drawn, random).tolist()))] += 1
    shares = np.array(list(counts.values())) / DRAWS
    assert np.all(np.abs(shares - expected) < share_error(expected))


def test_polynomials_are_those_of_all_products():
    values = np.random.default_rng(0).random(7) * 5
    logarithms = log_elementary_polynomials(values, 4)
    for degree in range(5):
        for number in range(8):
            products = [np.prod(values[list(chosen)]) for chosen in combinations(range(number), degree)]
            np.testing.assert_allclose(np.exp(logarithms[degree, number]), np.sum(products), rtol=1e-12)


def test_polynomials_beyond_the_largest_float_are_finite():
    """Of 1,000 values of 1e4, e_500 is the binomial coefficient times 1e2000."""
    from scipy.special import gammaln

    logarithm = log_elementary_polynomials(np.full(1000, 1e4), 500)[500, 1000]
    expected = gammaln(1001) - 2 * gammaln(501) + 500 * np.log(1e4)
    np.testing.assert_allclose(logarithm, expected, rtol=1e-12)


def test_hundreds_of_rows_are_drawn_and_no_repeated_point_twice():
    points = np.repeat(drawn_points(150, 7), 2, axis=0)
    spectrum = kernel_spectrum(euclidean_kernel(points, 0.05))
    rows = draw_k_dpp(spectrum, 140, np.random.default_rng(8))
    assert len(np.unique(points[rows], axis=0)) == 140


def test_geodesic_distances_go_along_the_points():
    """Ends of a horseshoe are near each other across it, and far along it."""
    angles = np.linspace(0, 1.9 * np.pi, 200)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    across, along = euclidean_kernel(points, 1.0), geodesic_kernel(points, 1.0)
    assert across[0, -1] > 0.9
    np.testing.assert_allclose(np.sqrt(-2 * np.log(along[0, -1])), 1.9 * np.pi, rtol=0.01)
    np.testing.assert_array_equal(along, along.T)


def test_points_that_no_path_joins_have_nothing_in_common():
    points = np.concatenate([drawn_points(30), drawn_points(30) + 1e3])
    kernel = geodesic_kernel(points, 1.0)
    assert np.all(kernel[:30, 30:] == 0)
    assert np.all(kernel[:30, :30] > 0)


def test_repeated_points_are_at_no_geodesic_distance():
    points = np.repeat(drawn_points(20), 3, axis=0)
    kernel = geodesic_kernel(points, 1.0)
    np.testing.assert_array_equal(kernel[::3], kernel[1::3])
    assert np.all(kernel[np.arange(0, 60, 3), np.arange(2, 60, 3)] == 1)


def test_negative_eigenvalues_are_left_out():
    spectrum = kernel_spectrum(np.array([[1.0, 2.0], [2.0, 1.0]]))
    np.testing.assert_allclose(spectrum.values, [3.0])


@pytest.mark.parametrize("rank", [1, 3])
def test_what_rounding_leaves_of_a_kernel_of_low_rank_is_left_out(rank):
    factor = np.random.default_rng(4).normal(size=(40, rank))
    spectrum = kernel_spectrum(factor @ factor.T)
    np.testing.assert_allclose(spectrum.values, np.linalg.eigvalsh(factor.T @ factor), rtol=1e-12)


def test_more_than_the_kernel_has_rank_for_is_refused():
    spectrum = Spectrum(np.ones(3), np.eye(5)[:, :3])
    with pytest.raises(ConfigError, match=r"4 landmarks were asked for, but their kernel has rank 3 .* smaller sigma"):
        draw_k_dpp(spectrum, 4, np.random.default_rng(0))


def test_more_points_than_can_be_decomposed_are_refused():
    with pytest.raises(ConfigError, match="5001 points; take method 'dpp'"):
        refuse_large(MOST_POINTS + 1)
