import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.errors import DataError
from scalemani.kernels.arrays.draws import generator, row_words
from scalemani.kernels.landmarks.minibatch import (
    minibatch_start,
    minibatch_step,
    snap_rows,
    snap_start,
    snap_step,
)
from scalemani.kernels.landmarks.seeding import kmeans_plus_plus, minmax_landmarks
from scalemani.kernels.landmarks.uniform import (
    draw_rows,
    first_of_equal_rows,
    n_spread_candidates,
    random_landmarks,
    spread_landmarks,
)


def squared_distances(points, others):
    difference = points[:, np.newaxis].astype(np.float64) - others[np.newaxis].astype(np.float64)
    return (difference**2).sum(axis=2)


def drawn(n_points, n_columns, dtype, seed=0):
    values = np.random.default_rng(seed).integers(0, 256, (n_points, n_columns))
    return values.astype(dtype)


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


def test_drawn_rows_extend_and_are_uniform():
    few, many = draw_rows(1000, 10, 3, "s"), draw_rows(1000, 400, 3, "s")
    np.testing.assert_array_equal(many[:10], few)
    assert len(set(many.tolist())) == 400
    counts = np.bincount(np.concatenate([draw_rows(20, 5, seed, "s") for seed in range(400)]), minlength=20)
    assert 60 < counts.min() <= counts.max() < 145  # 100 expected, standard deviation 8.7


def test_drawn_rows_do_not_depend_on_the_block_of_words(monkeypatch):
    whole = draw_rows(5000, 300, 1, "s")
    monkeypatch.setattr("scalemani.kernels.landmarks.uniform.WORDS_BLOCK", 512)
    np.testing.assert_array_equal(draw_rows(5000, 300, 1, "s"), whole)


def test_random_landmarks_pass_over_repeated_coordinates():
    points = np.repeat(np.arange(40.0), 25)[:, np.newaxis]
    rows = random_landmarks(1000, 40, 0, points.__getitem__)
    assert sorted(points[rows, 0]) == list(range(40))
    np.testing.assert_array_equal(rows, np.sort(rows))
    with pytest.raises(DataError, match=r"41 landmarks .* 1000 points have only 40 distinct rows"):
        random_landmarks(1000, 41, 0, points.__getitem__)
    with pytest.raises(DataError, match=r"1001 landmarks .* 1000 points"):
        random_landmarks(1000, 1001, 0)


def test_negative_zero_equals_zero():
    assert first_of_equal_rows(np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])).tolist() == [0, 2]


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


def in_units_of_points(state):
    return state.centroids * state.scale + state.mean


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_minibatch_steps_are_running_means(dtype):
    points = drawn(600, 70, dtype)
    state = minibatch_start(points, points[:120])
    centroids, counts = points[:120].astype(np.float64), np.zeros(120)
    for start in range(0, 600, 200):
        batch = points[start : start + 200]
        labels = squared_distances(batch, centroids).argmin(axis=1)
        for label in np.unique(labels):
            members = batch[labels == label].astype(np.float64)
            centroids[label] = (centroids[label] * counts[label] + members.sum(axis=0)) / (counts[label] + len(members))
            counts[label] += len(members)
        state = minibatch_step(state, batch)
    np.testing.assert_array_equal(state.counts, counts)
    np.testing.assert_allclose(in_units_of_points(state), centroids, rtol=1e-5, atol=1e-3)
    assert state.step == 3


def test_snapping_takes_nearest_points_whatever_the_blocks():
    points = np.random.default_rng(1).normal(size=(900, 6))
    state = minibatch_step(minibatch_start(points, points[:30]), points)
    expected = squared_distances(in_units_of_points(state), points).argmin(axis=1)
    results = []
    for blocks in ([(0, 900)], [(0, 5), (5, 400), (400, 900)], [(400, 900), (0, 400)]):
        snapped = snap_start(30)
        for start, stop in blocks:
            snapped = snap_step(snapped, state, points[start:stop], start)
        results.append(snap_rows(snapped))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    assert len(set(results[0].tolist())) == 30
    assert (results[0] == expected).mean() > 0.9  # the others had their nearest point taken


def test_snapping_tells_centroids_without_a_point():
    points = np.array([[0.0], [1.0]])
    state = minibatch_start(points, np.array([[0.0], [0.1], [1.0]]))
    rows = snap_rows(snap_step(snap_start(3), state, points, 0))
    assert rows.tolist() == [0, -1, 1]
