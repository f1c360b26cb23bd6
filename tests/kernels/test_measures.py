import itertools

import numpy as np
import pytest
import sklearn.manifold
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import procrustes
from sklearn.neighbors import NearestNeighbors

from scalemani.kernels.measures import (
    clustering_error,
    label_hits,
    nearest_others,
    neighbor_shares,
    procrustes_error,
    quantile_of,
    share_of,
    similarity_of,
    subspace_angle,
    trust,
)


def test_a_share_of_none_is_not_certain_and_others_have_the_error_of_draws():
    none, few = (share_of(np.arange(700) < hits) for hits in (0, 5))  # Fisher's exact p of the two is 0.06
    assert (none.value, few.value) == (0.0, 5 / 700)
    assert few.value - none.value < 2 * np.hypot(none.error, few.error)
    draws = np.random.default_rng(0).random((4000, 700)) < 0.1
    assert share_of(draws[0]).error == pytest.approx(draws.mean(axis=1).std(), rel=0.1)
    assert share_of(~draws[0]).error == pytest.approx(share_of(draws[0]).error)


def test_no_rotation_or_reflection_and_no_scale_come_nearer_than_the_similarity():
    rng = np.random.default_rng(0)
    x, r = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    scale, rotation = similarity_of(x.T @ r, float(np.sum(x * x)))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    least = np.linalg.norm(scale * x @ rotation - r)
    for _ in range(100):
        near = np.linalg.qr(rotation + 0.1 * rng.normal(size=(3, 3)))
        turned = near[0] * np.sign(np.diag(near[1]))
        assert np.linalg.norm(scale * rng.uniform(0.9, 1.1) * x @ turned - r) >= least


def test_procrustes_error_equals_scipy_and_ignores_similarities():
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(100, 3))
    other = reference + 0.3 * rng.normal(size=(100, 3))
    np.testing.assert_allclose(procrustes_error(other, reference), np.sqrt(procrustes(reference, other)[2]), rtol=1e-8)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert procrustes_error(5 * reference @ rotation + 7, reference) < 1e-7
    assert procrustes_error(np.zeros((100, 3)), reference) == 1.0
    assert procrustes_error(np.ones((4, 2)), np.ones((4, 2))) == 0.0


def test_subspace_angle_is_that_of_projections_and_resolves_small_angles():
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 50, 4))
    projections = [columns @ np.linalg.pinv(columns) for columns in (one, other)]
    sine = np.linalg.norm(projections[0] - projections[1], 2)
    np.testing.assert_allclose(np.sin(subspace_angle(one, other)), sine, rtol=1e-8)
    assert subspace_angle(one, one @ rng.normal(size=(4, 4))) < 1e-12
    tilted = one + 1e-9 * other
    assert 1e-11 < subspace_angle(one, tilted) < 1e-7


def test_labels_win_by_hand_and_with_duplicates():
    embedding, every = np.array([[0.0], [0.1], [5.0], [5.1], [9.0]]), np.arange(5)
    labels = np.array(["a", "a", "b", "b", "a"])
    assert label_hits(embedding, labels, 1, every).tolist() == [True, True, True, True, False]
    assert label_hits(embedding, labels, 1, np.array([4, 0])).tolist() == [False, True]
    assert label_hits(np.zeros((6, 2)), np.zeros(6), 1, np.arange(6)).all()
    # Each "a" has two others of either label: the one that sorts first wins.
    assert label_hits(embedding, labels, 4, every).tolist() == [True, True, False, False, True]


def test_a_point_is_not_its_own_neighbour_but_its_duplicate_is():
    embedding = np.array([[0.0], [0.0], [1.0], [3.0]])
    assert nearest_others(embedding, np.arange(4), 1).ravel().tolist() == [
        1,
        0,
        *nearest_others(embedding, [2], 1)[0],
        2,
    ]
    assert 2 not in nearest_others(embedding, np.array([2]), 3)
    many = np.zeros((50, 2))  # more duplicates than the tree returns: a point may not find itself among them
    found = nearest_others(many, np.arange(50), 5)
    assert (found != np.arange(50)[:, None]).all()
    assert all(len(set(row)) == 5 for row in found)


def ranks_of(points, row):
    """Return by how many others each point is nearer to a row than they are, by a plain sort of exact distances."""
    distances = ((points.astype(float) - points[row]) ** 2).sum(axis=1)
    distances[row] = np.inf
    return {other: rank for rank, other in enumerate(np.argsort(distances, kind="stable"), start=1)}


def test_shares_and_trust_are_those_of_a_plain_sort():
    rng = np.random.default_rng(2)
    points, embedding = rng.normal(size=(300, 4)) + 50, rng.normal(size=(300, 2))
    rows, k = np.arange(0, 300, 7), 6
    found = nearest_others(embedding, rows, k)
    ranks = [[ranks_of(points, row)[other] for other in others] for row, others in zip(rows, found, strict=True)]
    expected = np.mean(np.array(ranks) <= k, axis=1)
    np.testing.assert_array_equal(neighbor_shares(points, found, rows), expected)
    penalties = np.maximum(0, np.array(ranks) - k).sum(axis=1)
    np.testing.assert_allclose(trust(points, found, rows), 1 - 2 * penalties / (k * (600 - 3 * k - 1)), rtol=1e-12)


def test_shares_of_the_true_neighbours_are_one_and_ties_count():
    points = np.random.default_rng(2).normal(size=(200, 3))
    rows = np.arange(0, 200, 3)
    neighbors = NearestNeighbors(n_neighbors=6).fit(points).kneighbors(points[rows], return_distance=False)[:, 1:]
    assert (neighbor_shares(points, neighbors, rows) == 1.0).all()
    grid = np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(-1, 2) + 1000  # four nearest each inside
    for other in (7, 11, 13, 17):
        assert neighbor_shares(grid.astype(np.uint16), np.array([[other]]), np.array([12])) == 1.0
    assert neighbor_shares(grid, np.array([[6, 7]]), np.array([12])) == 0.5


def test_trust_equals_scikit_learn():
    rng = np.random.default_rng(4)
    points = rng.normal(size=(300, 5)) + 100
    embedding = points[:, :2] + 0.5 * rng.normal(size=(300, 2))
    expected = sklearn.manifold.trustworthiness(points, embedding, n_neighbors=7)
    every = np.arange(300)
    np.testing.assert_allclose(trust(points, nearest_others(embedding, every, 7), every).mean(), expected, rtol=1e-10)
    assert (trust(points, nearest_others(points, every[::10], 7), every[::10]) == 1.0).all()


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_clustering_error_is_the_least_over_all_matchings(pairs):
    labels, reference = np.array(pairs).T
    best = max(sum(m[a] == b for a, b in pairs) for m in itertools.permutations(range(4)))
    np.testing.assert_allclose(clustering_error(labels, reference), 1 - best / len(pairs), atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_quantiles_of_samples_lie_within_their_errors_of_that_of_all(share):
    everything = np.random.default_rng(0).lognormal(size=4000)
    truth = quantile_of(everything, share, len(everything))
    assert truth == (np.quantile(everything, share), 0.0, 4000)
    draws = np.random.default_rng(1)
    samples = [quantile_of(draws.choice(everything, 800, replace=False), share, 4000) for _ in range(200)]
    off = np.array([(sample.value - truth.value) / sample.error for sample in samples])
    assert 0.7 < off.std() < 1.4  # the errors are neither too small nor too large
    assert abs(off.mean()) < 0.3
    assert np.isnan(quantile_of(everything[:0], share, 0).value)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(-900, 900), st.integers(-900, 900), st.booleans())
def test_no_measure_depends_on_a_power_of_two(power, other_power, offset):
    """Within the values that float64 has; squares of the largest and of the least of these have none."""
    rng = np.random.default_rng(5)
    points, labels, rows = rng.normal(size=(80, 4)), np.repeat([0, 1], 40), np.arange(0, 80, 3)
    embedding = points[:, :2] + 0.3 * rng.normal(size=(80, 2)) + 10 * offset
    far, far_points = np.ldexp(embedding, power), np.ldexp(points, other_power)
    assert procrustes_error(far, np.ldexp(points[:, :2], other_power)) == pytest.approx(
        procrustes_error(embedding, points[:, :2]), rel=1e-9
    )
    assert procrustes_error(far, np.ldexp(embedding, other_power)) < 1e-7
    assert subspace_angle(far, far_points[:, :2]) == pytest.approx(subspace_angle(embedding, points[:, :2]), rel=1e-9)
    nearest = nearest_others(embedding, rows, 5)
    np.testing.assert_array_equal(nearest_others(far, rows, 5), nearest)
    np.testing.assert_array_equal(label_hits(far, labels, 5, rows), label_hits(embedding, labels, 5, rows))
    for measure in (neighbor_shares, trust):
        np.testing.assert_array_equal(measure(far_points, nearest, rows), measure(points, nearest, rows))
