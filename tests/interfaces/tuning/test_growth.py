"""Landmarks that grow until a wanted angle: what is kept of Z is what would be computed, and angles are true."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import make_swiss_roll

import scalemani as sm
from scalemani.errors import ConfigError, DataError

K_Z = 4


@pytest.fixture(scope="module")
def roll():
    """Return points of a roll, W, and the two exact eigenvectors."""
    points = make_swiss_roll(700, random_state=0)[0]
    graph = sm.knn_graph(points, n_neighbors=10)
    W = sm.symmetric_affinities(graph.indices, sm.gaussian_affinities(graph.distances, 3.0))
    dense = W.toarray()
    exact = scipy.linalg.eigh(np.diag(dense.sum(axis=1)) - dense, np.diag(dense.sum(axis=1)))[1][:, 1:3]
    return points, W, exact


@pytest.fixture(scope="module")
def grown(roll):
    return sm.grow_landmarks(*roll, angle=0.1, batch=40, n_neighbors=K_Z)


def angle_between(one, other, W):
    roots = np.sqrt(W.toarray().sum(axis=1))[:, np.newaxis]
    return np.arccos(np.linalg.svd(scipy.linalg.orth(roots * one).T @ scipy.linalg.orth(roots * other))[1].min())


def test_it_stops_at_the_first_angle_that_is_wanted_and_says_the_true_one(roll, grown):
    points, W, exact = roll
    assert grown.reached
    assert grown.angles[-1] <= 0.1 < grown.angles[:-1].min()
    assert grown.angles[-1] == pytest.approx(angle_between(grown.embedding, exact, W), abs=1e-6)
    assert grown.sizes.tolist() == [40 * step for step in range(1, len(grown.sizes) + 1)]
    assert len(np.unique(grown.rows)) == len(grown.rows) == grown.sizes[-1] < len(points)


def test_the_embedding_is_that_of_all_its_landmarks_at_once(roll, grown):
    """Rows of Z that were kept are those that a point has among all landmarks."""
    points, W, _ = roll
    Z = sm.landmark_weights(points, points[grown.rows], K_Z).toarray()
    dense = W.toarray()
    mass = np.diag(dense.sum(axis=1))
    vectors = scipy.linalg.eigh(Z.T @ (mass - dense) @ Z, Z.T @ mass @ Z)[1][:, 1:3]
    assert angle_between(grown.embedding, Z @ vectors, W) < 1e-6
    assert grown.renewed[0] == len(points)
    assert (grown.renewed[1:] < len(points)).all()


def test_all_points_are_exact_and_fewer_may_not_do(roll):
    whole = sm.grow_landmarks(*roll, angle=1e-7, batch=350, n_neighbors=K_Z)
    assert whole.sizes.tolist() == [350, 700]
    assert whole.angles[-1] < 1e-6
    few = sm.grow_landmarks(*roll, angle=1e-3, batch=40, most=60, n_neighbors=K_Z)
    assert (few.reached, few.sizes.tolist()) == (False, [40, 60])


def test_what_cannot_be_grown_is_refused(roll):
    points, W, exact = roll
    with pytest.raises(ConfigError, match="angle must be above 0"):
        sm.grow_landmarks(points, W, exact, angle=0.0)
    with pytest.raises(DataError, match="reference must be finite"):
        sm.grow_landmarks(points, W, exact[:-1])
