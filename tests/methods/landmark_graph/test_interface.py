import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll

import scalemani as sm
from scalemani.errors import ConfigError, DataError, DisconnectedGraphError, ScalemaniWarning, ShortfallWarning


@pytest.fixture(scope="module")
def roll():
    points, angle = make_swiss_roll(6000, random_state=0)
    return points, angle, sm.select_landmarks(points, 300, "dpp", 0)


def place_along(embedding, angle):
    """Return how well a column of an embedding follows the length along the roll: the absolute rank correlation."""
    ranks = np.argsort(np.argsort(angle))
    return max(abs(np.corrcoef(np.argsort(np.argsort(column)), ranks)[0, 1]) for column in embedding.T)


def test_neighbours_by_local_geometry_keep_to_the_roll_where_euclidean_ones_cut_across(roll):
    points, angle, landmarks = roll
    covariances = sm.landmark_covariances(points, landmarks, 30).covariances
    followed = {
        name: place_along(sm.nystrom_eigenmaps(points, landmarks, 16, 2.5, covariances=some).embedding[:, :1], angle)
        for name, some in (("euclidean", None), ("bhattacharyya", covariances))
    }
    assert followed["bhattacharyya"] > 0.9
    assert followed["euclidean"] < 0.6


def test_a_point_is_placed_the_same_whatever_comes_with_it(roll):
    points, _, landmarks = roll
    whole = sm.nystrom_eigenmaps(points, landmarks, 10, 4.0).embedding
    np.testing.assert_allclose(sm.nystrom_eigenmaps(points[2000:2100], landmarks, 10, 4.0).embedding, whole[2000:2100])


@pytest.mark.parametrize("by_covariances", [False, True])
def test_a_landmark_graph_in_pieces_is_refused_by_the_function_as_by_a_run(by_covariances):
    rng = np.random.default_rng(3)
    points = np.r_[rng.normal(size=(200, 3)), rng.normal(size=(200, 3)) + 100]
    landmarks = points[::10]
    covariances = sm.landmark_covariances(points, landmarks, 20).covariances if by_covariances else None
    with pytest.raises(DisconnectedGraphError, match="graph of 40 landmarks falls into 2 pieces, the smallest of 20: "):
        sm.nystrom_eigenmaps(points, landmarks, 5, 1.0, covariances=covariances)
    with pytest.raises(DisconnectedGraphError, match="graph of 40 landmarks falls into 2 pieces, the smallest of 20: "):
        sm.LaplacianEigenmaps(solver="nystrom", n_landmarks=40, landmarks=landmarks, n_neighbors=5).fit(points)


def test_columns_that_have_no_extension_are_told_of_as_in_a_run():
    """A chain of landmarks that nearly only their neighbours weigh on has eigenvalues beyond one."""
    line = np.arange(12.0)[:, np.newaxis]
    with pytest.warns(ShortfallWarning, match=r"(\d) of 11 eigenvalues are 1 or more, .* fewer n_components") as told:
        found = sm.nystrom_eigenmaps(line, line, 2, 5.0, 11)
    n_zero = int(np.sum(~found.embedding.any(axis=0)))
    assert n_zero == np.sum(found.eigenvalues >= 1) > 0
    assert str(told[0].message).startswith(f"{n_zero} of 11")


def test_edges_that_are_zero_to_rounding_join_no_landmarks():
    line = np.r_[np.linspace(0, 1, 40), np.linspace(3, 4, 40)][:, np.newaxis]
    sm.nystrom_eigenmaps(line, line[::4], 10, 1.0, 1)
    with pytest.raises(DisconnectedGraphError, match="2 pieces"):
        sm.nystrom_eigenmaps(line, line[::4], 10, 0.2, 1)  # exp(-50) between the halves


def test_covariances_are_of_as_many_points_as_were_requested_and_so_are_those_of_a_run():
    points = np.random.default_rng(3).normal(size=(1500, 4))
    landmarks = sm.select_landmarks(points, 60, "kmeans")
    found = sm.landmark_covariances(points, landmarks, 40)
    np.testing.assert_array_equal(found.counts, 40)
    for row, covariance in zip(landmarks.indices, found.covariances, strict=True):
        nearest = points[np.argsort(np.linalg.norm(points - points[row], axis=1))[:40]]
        np.testing.assert_allclose(covariance, np.cov(nearest.T, bias=True), atol=1e-12)
    settings = {"landmark_graph.neighborhood": 40}
    asked = {"n_landmarks": 60, "landmarks": landmarks.points, "solver": "nystrom"}
    model = sm.LaplacianEigenmaps(settings={**settings, "landmark_graph.kind": "bhattacharyya"}, **asked).fit(points)
    assert model.certificates_["landmark_covariances"]["least_points"] == 40


def test_singular_covariances_are_told_of():
    points = np.random.default_rng(0).normal(size=(200, 8))
    with pytest.warns(ScalemaniWarning, match="10 of 10 landmarks have singular covariances"):
        found = sm.landmark_covariances(points, points[:10], 4)
    assert found.regularized.all()


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"n_neighbors": 20}, ConfigError, r"n_neighbors must be <= 19 \(one less than landmarks\), got 20"),
        ({"n_components": 20}, ConfigError, "n_components must be <= 19"),
        ({"sigma": 0.0}, ConfigError, r"sigma must be a number > 0, got 0\.0"),
        ({"sigma": "1"}, ConfigError, "sigma must be a number > 0, got '1'"),
        ({"landmarks": np.zeros((20, 3))}, DataError, "got 20 rows, 1 of them distinct"),
        ({"landmarks": np.eye(4)}, DataError, "points have 3 columns, landmarks 4"),
        ({"covariances": np.ones((20, 4))}, DataError, r"covariances must have shape \(20, 3, 3\), or \(20, 3\)"),
        ({"covariances": np.zeros((20, 3))}, DataError, "covariances must be finite and positive definite"),
        ({"covariances": np.full((20, 3, 3), np.nan)}, DataError, "covariances must be finite and positive definite"),
    ],
)
def test_what_cannot_be_used_is_refused(changed, error, words):
    points = np.random.default_rng(0).normal(size=(200, 3))
    given = {"landmarks": points[:20], "n_neighbors": 5, "sigma": 1.0} | changed
    with pytest.raises(error, match=words):
        sm.nystrom_eigenmaps(points, **given)


def test_a_neighbourhood_out_of_range_is_refused():
    points = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ConfigError, match="neighborhood must be >= 1, got 0"):
        sm.landmark_covariances(points, points[:5], 0)
