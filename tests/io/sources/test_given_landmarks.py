"""Landmarks of the user's own: they are what a run computes with, by their content, on the data or off it."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import scalemani as sm
from scalemani.errors import ConfigError, DataError

PIXELS = load_digits().data[:1500]
DIGITS = PIXELS + 0.01 * np.random.default_rng(0).normal(size=PIXELS.shape)  # no ties
POINTS, NEW = DIGITS[:1300], DIGITS[1300:]
ASKED = {"n_neighbors": 12, "perplexity": 4, "solver": "lll"}
CENTRES = np.random.default_rng(1).dirichlet(np.ones(10), 50) @ POINTS[:500].reshape(10, 50, -1).mean(axis=1)
ROUGH = pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")  # nothing refines these embeddings
pytestmark = ROUGH


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of an estimator with centres of groups of digits as landmarks."""
    place = tmp_path_factory.mktemp("given") / "run"
    sm.LaplacianEigenmaps(landmarks=CENTRES, store=place, **ASKED).fit(POINTS)
    return place


def test_points_that_are_given_as_landmarks_embed_as_those_that_a_method_chooses():
    rows = sm.select_landmarks(POINTS, 80, "spread", 3).indices
    chosen = sm.LaplacianEigenmaps(n_landmarks=80, landmarks="spread", random_state=3, **ASKED).fit(POINTS)
    given = sm.LaplacianEigenmaps(landmarks=POINTS[rows], random_state=3, **ASKED).fit(POINTS)
    np.testing.assert_allclose(given.embedding_, chosen.embedding_, atol=1e-9)
    np.testing.assert_allclose(given.transform(NEW), chosen.transform(NEW), atol=1e-9)


def test_a_run_keeps_them_and_says_that_they_are_no_points(folder):
    run = sm.open_run(folder)
    np.testing.assert_array_equal(run.landmarks.points, CENTRES)
    assert run.landmarks.rows is None
    assert run.params.landmarks.method == "given"
    assert run.params.n_landmarks == len(CENTRES)
    assert run.certificates["landmarks"]["mean_distance_to_nearest_point"] > 1


def test_new_points_have_their_weights_over_them(folder):
    run = sm.open_run(folder)
    weights = sm.landmark_weights(POINTS, CENTRES).toarray()
    found = np.asarray(run.embedding[...])
    coordinates = np.linalg.lstsq(weights, found, rcond=None)[0]
    np.testing.assert_allclose(weights @ coordinates, found, atol=1e-9 * np.abs(found).max())


def test_the_command_line_goes_on_from_the_same_file_and_computes_anew_for_another(scalemani, folder, tmp_path):
    np.save(tmp_path / "points.npy", POINTS)
    np.save(tmp_path / "landmarks.npy", CENTRES)
    np.save(tmp_path / "others.npy", CENTRES + 0.1)
    settings = [f"--set={name}" for name in ("neighbors.n_neighbors=12", "affinities.perplexity=4")]
    common = ("plan", tmp_path / "points.npy", folder, "--set=embedding.solver=lll", *settings)
    again = scalemani(*common, "--landmarks", tmp_path / "landmarks.npy")[1]
    assert again.count(" complete ") == 12
    other = scalemani(*common, "--landmarks", tmp_path / "others.npy")[1]
    lines = {line.split()[0]: line for line in other.splitlines()[2:-1]}
    missing = [name for name, line in lines.items() if " complete " not in line]
    assert missing == ["landmarks", "landmark_weights", "reduced", "landmark_embedding", "embedding"]


def test_they_are_mapped_as_points_are():
    found = [
        sm.LaplacianEigenmaps(landmarks=scale * CENTRES, metric="cosine", **ASKED).fit_transform(POINTS)
        for scale in (1.0, 4.0)
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)


def test_the_largest_component_keeps_them():
    apart = np.concatenate([POINTS[:600], 1000 + POINTS[:20]])
    model = sm.LaplacianEigenmaps(landmarks=CENTRES, disconnected="largest", **ASKED).fit(apart)
    alone = sm.LaplacianEigenmaps(landmarks=CENTRES, **ASKED).fit(POINTS[:600])
    assert np.isnan(model.embedding_[600:]).all()
    np.testing.assert_allclose(model.embedding_[:600], alone.embedding_, atol=1e-9)


def test_other_methods_take_them_too():
    chosen = sm.LandmarkPCA(2, n_landmarks=100, random_state=2)
    given = sm.LandmarkPCA(2, landmarks=sm.select_landmarks(POINTS, 100, random_state=2).points)
    np.testing.assert_allclose(given.fit_transform(POINTS), chosen.fit_transform(POINTS), atol=1e-6)


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"landmarks": "given"}, ConfigError, "landmarks.method=given takes landmarks"),
        ({"landmarks": CENTRES, "n_landmarks": 49}, ConfigError, "landmarks.n_landmarks=49 asks for another number"),
        ({"landmarks": CENTRES[:, :5]}, DataError, "landmarks have 5 columns, points 64"),
        (
            {"landmarks": np.concatenate([CENTRES, CENTRES[3:5]])},
            DataError,
            "2 repeated rows, the first of them row 50",
        ),
        ({"landmarks": CENTRES[:1]}, DataError, "at least 2 are needed"),
        ({"landmarks": np.where(CENTRES > 9, np.nan, CENTRES)}, DataError, "NaN"),
        ({"landmarks": CENTRES * 1e200}, DataError, "points and landmarks"),
        ({"landmarks": np.zeros((3, 64)), "metric": "cosine"}, DataError, "cosine"),
        ({"landmarks": CENTRES[:3]}, ConfigError, "landmark_weights.n_neighbors|n_components"),
    ],
)
def test_landmarks_that_cannot_serve_are_refused_before_work(asked, error, message):
    with pytest.raises(error, match=message):
        sm.LaplacianEigenmaps(**{**ASKED, "settings": {"landmark_weights.n_neighbors": 5}, **asked}).fit(POINTS)


def test_they_are_refused_where_no_stage_takes_them_or_another_method_is_named(scalemani, tmp_path):
    np.save(tmp_path / "points.npy", POINTS)
    np.save(tmp_path / "landmarks.npy", CENTRES)
    common = ("embed", tmp_path / "points.npy", tmp_path / "run", "--landmarks", tmp_path / "landmarks.npy")
    status, _, message = scalemani(*common, "--method", "knn-graph")
    assert status == 2
    assert "knn-graph takes none" in message
    assert not (tmp_path / "run").exists()
