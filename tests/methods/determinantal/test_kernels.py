import re
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from scalemani.errors import ConfigError, DataError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.landmarks.quality import spacing_sigma
from scalemani.methods.determinantal.kernels import (
    GEODESIC_NEIGHBORS,
    MOST_POINTS,
    PROPOSED,
    DeterminantalChoice,
    Spectrum,
    draw_from_span,
    draw_k_dpp,
    draw_repulsive,
    euclidean_kernel,
    geodesic_kernel,
    kernel_spectrum,
    log_elementary_polynomials,
    refuse_large,
)
from scalemani.methods.determinantal.rules import coverage, determinantal, repulsive

METHODS = {"dpp": repulsive, "dpp-exact": determinantal}


def drawn(n_points=400, n_columns=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n_points, n_columns))


@pytest.mark.parametrize("n_landmarks", [2, 3, 40, 400])
@pytest.mark.parametrize("unit", [1e-60, 1.0, 1e60])
def test_kernels_at_the_chosen_sigma_add_up_to_two_at_a_random_point(n_landmarks, unit):
    points = drawn() * unit
    sigma = np.mean([spacing_sigma(points, n_landmarks, seed) for seed in range(10)])
    draws = np.random.default_rng(1)
    sums = []
    for _ in range(30):
        some = points[draws.choice(400, n_landmarks, replace=False)] / sigma
        squares = ((some[:, np.newaxis] - some) ** 2).sum(axis=2)
        sums.append(np.exp(-squares / 2).sum(axis=1).mean() - 1)
    wanted = min(2.0, (n_landmarks - 1) / 2)
    assert np.mean(sums) == pytest.approx(wanted, rel=0.6 if n_landmarks < 10 else 0.25)


@pytest.mark.parametrize(("n_points", "n_columns", "n_landmarks"), [(4000, 1, 60), (4000, 2, 60), (4000, 10, 200)])
def test_coverage_at_the_chosen_sigma_is_near_the_best(n_points, n_columns, n_landmarks):
    points = np.random.default_rng(2).random(size=(n_points, n_columns))

    def mean_distance(sigma):
        draws = [draw_repulsive(points, DeterminantalChoice(n_landmarks, seed=seed), sigma).rows for seed in range(4)]
        full = [rows for rows in draws if len(rows) == n_landmarks]
        return np.mean([coverage(points, points[rows], 0)["mean_distance_to_nearest_landmark"] for rows in full])

    usual = spacing_sigma(points, n_landmarks, 0)
    best = min(mean_distance(usual * factor) for factor in (0.25, 0.5, 0.7, 1.4))
    assert mean_distance(usual) < 1.06 * best


@pytest.mark.parametrize("method", METHODS)
def test_a_sigma_that_is_too_large_is_refused_with_one_that_does(method):
    points, select = drawn(), METHODS[method]
    with pytest.raises(ConfigError, match=r"sigma=1e\+08 is too large for these points: .* would do") as refused:
        select(points, DeterminantalChoice(100, sigma=1e8))
    offered = float(re.search(r"sigma=(\S+) would do", str(refused.value)).group(1))
    assert len(set(select(points, DeterminantalChoice(100, sigma=offered)).rows.tolist())) == 100


@pytest.mark.parametrize("method", METHODS)
def test_a_sigma_that_is_too_small_is_refused_with_one_that_does(method):
    points, select = drawn(), METHODS[method]
    with pytest.raises(ConfigError, match=r"sigma=1e-09 is too small for these points: .* would do") as refused:
        select(points, DeterminantalChoice(100, sigma=1e-9))
    offered = float(re.search(r"sigma=(\S+) would do", str(refused.value)).group(1))
    assert len(set(select(points, DeterminantalChoice(100, sigma=offered)).rows.tolist())) == 100


@pytest.mark.parametrize("method", METHODS)
def test_no_sigma_is_too_small_for_one_landmark_which_has_none_to_repel(method):
    assert METHODS[method](drawn(), DeterminantalChoice(1, sigma=1e-9)).rows.shape == (1,)


@pytest.mark.parametrize("method", METHODS)
def test_landmarks_of_repeated_points_are_distinct(method):
    points = np.repeat(drawn(60), 5, axis=0)
    points[:100] = points[0]
    rows = METHODS[method](points, DeterminantalChoice(41)).rows
    assert len(np.unique(points[rows], axis=0)) == 41
    with pytest.raises(DataError, match="42 landmarks were requested, but these 300 points have only 41 distinct rows"):
        METHODS[method](points, DeterminantalChoice(42))


def test_landmarks_among_points_that_are_next_to_all_equal_are_refused():
    points = np.zeros((200_000, 1))
    points[:20, 0] = np.arange(20)
    with pytest.raises(DataError, match="most are repeated; drop repeated rows"):
        repulsive(points, DeterminantalChoice(15, sample_points=1000))


@pytest.mark.parametrize(("geodesic", "kernel"), [(False, euclidean_kernel), (True, geodesic_kernel)])
def test_exact_landmarks_are_drawn_from_the_kernel_that_was_asked_for(geodesic, kernel):
    angles = np.linspace(0, 1.9 * np.pi, 200)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    found = determinantal(points, DeterminantalChoice(8, seed=5, sigma=0.8, geodesic=geodesic))
    expected = draw_k_dpp(kernel_spectrum(kernel(points, 0.8)), 8, generator(5, "landmarks/dpp-exact"))
    np.testing.assert_array_equal(found.rows, np.sort(expected))


def test_certificates_say_how_landmarks_were_drawn_and_what_they_cover():
    points = drawn()
    found = repulsive(points, DeterminantalChoice(30, sigma=0.3))
    distances = np.linalg.norm(points[:, np.newaxis] - points[found.rows], axis=2).min(axis=1)
    assert found.certificates["sigma"] == 0.3
    assert 0.1 < found.certificates["acceptance"] < 1
    assert found.certificates["mean_distance_to_nearest_landmark"] == pytest.approx(distances.mean())
    assert found.certificates["largest_distance_to_nearest_landmark"] == pytest.approx(distances.max())


def test_exact_sampling_of_many_points_is_refused_before_they_are_read():
    class Unread:
        def __len__(self):
            return MOST_POINTS + 1

    with pytest.raises(ConfigError, match="take method 'dpp'"):
        determinantal(Unread(), DeterminantalChoice(10))


DRAWS = 20_000
DEVIATIONS = 4.5  # of a binomial share: once in 150,000 comparisons


def drawn_points(n_points, seed=0):
    return np.random.default_rng(seed).normal(size=(n_points, 2))


def share_error(share, n_draws=DRAWS):
    return DEVIATIONS * np.sqrt(np.maximum(share * (1 - share), 1 / n_draws) / n_draws)


def draw_dpp(spectrum, random):
    """Return rows of the process of any size: each eigenvector takes part by itself, [DPP] 3.1, algorithm 1."""
    chosen = random.random(len(spectrum.values)) < spectrum.values / (1.0 + spectrum.values)
    return draw_from_span(spectrum.vectors[:, chosen], random)


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


def path_lengths(points, n_neighbors):
    """Return the lengths of shortest paths over the graph of nearest neighbours: a detour by each point in turn."""
    away = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
    listed = away <= np.sort(away, axis=1)[:, [n_neighbors]]
    lengths = np.where(listed | listed.T, away, np.inf)
    for middle in range(len(points)):
        lengths = np.minimum(lengths, lengths[:, [middle]] + lengths[middle])
    return lengths


@pytest.mark.parametrize("sigma", [0.3, 2.5])
def test_kernels_fall_to_exp_of_minus_a_half_at_the_distance_sigma(sigma):
    points = 3 * drawn_points(60, 9)
    away = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
    for kernel, lengths in ((euclidean_kernel, away), (geodesic_kernel, path_lengths(points, GEODESIC_NEIGHBORS))):
        np.testing.assert_allclose(kernel(points, sigma), np.exp(-((lengths / sigma) ** 2) / 2), atol=1e-12)


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
    with pytest.raises(ConfigError, match=r"4 landmarks were requested, but their kernel has rank 3 .* smaller sigma"):
        draw_k_dpp(spectrum, 4, np.random.default_rng(0))


def test_more_points_than_can_be_decomposed_are_refused():
    with pytest.raises(ConfigError, match="5001 points; take method 'dpp'"):
        refuse_large(MOST_POINTS + 1)


SEQUENCES = 12_000


def update(distances, sigma, rule="gaussian"):
    if rule == "gaussian":
        return 1 - np.exp(-(distances**2) / (2 * sigma**2))
    ratio = distances / (np.sqrt(2) * sigma)
    return np.where(ratio < np.pi / 2, np.sin(ratio) ** 2, 1.0)


def sequences(points, choice, sigma):
    """Return the probability of every sequence of rows under algorithm 2, with all of D at hand."""
    distances = np.sqrt(((points[:, np.newaxis] - points) ** 2).sum(axis=2))
    found = {}

    def go_on(rows, D, probability):
        if len(rows) == choice.n_landmarks:
            found[rows] = probability
            return
        for i in np.flatnonzero(D > 0):
            m = len(points) - 1 if choice.neighborhood is None else choice.neighborhood
            nearest = np.argsort(distances[i], kind="stable")[: m + 1]  # itself first
            lowered = D.copy()
            lowered[nearest] *= update(distances[i, nearest], sigma, choice.update)
            go_on((*rows, int(i)), lowered, probability * D[i] / D.sum())

    go_on((), np.ones(len(points)), 1.0)
    return found


@pytest.mark.parametrize("rule", ["gaussian", "sine"])
@pytest.mark.parametrize(("neighborhood", "sigma"), [(None, 0.8), (6, 0.8), (3, 1.5), (1, 5.0)])
def test_landmarks_are_drawn_as_algorithm_2_draws_them(rule, neighborhood, sigma):
    points = np.random.default_rng(0).normal(size=(7, 2))
    choice = DeterminantalChoice(3, update=rule, neighborhood=neighborhood)
    expected = sequences(points, choice, sigma)
    draws = (draw_repulsive(points, replace(choice, seed=seed), sigma) for seed in range(SEQUENCES))
    counts = Counter(tuple(draw.rows.tolist()) for draw in draws)
    assert set(counts) <= set(expected)
    likely = {rows: SEQUENCES * share for rows, share in expected.items() if SEQUENCES * share >= 5}
    rest = SEQUENCES - sum(likely.values())
    square = sum((counts[rows] - mean) ** 2 / mean for rows, mean in likely.items())
    n_rest = SEQUENCES - sum(counts[rows] for rows in likely)
    square += (n_rest - rest) ** 2 / max(rest, 1.0)
    # The chi-square of so many degrees of freedom has the deviation sqrt(2 df).
    assert square < len(likely) + 4.5 * np.sqrt(2 * len(likely))


def test_most_landmarks_of_few_points_are_drawn_where_probabilities_are_tiny():
    """By the last landmarks every D is far below one in a million; what is left is drawn in proportion all the same."""
    points = np.random.default_rng(1).normal(size=(60, 2))
    draw = draw_repulsive(points, DeterminantalChoice(30), 2.0)
    assert len(set(draw.rows.tolist())) == 30
    distances = np.sqrt(((points[:, np.newaxis] - points[draw.rows[:29]]) ** 2).sum(axis=2))
    assert update(distances, 2.0).prod(axis=1).max() < 1e-6


class Reader:
    """Points that are read by rows, and counted."""

    def __init__(self, points):
        self.points, self.most, self.read = points, 0, 0

    def __len__(self):
        return len(self.points)

    def __getitem__(self, rows):
        self.most, self.read = max(self.most, len(rows)), self.read + len(rows)
        assert np.all(np.diff(rows) > 0)
        return self.points[rows]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("neighborhood", [None, 100])
def test_rows_do_not_depend_on_how_points_are_read(dtype, neighborhood):
    points = (np.random.default_rng(2).normal(size=(3000, 3)) * 20 + 128).astype(dtype)
    reader, choice = Reader(points), DeterminantalChoice(50, seed=4, neighborhood=neighborhood, sample_points=1000)
    rows = draw_repulsive(points, choice, 5.0).rows
    np.testing.assert_array_equal(draw_repulsive(reader, choice, 5.0).rows, rows)
    assert reader.most <= PROPOSED
    assert not np.array_equal(draw_repulsive(points, replace(choice, seed=5), 5.0).rows, rows)


def test_few_of_many_points_are_read():
    reader = Reader(np.random.default_rng(3).random(size=(400_000, 2)))
    draw = draw_repulsive(reader, DeterminantalChoice(200), 0.02)
    assert len(draw.rows) == 200
    assert reader.read < 3 * PROPOSED
    assert draw.repelled


@pytest.mark.parametrize(("rule", "neighborhood", "sigma"), [("gaussian", None, 0.02), ("sine", 3000, 0.05)])
def test_landmarks_are_farther_from_each_other_than_random_ones(rule, neighborhood, sigma):
    points = np.random.default_rng(4).random(size=(20_000, 2))
    choice = DeterminantalChoice(100, seed=1, update=rule, neighborhood=neighborhood)
    chosen = points[draw_repulsive(points, choice, sigma).rows]
    random = points[:100]
    nearest = [np.sort(((some[:, np.newaxis] - some) ** 2).sum(axis=2), axis=1)[:, 1] for some in (chosen, random)]
    assert np.sqrt(nearest[0]).min() > 5 * np.sqrt(nearest[1]).min()


def test_a_neighbourhood_is_estimated_from_a_sample_of_many_points():
    """Of points evenly on a circle, the hundredth of a thousandth reaches as far as the hundred-thousandth's does."""
    angles = np.linspace(0, 2 * np.pi, 50_000, endpoint=False)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    draw = draw_repulsive(points, DeterminantalChoice(20, neighborhood=5000, sample_points=5000), 1e4)
    # Nothing within a twentieth of the circle either way of another can be drawn, as f is next to zero there.
    gaps = np.diff(np.sort(draw.rows), append=np.sort(draw.rows)[0] + 50_000)
    assert len(draw.rows) < 20
    assert gaps.min() > 0.9 * 2500


def test_repeated_points_are_drawn_once():
    points = np.repeat(np.random.default_rng(5).normal(size=(40, 2)), 50, axis=0)
    draw = draw_repulsive(points, DeterminantalChoice(40), 0.1)
    assert len(np.unique(points[draw.rows], axis=0)) == 40


@pytest.mark.parametrize("n_points", [500, 300_000])
def test_probabilities_that_die_out_end_the_draw(n_points):
    points = np.random.default_rng(6).random(size=(n_points, 1))
    reader = Reader(points)
    draw = draw_repulsive(reader, DeterminantalChoice(100), 1e6)
    assert 1 <= len(draw.rows) < 100
    assert reader.read < 120_000


def test_a_sigma_below_all_distances_repels_nothing():
    points = np.arange(1000.0)[:, np.newaxis]
    draw = draw_repulsive(points, DeterminantalChoice(50), 0.01)
    assert (len(draw.rows), draw.repelled) == (50, False)
