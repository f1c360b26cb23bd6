import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll

import scalemani as sm
from scalemani.errors import ConfigError, DataError, ScalemaniWarning


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
