import re

import numpy as np
import pytest

from scalemani.errors import ConfigError, DataError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.landmarks.quality import spacing_sigma
from scalemani.kernels.landmarks.selection import Diversity
from scalemani.methods.determinantal.kernels.determinantal import (
    MOST_POINTS,
    draw_k_dpp,
    euclidean_kernel,
    geodesic_kernel,
    kernel_spectrum,
)
from scalemani.methods.determinantal.kernels.diverse import coverage, determinantal_rows, repulsive_rows
from scalemani.methods.determinantal.kernels.repulsive import Repulsion, draw_repulsive

CHOSEN = Diversity()
METHODS = {
    "dpp": lambda points, n, diversity=CHOSEN: repulsive_rows(points, n, 0, diversity, 100_000),
    "dpp-exact": lambda points, n, diversity=CHOSEN: determinantal_rows(points, n, 0, diversity),
}


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
        draws = [draw_repulsive(points, n_landmarks, Repulsion(sigma), seed).rows for seed in range(4)]
        full = [rows for rows in draws if len(rows) == n_landmarks]
        return np.mean([coverage(points, rows, 0)["mean_distance_to_nearest_landmark"] for rows in full])

    usual = spacing_sigma(points, n_landmarks, 0)
    best = min(mean_distance(usual * factor) for factor in (0.25, 0.5, 0.7, 1.4))
    assert mean_distance(usual) < 1.06 * best


@pytest.mark.parametrize("method", METHODS)
def test_a_sigma_that_is_too_large_is_refused_with_one_that_does(method):
    points, select = drawn(), METHODS[method]
    with pytest.raises(ConfigError, match=r"sigma=1e\+08 is too large for these points: .* would do") as refused:
        select(points, 100, Diversity(1e8))
    offered = float(re.search(r"sigma=(\S+) would do", str(refused.value)).group(1))
    assert len(set(select(points, 100, Diversity(offered)).rows.tolist())) == 100


@pytest.mark.parametrize("method", METHODS)
def test_a_sigma_that_is_too_small_is_refused_with_one_that_does(method):
    points, select = drawn(), METHODS[method]
    with pytest.raises(ConfigError, match=r"sigma=1e-09 is too small for these points: .* would do") as refused:
        select(points, 100, Diversity(1e-9))
    offered = float(re.search(r"sigma=(\S+) would do", str(refused.value)).group(1))
    assert len(set(select(points, 100, Diversity(offered)).rows.tolist())) == 100


@pytest.mark.parametrize("method", METHODS)
def test_no_sigma_is_too_small_for_one_landmark_which_has_none_to_repel(method):
    assert METHODS[method](drawn(), 1, Diversity(1e-9)).rows.shape == (1,)


@pytest.mark.parametrize("method", METHODS)
def test_landmarks_of_repeated_points_are_distinct(method):
    points = np.repeat(drawn(60), 5, axis=0)
    points[:100] = points[0]
    rows = METHODS[method](points, 41).rows
    assert len(np.unique(points[rows], axis=0)) == 41
    with pytest.raises(DataError, match="42 landmarks were asked for, but these 300 points have only 41 distinct rows"):
        METHODS[method](points, 42)


def test_landmarks_among_points_that_are_next_to_all_equal_are_refused():
    points = np.zeros((200_000, 1))
    points[:20, 0] = np.arange(20)
    with pytest.raises(DataError, match="most are repeated; drop repeated rows"):
        repulsive_rows(points, 15, 0, Diversity(), 1000)


@pytest.mark.parametrize(("geodesic", "kernel"), [(False, euclidean_kernel), (True, geodesic_kernel)])
def test_exact_landmarks_are_drawn_from_the_kernel_that_was_asked_for(geodesic, kernel):
    angles = np.linspace(0, 1.9 * np.pi, 200)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    found = determinantal_rows(points, 8, 5, Diversity(0.8, geodesic=geodesic))
    expected = draw_k_dpp(kernel_spectrum(kernel(points, 0.8)), 8, generator(5, "landmarks/dpp-exact"))
    np.testing.assert_array_equal(np.sort(found.rows), np.sort(expected))


def test_certificates_say_how_landmarks_were_drawn_and_what_they_cover():
    points = drawn()
    found = repulsive_rows(points, 30, 0, Diversity(0.3), 100_000)
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
        determinantal_rows(Unread(), 10, 0, Diversity())
