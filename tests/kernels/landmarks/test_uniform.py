import numpy as np
import pytest

from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import row_words
from scalemani.kernels.landmarks.selection import (
    WORDS_BLOCK,
    draw_rows,
    first_of_equal_rows,
    n_spread_candidates,
    random_landmarks,
    spread_landmarks,
)


def squared_distances(points, others):
    difference = points[:, np.newaxis].astype(np.float64) - others[np.newaxis].astype(np.float64)
    return (difference**2).sum(axis=2)


def test_drawn_rows_extend_and_are_uniform():
    few, many = draw_rows(1000, 10, 3, "s"), draw_rows(1000, 400, 3, "s")
    np.testing.assert_array_equal(many[:10], few)
    assert len(set(many.tolist())) == 400
    counts = np.bincount(np.concatenate([draw_rows(20, 5, seed, "s") for seed in range(400)]), minlength=20)
    assert 60 < counts.min() <= counts.max() < 145  # 100 expected, standard deviation 8.7


def test_drawn_rows_have_the_least_words_of_all_in_any_block_of_these():
    n_rows = 2 * WORDS_BLOCK + 100
    expected = np.argsort(row_words(1, "s", 0, n_rows), kind="stable")[:300]
    np.testing.assert_array_equal(draw_rows(n_rows, 300, 1, "s"), expected)


def test_random_landmarks_pass_over_repeated_coordinates():
    points = np.repeat(np.arange(40.0), 25)[:, np.newaxis]
    rows = random_landmarks(points, 40, 0)
    assert sorted(points[rows, 0]) == list(range(40))
    np.testing.assert_array_equal(rows, np.sort(rows))
    with pytest.raises(DataError, match=r"41 landmarks .* 1000 points have only 40 distinct rows"):
        random_landmarks(points, 41, 0)
    with pytest.raises(DataError, match=r"1001 landmarks .* 1000 points"):
        random_landmarks(points, 1001, 0)


def test_negative_zero_equals_zero():
    assert first_of_equal_rows(np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])).tolist() == [0, 2]


def oracle_spread(points, n_landmarks, drop):
    alive = list(range(len(points)))
    while len(alive) > n_landmarks:
        distances = squared_distances(points[alive], points[alive])
        np.fill_diagonal(distances, np.inf)
        one, other = np.unravel_index(np.argmin(distances), distances.shape)
        alive.remove(drop(alive[one], alive[other]))
    return alive


@pytest.mark.parametrize("n_landmarks", [3, 40, 119, 120])
def test_spread_drops_one_of_each_closest_pair(n_landmarks):
    points = np.random.default_rng(0).normal(size=(120, 3))
    words = row_words(7, "landmarks/spread", 0, 120)
    expected = oracle_spread(points, n_landmarks, lambda a, b: a if words[a] > words[b] else b)
    assert spread_landmarks(points, n_landmarks, 7).tolist() == expected
    with pytest.raises(DataError, match="only 120 candidates"):
        spread_landmarks(points, 121, 7)
    assert n_spread_candidates(10, 100) == 15
    assert n_spread_candidates(90, 100) == 100
