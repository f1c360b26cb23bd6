import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.landmarks.selection import kmeans_plus_plus, minmax_landmarks
from tests.kernels.oracles import drawn, squared_distances


def oracle_minmax(points, n_landmarks, first):
    chosen = [first]
    while len(chosen) < n_landmarks:
        chosen.append(int(np.argmax(squared_distances(points, points[chosen]).min(axis=1))))
    return chosen


def oracle_kmeans_plus_plus(points, n_landmarks, uniforms):
    chosen = [int(uniforms[0] * len(points))]
    while len(chosen) < n_landmarks:
        sums = np.cumsum(squared_distances(points, points[chosen]).min(axis=1))
        chosen.append(int(np.searchsorted(sums, uniforms[len(chosen)] * sums[-1])))
    return chosen


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [2, 90])
def test_seeding_equals_the_plain_algorithms(dtype, n_columns):
    points = drawn(300, n_columns, dtype)
    chosen = kmeans_plus_plus(points, 40, 5)
    uniforms = generator(5, "landmarks/kmeans++").random(40)
    assert chosen.tolist() == oracle_kmeans_plus_plus(points, 40, uniforms)
    chosen = minmax_landmarks(points, 40, 5)
    assert chosen.tolist() == oracle_minmax(points, 40, chosen[0])


@given(
    seed=st.integers(0, 2**32 - 1),
    n_distinct=st.integers(1, 12),
    n_columns=st.sampled_from([1, 3, 70]),
    exponent=st.sampled_from([-100, 0, 100]),
    offset=st.sampled_from([0.0, 1e8]),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_seeds_are_distinct_or_refused(seed, n_distinct, n_columns, exponent, offset):
    rng = np.random.default_rng(seed)
    distinct = (rng.permutation(n_distinct)[:, np.newaxis] + np.zeros(n_columns) + offset) * 10.0**exponent
    points = distinct[np.concatenate([np.arange(n_distinct), rng.integers(0, n_distinct, 30)])]
    for select in (kmeans_plus_plus, minmax_landmarks):
        rows = select(points, n_distinct, seed)
        assert len(np.unique(points[rows], axis=0)) == n_distinct
        with pytest.raises(DataError, match=f"{n_distinct + 1} landmarks .* only {n_distinct} distinct"):
            select(points, n_distinct + 1, seed)


def test_seeds_are_drawn_in_proportion_to_squared_distances():
    points = np.array([[0.0], [0.0], [1.0], [3.0]])
    drawn_pairs = np.array([kmeans_plus_plus(points, 2, seed) for seed in range(4000)])
    after_zero = drawn_pairs[drawn_pairs[:, 0] < 2, 1]
    assert 1800 < len(after_zero) < 2200
    assert not np.isin(after_zero, [0, 1]).any()
    assert abs(np.mean(after_zero == 3) - 0.9) < 0.03


def test_seeds_of_more_points_than_a_partial_sum_are_those_of_the_plain_algorithm():
    points = drawn(2500, 3, np.float64)
    uniforms = generator(3, "landmarks/kmeans++").random(10)
    assert kmeans_plus_plus(points, 10, 3).tolist() == oracle_kmeans_plus_plus(points, 10, uniforms)


def test_partial_sums_of_any_size_are_drawn_from():
    """The first 1,024 points add a sum of exactly one, the next of four, and the last of nothing."""
    points = np.zeros((3000, 1))
    points[5], points[1500] = 1.0, 2.0
    pairs = np.array([kmeans_plus_plus(points, 2, seed) for seed in range(500)])
    after_zero = pairs[points[pairs[:, 0], 0] == 0, 1]
    assert set(after_zero.tolist()) == {5, 1500}
    assert abs(np.mean(after_zero == 5) - 0.2) < 0.06
