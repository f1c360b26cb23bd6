"""Affinities and matrices against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq

import scalemani as sm


@pytest.fixture(scope="module")
def graph(digits):
    found = sm.knn_graph(digits[0], n_neighbors=15, method="exact")
    return np.asarray(found.indices[:]), np.asarray(found.distances[:], dtype=np.float64)


def entropy(beta: float, squared: np.ndarray) -> float:
    weights = np.exp(-beta * (squared - squared.min()))
    shares = weights / weights.sum()
    return float(-(shares * np.log(np.maximum(shares, 1e-300))).sum())


def test_entropic_affinities_have_the_perplexity_and_the_bandwidth_of_brents_method(graph):
    affinities = sm.entropic_affinities(graph[1], perplexity=5)
    np.testing.assert_allclose(affinities.values.sum(axis=1), 1.0, rtol=1e-12)
    for row in (0, 99, 500):
        squared = graph[1][row] ** 2
        beta = brentq(lambda b, s=squared: entropy(b, s) - np.log(5), 1e-12, 1e6, xtol=1e-18, rtol=1e-14)
        assert affinities.beta[row] == pytest.approx(beta, rel=1e-8)


@pytest.mark.parametrize("solver", ["newton", "halley", "bisection", "brent"])
def test_every_root_finder_finds_the_same_bandwidths(graph, solver):
    reference = sm.entropic_affinities(graph[1], perplexity=4)
    found = sm.entropic_affinities(graph[1], perplexity=4, solver=solver)
    np.testing.assert_allclose(found.beta, reference.beta, rtol=1e-7)


def test_symmetric_affinities_are_the_mean_of_both_directions(graph):
    values = sm.entropic_affinities(graph[1], perplexity=5).values
    rows = np.repeat(np.arange(800), 15)
    one_way = sp.csr_matrix((values.ravel(), (rows, graph[0].ravel())), shape=(800, 800))
    expected = (one_way + one_way.T) / 2
    found = sm.symmetric_affinities(graph[0], values)
    assert abs(found - found.T).max() == 0
    difference = abs(found / found.sum() - expected / expected.sum()).max()
    assert difference < 1e-7 * expected.max()


def test_landmark_weights_reconstruct_by_rows_that_sum_to_one(digits):
    landmarks = sm.select_landmarks(digits[0], 60, random_state=1)
    np.testing.assert_array_equal(landmarks.points, digits[0][landmarks.indices])
    weights = sm.landmark_weights(digits[0], landmarks.points, n_neighbors=5)
    assert weights.shape == (800, 60)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-9)
    assert np.diff(weights.indptr).max() <= 5
    at_landmarks = weights[landmarks.indices].toarray()
    np.testing.assert_allclose(at_landmarks, np.eye(60), atol=1e-12)


@pytest.mark.parametrize("method", ["random", "kmeans", "minmax", "dpp"])
def test_landmarks_are_distinct_rows_and_follow_the_seed(digits, method):
    one, again, other = (sm.select_landmarks(digits[0], 30, method, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.points, again.points)
    assert not np.array_equal(one.points, other.points)
    assert len(np.unique(one.points, axis=0)) == 30


def test_the_reduced_problem_is_z_l_z_and_z_d_z(digits, graph):
    W = sm.symmetric_affinities(graph[0], sm.entropic_affinities(graph[1], perplexity=5).values)
    Z = sm.landmark_weights(digits[0], sm.select_landmarks(digits[0], 50).points)
    A, B = sm.reduce_laplacian(W, Z)
    D = sp.diags(np.asarray(W.sum(axis=1)).ravel())
    np.testing.assert_allclose(A.toarray(), (Z.T @ (D - W) @ Z).toarray(), atol=1e-7 * abs(A).max())
    np.testing.assert_allclose(B.toarray(), (Z.T @ D @ Z).toarray(), atol=1e-7 * abs(B).max())
