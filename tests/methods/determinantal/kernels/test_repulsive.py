from collections import Counter

import numpy as np
import pytest

from scalemani.methods.determinantal.kernels.repulsive import PROPOSED, Repulsion, draw_repulsive

DRAWS = 12_000


def update(distances, repulsion):
    if repulsion.update == "gaussian":
        return 1 - np.exp(-(distances**2) / (2 * repulsion.sigma**2))
    ratio = distances / (np.sqrt(2) * repulsion.sigma)
    return np.where(ratio < np.pi / 2, np.sin(ratio) ** 2, 1.0)


def sequences(points, n_landmarks, repulsion):
    """Return the probability of every sequence of rows under algorithm 2, with all of D at hand."""
    distances = np.sqrt(((points[:, np.newaxis] - points) ** 2).sum(axis=2))
    found = {}

    def go_on(rows, D, probability):
        if len(rows) == n_landmarks:
            found[rows] = probability
            return
        for i in np.flatnonzero(D > 0):
            m = len(points) - 1 if repulsion.neighborhood is None else repulsion.neighborhood
            nearest = np.argsort(distances[i], kind="stable")[: m + 1]  # itself first
            lowered = D.copy()
            lowered[nearest] *= update(distances[i, nearest], repulsion)
            go_on((*rows, int(i)), lowered, probability * D[i] / D.sum())

    go_on((), np.ones(len(points)), 1.0)
    return found


@pytest.mark.parametrize("rule", ["gaussian", "sine"])
@pytest.mark.parametrize(("neighborhood", "sigma"), [(None, 0.8), (6, 0.8), (3, 1.5), (1, 5.0)])
def test_landmarks_are_drawn_as_algorithm_2_draws_them(rule, neighborhood, sigma):
    points = np.random.default_rng(0).normal(size=(7, 2))
    repulsion = Repulsion(sigma, rule, neighborhood)
    expected = sequences(points, 3, repulsion)
    counts = Counter(tuple(draw_repulsive(points, 3, repulsion, seed).rows.tolist()) for seed in range(DRAWS))
    assert set(counts) <= set(expected)
    likely = {rows: DRAWS * share for rows, share in expected.items() if DRAWS * share >= 5}
    rest = DRAWS - sum(likely.values())
    square = sum((counts[rows] - mean) ** 2 / mean for rows, mean in likely.items())
    n_rest = DRAWS - sum(counts[rows] for rows in likely)
    square += (n_rest - rest) ** 2 / max(rest, 1.0)
    # The chi-square of so many degrees of freedom has the deviation sqrt(2 df).
    assert square < len(likely) + 4.5 * np.sqrt(2 * len(likely))


def test_most_landmarks_of_few_points_are_drawn_where_probabilities_are_tiny():
    """By the last landmarks every D is far below one in a million; what is left is drawn in proportion all the same."""
    points = np.random.default_rng(1).normal(size=(60, 2))
    draw = draw_repulsive(points, 30, Repulsion(2.0), 0)
    assert len(set(draw.rows.tolist())) == 30
    distances = np.sqrt(((points[:, np.newaxis] - points[draw.rows[:29]]) ** 2).sum(axis=2))
    assert update(distances, Repulsion(2.0)).prod(axis=1).max() < 1e-6


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
    reader, repulsion = Reader(points), Repulsion(5.0, neighborhood=neighborhood, sample_points=1000)
    rows = draw_repulsive(points, 50, repulsion, 4).rows
    np.testing.assert_array_equal(draw_repulsive(reader, 50, repulsion, 4).rows, rows)
    assert reader.most <= PROPOSED
    assert not np.array_equal(draw_repulsive(points, 50, repulsion, 5).rows, rows)


def test_few_of_many_points_are_read():
    reader = Reader(np.random.default_rng(3).random(size=(400_000, 2)))
    draw = draw_repulsive(reader, 200, Repulsion(0.02), 0)
    assert len(draw.rows) == 200
    assert reader.read < 3 * PROPOSED
    assert draw.repelled


@pytest.mark.parametrize("repulsion", [Repulsion(0.02), Repulsion(0.05, "sine", 3000)])
def test_landmarks_are_farther_from_each_other_than_random_ones(repulsion):
    points = np.random.default_rng(4).random(size=(20_000, 2))
    chosen = points[draw_repulsive(points, 100, repulsion, 1).rows]
    random = points[:100]
    nearest = [np.sort(((some[:, np.newaxis] - some) ** 2).sum(axis=2), axis=1)[:, 1] for some in (chosen, random)]
    assert np.sqrt(nearest[0]).min() > 5 * np.sqrt(nearest[1]).min()


def test_a_neighbourhood_is_estimated_from_a_sample_of_many_points():
    """Of points evenly on a circle, the hundredth of a thousandth reaches as far as the hundred-thousandth's does."""
    angles = np.linspace(0, 2 * np.pi, 50_000, endpoint=False)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    draw = draw_repulsive(points, 20, Repulsion(1e4, neighborhood=5000, sample_points=5000), 0)
    # Nothing within a twentieth of the circle either way of another can be drawn, as f is next to zero there.
    gaps = np.diff(np.sort(draw.rows), append=np.sort(draw.rows)[0] + 50_000)
    assert len(draw.rows) < 20
    assert gaps.min() > 0.9 * 2500


def test_repeated_points_are_drawn_once():
    points = np.repeat(np.random.default_rng(5).normal(size=(40, 2)), 50, axis=0)
    draw = draw_repulsive(points, 40, Repulsion(0.1), 0)
    assert len(np.unique(points[draw.rows], axis=0)) == 40


@pytest.mark.parametrize("n_points", [500, 300_000])
def test_probabilities_that_die_out_end_the_draw(n_points):
    points = np.random.default_rng(6).random(size=(n_points, 1))
    reader = Reader(points)
    draw = draw_repulsive(reader, 100, Repulsion(1e6), 0)
    assert 1 <= len(draw.rows) < 100
    assert reader.read < 120_000


def test_a_sigma_below_all_distances_repels_nothing():
    points = np.arange(1000.0)[:, np.newaxis]
    draw = draw_repulsive(points, 50, Repulsion(0.01), 0)
    assert (len(draw.rows), draw.repelled) == (50, False)
