import itertools

import numpy as np
import sklearn.manifold
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from scipy.spatial import procrustes
from sklearn.neighbors import NearestNeighbors

from scalemani.kernels.measures import (
    clustering_error,
    label_accuracy,
    neighbor_preservation,
    procrustes_error,
    subspace_angle,
    trustworthiness,
)


def test_procrustes_error_equals_scipy_and_ignores_similarities():
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(100, 3))
    other = reference + 0.3 * rng.normal(size=(100, 3))
    np.testing.assert_allclose(procrustes_error(other, reference), np.sqrt(procrustes(reference, other)[2]), rtol=1e-8)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert procrustes_error(5 * reference @ rotation + 7, reference) < 1e-7
    assert procrustes_error(np.zeros((100, 3)), reference) == 1.0
    assert procrustes_error(np.ones((4, 2)), np.ones((4, 2))) == 0.0


def test_subspace_angle_equals_scipy_and_resolves_small_angles():
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 50, 4))
    np.testing.assert_allclose(subspace_angle(one, other), subspace_angles(one, other).max(), rtol=1e-8)
    assert subspace_angle(one, one @ rng.normal(size=(4, 4))) < 1e-12
    tilted = one + 1e-9 * other
    assert 1e-11 < subspace_angle(one, tilted) < 1e-7
    weights = rng.random(50) + 0.1
    expected = subspace_angles(one * np.sqrt(weights)[:, None], other * np.sqrt(weights)[:, None]).max()
    np.testing.assert_allclose(subspace_angle(one, other, weights), expected, rtol=1e-8)


def test_label_accuracy_by_hand_and_with_duplicates():
    embedding = np.array([[0.0], [0.1], [5.0], [5.1], [9.0]])
    assert label_accuracy(embedding, np.array(["a", "a", "b", "b", "a"])) == 0.8
    assert label_accuracy(embedding, np.array(["a", "a", "b", "b", "a"]), rows=np.array([4])) == 0.0
    assert label_accuracy(np.zeros((6, 2)), np.zeros(6)) == 1.0


def test_neighbor_preservation_of_the_data_itself_is_one():
    points = np.random.default_rng(2).normal(size=(200, 3))
    rows = np.arange(0, 200, 3)
    neighbors = NearestNeighbors(n_neighbors=6).fit(points).kneighbors(points[rows], return_distance=False)[:, 1:]
    assert neighbor_preservation(points, neighbors, rows) == 1.0
    assert neighbor_preservation(np.random.default_rng(3).normal(size=(200, 2)), neighbors, rows) < 0.2


def test_trustworthiness_equals_scikit_learn():
    rng = np.random.default_rng(4)
    points = rng.normal(size=(300, 5)) + 100
    embedding = points[:, :2] + 0.5 * rng.normal(size=(300, 2))
    expected = sklearn.manifold.trustworthiness(points, embedding, n_neighbors=7)
    np.testing.assert_allclose(trustworthiness(points, embedding, np.arange(300), 7), expected, rtol=1e-10)
    assert trustworthiness(points, points, np.arange(0, 300, 10), 7) == 1.0


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_clustering_error_is_the_least_over_all_matchings(pairs):
    labels, reference = np.array(pairs).T
    best = max(sum(m[a] == b for a, b in pairs) for m in itertools.permutations(range(4)))
    np.testing.assert_allclose(clustering_error(labels, reference), 1 - best / len(pairs), atol=1e-12)
