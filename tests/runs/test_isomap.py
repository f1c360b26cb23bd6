"""Landmark Isomap against scikit-learn's, and what it does with rolls, pieces and new points."""

import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll
from sklearn.manifold import Isomap

import scalemani as sm
from scalemani.errors import ConfigError, DisconnectedGraphError, MemoryBudgetError
from scalemani.params import Parameters
from scalemani.runs.walk import run
from scalemani.sources import open_points
from scalemani.workers.executor import Executor


@pytest.fixture(scope="module")
def swiss():
    """Return points (1500, 3) of a Swiss roll, and how far along it each lies."""
    return make_swiss_roll(1500, random_state=0)


@pytest.fixture(scope="module")
def unrolled(swiss):
    return sm.LandmarkIsomap(2, n_landmarks=150, n_neighbors=10).fit(swiss[0])


def same_but_for_signs(one, other):
    return np.abs(one - other * np.sign((one * other).sum(axis=0))).max()


def test_with_every_point_a_landmark_it_is_that_of_scikit_learn(swiss):
    points = swiss[0][:400]
    model = sm.LandmarkIsomap(3, n_landmarks=400, n_neighbors=8).fit(points)
    peer = Isomap(n_neighbors=8, n_components=3, eigen_solver="dense").fit(points)
    assert same_but_for_signs(model.embedding_, peer.embedding_) < 1e-6 * np.abs(peer.embedding_).max()


def test_a_tenth_of_the_points_as_landmarks_keeps_lengths_and_widths_of_a_swiss_roll(swiss, unrolled):
    points, along = swiss
    length = 0.5 * (along * np.sqrt(1 + along**2) + np.arcsinh(along))
    flat = np.column_stack([length, points[:, 1]])
    assert sm.measures.procrustes_error(unrolled.embedding_, flat - flat.mean(axis=0)) < 0.1
    assert 0 <= unrolled.certificates_["isomap"]["residual_variance"] < 0.01
    assert unrolled.certificates_["geodesics"]["longest_path"] < 1.2 * np.ptp(length) + np.ptp(points[:, 1])


def test_training_points_are_placed_where_they_are(swiss, unrolled):
    np.testing.assert_allclose(unrolled.transform(swiss[0]), unrolled.embedding_, atol=1e-9)


def test_blocks_and_workers_change_no_bit_and_other_dimensions_no_path(swiss, tmp_path):
    asked = {"landmarks": {"n_landmarks": 30}, "neighbors": {"n_neighbors": 10}}
    params = Parameters().with_values(asked)
    one, other = (
        run(open_points(swiss[0]), tmp_path / str(rows), "isomap", params, Executor(workers=n), rows)
        for n, rows in ((1, 1024), (2, 2048))
    )
    np.testing.assert_array_equal(one.embedding[...], other.embedding[...])
    three = run(
        open_points(swiss[0]),
        tmp_path / "1024",
        "isomap",
        params.with_values({"landmark_embedding": {"n_components": 3}}),
        Executor(),
    )
    assert three.keys["geodesics"] == one.keys["geodesics"]
    np.testing.assert_allclose(three.embedding[:, :2], one.embedding[...], atol=1e-9)


def test_pieces_are_joined_by_bridges_as_scikit_learn_joins_them(swiss):
    points = np.concatenate([swiss[0][:200], 60 + swiss[0][200:300]])
    every_pair = {"components.queries_per_component": 300}
    model = sm.LandmarkIsomap(2, n_landmarks=300, n_neighbors=10, tuning=every_pair).fit(points)
    with pytest.warns(UserWarning, match="connected components"):
        peer = Isomap(n_neighbors=10, n_components=2, eigen_solver="dense").fit(points)
    assert model.certificates_["components"]["bridges"] == 1
    assert same_but_for_signs(model.embedding_, peer.embedding_) < 1e-6 * np.abs(peer.embedding_).max()
    with pytest.raises(DisconnectedGraphError, match="2 components"):
        sm.LandmarkIsomap(2, n_landmarks=300, n_neighbors=10, disconnected="error").fit(points)


def test_landmarks_off_the_data_and_budgets_below_the_graph_are_refused(swiss):
    with pytest.raises(ConfigError, match=r"landmarks that are points, and landmarks\.method=gp puts them elsewhere"):
        sm.LandmarkIsomap(2, n_landmarks=50, landmarks="gp").fit(swiss[0])
    with pytest.raises(MemoryBudgetError, match="stage geodesics needs"):
        sm.LandmarkIsomap(2, n_landmarks=50, n_neighbors=1400, memory=690_000_000).fit(swiss[0])


def test_on_the_command_line(swiss, tmp_path, scalemani):
    np.save(tmp_path / "points.npy", swiss[0])
    given = (tmp_path / "points.npy", tmp_path / "run", "--method", "isomap", "--set", "landmarks.n_landmarks=40")
    assert scalemani("embed", *given)[0] == 0
    assert "residual_variance" in scalemani("info", tmp_path / "run")[1]
    assert scalemani("plan", *given, "--explain", "geodesics")[0] == 0
    assert scalemani("transform", tmp_path / "run", tmp_path / "points.npy", tmp_path / "new.npy")[0] == 0
    assert scalemani("export", tmp_path / "run", tmp_path / "out.npy")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "new.npy"), np.load(tmp_path / "out.npy"), atol=1e-9)
