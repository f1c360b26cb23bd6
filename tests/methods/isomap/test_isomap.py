"""Landmark Isomap against scikit-learn's, and what it does with rolls, pieces and new points."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.manifold import Isomap

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DisconnectedGraphError, MemoryBudgetError
from scalemani.io.sources import open_points
from scalemani.runs.walk import run


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


@pytest.fixture(scope="module")
def digits():
    """Return 900 digits without ties, and 50 others."""
    pixels = load_digits().data[:950]
    return np.split(pixels + 0.01 * np.random.default_rng(0).normal(size=pixels.shape), [900])


def plain_landmark_isomap(points, new, rows, n_neighbors, n_components):
    """Return the embedding of points and of new ones by landmarks, and the eigenvalues, by dense algebra."""
    away = cdist(points, points)
    nearest = np.argsort(away, axis=1)[:, : n_neighbors + 1]  # each point is its own nearest
    edges = np.zeros_like(away)
    np.put_along_axis(edges, nearest, np.take_along_axis(away, nearest, axis=1), axis=1)
    paths = shortest_path(sp.csr_matrix(edges), directed=False)
    squares = paths[np.ix_(rows, rows)] ** 2
    center = np.eye(len(rows)) - 1 / len(rows)
    values, vectors = np.linalg.eigh(-0.5 * center @ squares @ center)
    leading, directions = values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
    steps = cdist(new, points)
    first = np.argsort(steps, axis=1)[:, :n_neighbors]
    over = (np.take_along_axis(steps, first, axis=1)[:, :, np.newaxis] + paths[first][:, :, rows]).min(axis=1)
    placed = [
        -0.5 * (lengths**2 - squares.mean(axis=0)) @ directions / np.sqrt(leading) for lengths in (paths[:, rows], over)
    ]
    return *placed, values


def test_points_are_triangulated_by_their_paths_to_all_landmarks_and_new_ones_over_their_neighbours(digits, tmp_path):
    points, new = digits
    model = sm.LandmarkIsomap(2, n_landmarks=80, n_neighbors=8, store=tmp_path / "run").fit(points)
    expected, expected_new, values = plain_landmark_isomap(points, new, np.asarray(model.run_.landmarks.rows), 8, 2)
    signs = np.sign((expected * model.embedding_).sum(axis=0))
    size = np.abs(expected).max()
    np.testing.assert_allclose(model.embedding_, expected * signs, atol=1e-9 * size)
    np.testing.assert_allclose(model.transform(new), expected_new * signs, atol=1e-5 * size)
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:2], rtol=1e-10)
    assert values[0] < -0.01 * values[-1]  # no points have these distances, and the certificate says by how much
    assert model.certificates_["isomap"]["least_eigenvalue"] == pytest.approx(values[0], rel=1e-8)


def test_few_landmarks_come_nearer_to_isomap_of_all_points_than_weights_over_them(digits, tmp_path):
    """The paths of all points are known; coordinates of landmarks alone, spread by weights, forget them."""
    points = digits[0]
    exact = Isomap(n_neighbors=8, n_components=2, eigen_solver="dense").fit_transform(points)
    model = sm.LandmarkIsomap(2, n_landmarks=80, n_neighbors=8, store=tmp_path / "run").fit(points)
    rows = np.asarray(model.run_.landmarks.rows)
    weights = sm.landmark_weights(points, points[rows], 16)
    spread = weights @ model.embedding_[rows]
    error, of_weights = (sm.measures.procrustes_error(one, exact) for one in (model.embedding_, spread))
    assert error < 0.85 * of_weights


@pytest.mark.parametrize("power", [332, -332])
def test_points_of_any_scale_have_the_same_map(digits, power):
    points, new = digits
    asked = {"n_landmarks": 60, "n_neighbors": 8}
    one, other = (sm.LandmarkIsomap(2, **asked).fit(np.ldexp(points, exponent)) for exponent in (0, power))
    size = np.abs(one.embedding_).max()
    np.testing.assert_allclose(np.ldexp(other.embedding_, -power), one.embedding_, atol=1e-6 * size)
    placed = np.ldexp(other.transform(np.ldexp(new, power)), -power)
    np.testing.assert_allclose(placed, one.transform(new), atol=1e-5 * size)
    variances = [model.certificates_["isomap"]["residual_variance"] for model in (one, other)]
    assert variances[0] == pytest.approx(variances[1], rel=1e-6)


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
    model = sm.LandmarkIsomap(2, n_landmarks=300, n_neighbors=10, settings=every_pair).fit(points)
    with pytest.warns(UserWarning, match="connected components"):
        peer = Isomap(n_neighbors=10, n_components=2, eigen_solver="dense").fit(points)
    assert model.certificates_["components"]["bridges"] == 1
    assert same_but_for_signs(model.embedding_, peer.embedding_) < 1e-6 * np.abs(peer.embedding_).max()
    with pytest.raises(DisconnectedGraphError, match="2 components"):
        sm.LandmarkIsomap(2, n_landmarks=300, n_neighbors=10, disconnected="error").fit(points)


def test_landmarks_off_the_data_and_budgets_below_the_graph_are_refused(swiss):
    with pytest.raises(ConfigError, match=r"landmarks that are points, and landmarks='gp' puts them elsewhere"):
        sm.LandmarkIsomap(2, n_landmarks=50, landmarks="gp").fit(swiss[0])
    with pytest.raises(MemoryBudgetError, match="stage geodesics needs"):
        sm.LandmarkIsomap(2, n_landmarks=50, n_neighbors=1400, memory=260_000_000).fit(swiss[0])


def test_on_the_command_line(swiss, tmp_path, scalemani):
    np.save(tmp_path / "points.npy", swiss[0])
    given = (tmp_path / "points.npy", tmp_path / "run", "--method", "isomap", "--set", "landmarks.n_landmarks=40")
    assert scalemani("embed", *given)[0] == 0
    assert "residual_variance" in scalemani("info", tmp_path / "run")[1]
    assert scalemani("plan", *given, "--explain", "geodesics")[0] == 0
    assert scalemani("transform", tmp_path / "run", tmp_path / "points.npy", tmp_path / "new.npy")[0] == 0
    assert scalemani("export", tmp_path / "run", tmp_path / "out.npy")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "new.npy"), np.load(tmp_path / "out.npy"), atol=1e-9)
