"""Locally linear embedding by landmarks against scikit-learn's, and what it does with rolls, pieces and new points."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.datasets import make_swiss_roll
from sklearn.manifold import LocallyLinearEmbedding
from sklearn.manifold._locally_linear import barycenter_weights

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DisconnectedGraphError
from scalemani.io.sources import open_points
from scalemani.kernels.measures import subspace_angle
from scalemani.runs.walk import run


@pytest.fixture(scope="module")
def swiss():
    """Return points (2000, 3) of a Swiss roll, and how far along it each lies."""
    return make_swiss_roll(2000, random_state=0)


@pytest.fixture(scope="module")
def unrolled(swiss):
    return sm.LandmarkLLE(2, n_landmarks=500).fit(swiss[0])


@pytest.mark.parametrize("reg", [1e-3, 1e-2])
def test_with_every_point_a_landmark_it_is_that_of_scikit_learn(reg):
    points = np.random.default_rng(0).normal(size=(400, 2)) @ np.random.default_rng(1).normal(size=(2, 5))
    points = points + 0.1 * np.sin(points[:, ::-1])
    model = sm.LandmarkLLE(3, n_landmarks=400, n_neighbors=12, reg=reg).fit(points)
    peer = LocallyLinearEmbedding(n_neighbors=12, n_components=3, reg=reg, eigen_solver="dense").fit(points)
    assert subspace_angle(model.embedding_, peer.embedding_) < 1e-6
    np.testing.assert_allclose(model.eigenvalues_.sum(), peer.reconstruction_error_, rtol=1e-6)
    np.testing.assert_allclose(model.embedding_.T @ model.embedding_, np.eye(3), atol=1e-10)


def test_a_quarter_of_the_points_as_landmarks_unrolls_a_swiss_roll(swiss, unrolled):
    points, along = swiss
    shares = np.abs(
        [[spearmanr(column, true)[0] for true in (along, points[:, 1])] for column in unrolled.embedding_.T]
    )
    assert shares[0, 0] > 0.98
    assert shares[1, 1] > 0.8
    np.testing.assert_allclose(unrolled.embedding_.sum(axis=0), 0, atol=1e-9)
    assert (np.diff(unrolled.eigenvalues_) > 0).all()


def test_training_points_are_placed_where_they_are(swiss, unrolled):
    np.testing.assert_allclose(unrolled.transform(swiss[0]), unrolled.embedding_, atol=1e-12)


def test_blocks_and_workers_change_no_bit(swiss, tmp_path):
    params = Parameters().with_values({"landmarks": {"n_landmarks": 100}})
    one, other = (
        run(open_points(swiss[0]), tmp_path / str(rows), "locally-linear-embedding", params, Executor(workers=n), rows)
        for n, rows in ((1, 1024), (2, 2048))
    )
    np.testing.assert_array_equal(one.embedding[...], other.embedding[...])


def test_points_at_the_ends_of_a_bridge_are_neighbors_of_each_other(swiss):
    """With all points as landmarks the embedding is that of weights over lists that bridges lengthen."""
    points = np.concatenate([swiss[0][:150], 100 + swiss[0][150:250]])
    every_pair = {"components.queries_per_component": 250}
    model = sm.LandmarkLLE(2, n_landmarks=250, n_neighbors=8, settings=every_pair).fit(points)
    assert model.certificates_["components"]["components"] == 2
    distances = cdist(points, points)
    lists = [np.argsort(row)[1:9].tolist() for row in distances]
    one, other = np.unravel_index(np.argmin(distances[:150, 150:]), (150, 100))
    lists[one].append(150 + other)
    lists[150 + other].append(one)
    kept = np.eye(250)
    for row, near in enumerate(lists):
        kept[row, near] -= barycenter_weights(points[[row]], points, [near])[0]
    _, vectors = np.linalg.eigh(kept.T @ kept)
    assert subspace_angle(model.embedding_, vectors[:, 1:3]) < 1e-5


def test_of_a_graph_in_pieces_the_largest_can_be_embedded_alone(swiss):
    points = np.concatenate([swiss[0][:300], 1000 + swiss[0][:100]])
    with pytest.raises(DisconnectedGraphError, match="2 components"):
        sm.LandmarkLLE(2, n_landmarks=100, disconnected="error").fit(points)
    with pytest.warns(UserWarning, match="the largest, 300 of 400 points"):
        largest = sm.LandmarkLLE(2, n_landmarks=100, disconnected="largest").fit(points)
    assert np.isfinite(largest.embedding_).all(axis=1).sum() == 300


def test_more_components_than_landmarks_allow_are_refused(swiss):
    with pytest.raises(ConfigError, match="n_components must be at most 49"):
        sm.LandmarkLLE(50, n_landmarks=50).fit(swiss[0])
    with pytest.raises(ConfigError, match=r"reg must be < 1"):
        sm.LandmarkLLE(reg=1.5).fit(swiss[0])


def test_on_the_command_line(swiss, tmp_path, scalemani):
    np.save(tmp_path / "points.npy", swiss[0])
    given = (tmp_path / "points.npy", tmp_path / "run", "--method", "locally-linear-embedding")
    given += ("--set", "landmarks.n_landmarks=60")
    assert scalemani("embed", *given)[0] == 0
    assert "locally-linear-embedding" in scalemani("info", tmp_path / "run")[1]
    assert scalemani("plan", *given, "--explain", "local_reconstruction")[0] == 0
    assert scalemani("transform", tmp_path / "run", tmp_path / "points.npy", tmp_path / "new.npy")[0] == 0
    assert scalemani("export", tmp_path / "run", tmp_path / "out.npy")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "new.npy"), np.load(tmp_path / "out.npy"), atol=1e-12)
