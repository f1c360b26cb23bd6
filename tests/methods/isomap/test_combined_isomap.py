"""Isomap of combinations of landmarks against the dense problem of all points, and against triangulation."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.io.sources import open_points
from scalemani.methods.isomap.geodesics import FEWEST_SAMPLED
from scalemani.runs.walk import run

K_Z = 5
PIXELS = load_digits().data[:950] + 0.01 * np.random.default_rng(0).normal(size=(950, 64))  # no ties
POINTS, NEW = np.split(PIXELS, [900])


def centred_squares(points, n_neighbors):
    """Return -J D^2 J / 2 of the shortest paths between all points."""
    away = cdist(points, points)
    nearest = np.argsort(away, axis=1)[:, 1 : n_neighbors + 1]
    edges = np.zeros_like(away)
    np.put_along_axis(edges, nearest, np.take_along_axis(away, nearest, axis=1), axis=1)
    centring = np.eye(len(points)) - 1 / len(points)
    return -0.5 * centring @ shortest_path(sp.csr_matrix(edges), directed=False) ** 2 @ centring


def dense_combinations(kernel, z, n_components):
    """Return Z v sqrt(lambda) of Z^T K Z v = lambda Z^T Z v, and lambda, descending."""
    values, vectors = scipy.linalg.eigh(z.T @ kernel @ z, z.T @ z)
    leading = values[::-1][:n_components]
    return z @ vectors[:, ::-1][:, :n_components] * np.sqrt(leading), leading


def same_but_for_signs(one, other):
    return np.abs(one - other * np.sign((one * other).sum(axis=0))).max()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    store = tmp_path_factory.mktemp("combined") / "run"
    return sm.CombinedIsomap(3, n_landmarks=80, n_neighbors=8, store=store).fit(POINTS)


def test_coordinates_are_those_of_the_dense_problem_and_new_points_those_of_their_weights(model):
    landmarks = POINTS[np.asarray(model.run_.landmarks.rows)]
    z, kernel = sm.landmark_weights(POINTS, landmarks, K_Z).toarray(), centred_squares(POINTS, 8)
    expected, values = dense_combinations(kernel, z, 3)
    size = np.abs(expected).max()
    assert same_but_for_signs(model.embedding_, expected) < 1e-8 * size
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    of_new = sm.landmark_weights(NEW, landmarks, K_Z) @ model.run_.group("combined_isomap").read("vectors")
    np.testing.assert_allclose(model.transform(NEW), of_new, atol=1e-9 * size)
    np.testing.assert_allclose(model.transform(POINTS), model.embedding_, atol=1e-9 * size)


def test_with_every_point_a_landmark_it_is_that_of_scikit_learn():
    points = POINTS[:300]
    found = sm.CombinedIsomap(3, n_landmarks=300, n_neighbors=8).fit(points)
    peer = Isomap(n_neighbors=8, n_components=3, eigen_solver="dense").fit(points)
    assert same_but_for_signs(found.embedding_, peer.embedding_) < 1e-6 * np.abs(peer.embedding_).max()
    assert found.certificates_["combined_isomap"]["residual"] < 1e-12


@pytest.mark.parametrize("method", ["random", "kmeans"])
def test_it_is_nearer_to_isomap_of_all_points_than_triangulation_by_the_same_landmarks(method):
    exact = Isomap(n_neighbors=8, n_components=2, eigen_solver="dense").fit_transform(POINTS)
    error, of_triangulation = (
        sm.measures.procrustes_error(
            kind(2, n_landmarks=80, landmarks=method, n_neighbors=8).fit_transform(POINTS), exact
        )
        for kind in (sm.CombinedIsomap, sm.LandmarkIsomap)
    )
    assert error < 0.9 * of_triangulation


def test_it_states_its_residual_for_paths_between_all_points():
    """Of few points all are sampled."""
    points = POINTS[:FEWEST_SAMPLED]
    found = sm.CombinedIsomap(2, n_landmarks=8, n_neighbors=6).fit(points)
    unit = found.embedding_ / np.linalg.norm(found.embedding_, axis=0)
    away = np.linalg.norm(centred_squares(points, 6) @ unit - unit * found.eigenvalues_, axis=0)
    stated = found.certificates_["combined_isomap"]
    expected = away.max() / found.eigenvalues_[0] * np.sqrt(FEWEST_SAMPLED / (FEWEST_SAMPLED - 1))
    assert stated["residual"] == pytest.approx(expected, rel=1e-6)
    assert (stated["residual"] > 0.02, stated["residual_error"]) == (True, 0)


@pytest.mark.parametrize("power", [332, -332])
def test_points_of_any_scale_have_the_same_map(model, power):
    found = sm.CombinedIsomap(3, n_landmarks=80, n_neighbors=8).fit(np.ldexp(POINTS, power))
    size = np.abs(model.embedding_).max()
    np.testing.assert_allclose(np.ldexp(found.embedding_, -power), model.embedding_, atol=1e-6 * size)


def test_blocks_and_workers_change_no_bit(tmp_path):
    points = np.random.default_rng(3).normal(size=(2500, 3))
    params = Parameters().with_values({"landmarks": {"n_landmarks": 30}, "neighbors": {"n_neighbors": 10}})
    one, other = (
        run(open_points(points), tmp_path / str(rows), "combined-isomap", params, Executor(workers=n), rows)
        for n, rows in ((1, 1024), (2, 2048))
    )
    np.testing.assert_array_equal(one.embedding[...], other.embedding[...])


def test_scaling_of_straight_distances_is_that_of_principal_components():
    """Metric scaling by landmarks is `LandmarkPCA`: the centred squares of straight distances are inner products."""
    found = sm.LandmarkPCA(3, n_landmarks=80, random_state=0).fit(POINTS)
    landmarks = POINTS[sm.select_landmarks(POINTS, 80, random_state=0).indices]
    centring = np.eye(len(POINTS)) - 1 / len(POINTS)
    kernel = -0.5 * centring @ cdist(POINTS, POINTS, "sqeuclidean") @ centring
    expected, values = dense_combinations(kernel, sm.landmark_weights(POINTS, landmarks, K_Z).toarray(), 3)
    assert same_but_for_signs(found.embedding_, expected) < 1e-7 * np.abs(expected).max()
    np.testing.assert_allclose(found.eigenvalues_ * (len(POINTS) - 1), values, rtol=1e-9)


def test_on_the_command_line(tmp_path, scalemani):
    np.save(tmp_path / "points.npy", POINTS)
    options = (
        "--method",
        "combined-isomap",
        "--set",
        "landmarks.n_landmarks=40",
        "--set",
        "landmark_weights.n_neighbors=12",
    )
    assert scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *options)[0] == 0
    assert "points_residual_variance" in scalemani("info", tmp_path / "run")[1]
    assert scalemani("transform", tmp_path / "run", tmp_path / "points.npy", tmp_path / "new.npy")[0] == 0
    assert scalemani("export", tmp_path / "run", tmp_path / "out.npy")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "new.npy"), np.load(tmp_path / "out.npy"), atol=1e-9)
