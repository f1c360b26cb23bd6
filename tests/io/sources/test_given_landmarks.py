"""Landmarks of the user's own: they are what a run computes with, by their content, on the data or off it."""

from functools import partial

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
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


ROWS = np.random.default_rng(5).choice(1300, 60, replace=False)
BY_FUNCTIONS = (sm.landmark_weights, partial(sm.landmark_features, eta=3000.0))


def on_points(kind, landmarks, **given):
    """Return a model of POINTS by landmarks; both kinds refuse such that are no points."""
    if kind == "isomap":
        return sm.LandmarkIsomap(2, landmarks=landmarks, **given).fit(POINTS)
    return sm.LaplacianEigenmaps(2, landmarks=landmarks, solver="variational-nystrom", **given).fit(POINTS)


@pytest.mark.parametrize("kind", ["isomap", "variational"])
def test_methods_by_points_take_landmarks_that_are_rows_of_the_points_and_their_numbers(kind, tmp_path):
    model = on_points(kind, POINTS[ROWS].copy(), store=tmp_path / "run")
    np.testing.assert_array_equal(model.run_.landmarks.rows, np.sort(ROWS))
    np.testing.assert_array_equal(model.run_.landmarks.points, POINTS[np.sort(ROWS)])
    for numbers in (ROWS, ROWS.tolist(), np.sort(ROWS)[:, np.newaxis]):
        np.testing.assert_allclose(on_points(kind, numbers).embedding_, model.embedding_, atol=1e-12)


@pytest.mark.parametrize("kind", ["isomap", "variational"])
def test_methods_by_points_say_which_landmark_is_none(kind):
    landmarks = POINTS[ROWS].copy()
    landmarks[[7, 9]] += 1e-9
    with pytest.raises(DataError, match="row 7 of the landmarks is no row of the points, nor are 1 more"):
        on_points(kind, landmarks)


@pytest.mark.parametrize("suffix", ["npy", "csv", "txt"])
def test_the_command_line_takes_row_numbers(scalemani, tmp_path, suffix):
    np.save(tmp_path / "points.npy", POINTS)
    numbers = tmp_path / f"rows.{suffix}"
    if suffix == "npy":
        np.save(numbers, ROWS)
    else:
        numbers.write_text("".join(f"{row}\n" for row in ROWS))
    common = ("embed", tmp_path / "points.npy", tmp_path / "run", "--method", "pca")
    status, _, errors = scalemani(*common, "--landmarks", numbers)
    assert status == 0, errors
    np.testing.assert_array_equal(sm.open_run(tmp_path / "run").landmarks.rows, np.sort(ROWS))


def test_row_numbers_count_rows_with_gaps_and_equal_rows():
    points = np.concatenate([POINTS[:3], POINTS])
    points[5] = np.nan
    asked = {**ASKED, "missing": "leave-out", "settings": {"duplicates.tolerance": 0.0}}
    model = sm.LaplacianEigenmaps(landmarks=3 + ROWS[ROWS != 2], **asked).fit(points)
    given = sm.LaplacianEigenmaps(landmarks=POINTS[np.sort(ROWS[ROWS != 2])], **asked).fit(points)
    np.testing.assert_allclose(model.embedding_, given.embedding_, atol=1e-9)
    with pytest.raises(DataError, match="landmarks name row 5, which has a gap"):
        sm.LaplacianEigenmaps(landmarks=[1, 5, 90, 100, 200, 300], **asked).fit(points)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([3, 1300, 5], r"landmarks name row 1300 \(at place 1\), and the 1300 points have rows 0 to 1299"),
        ([3, -1, 5], r"landmarks name row -1 \(at place 1\)"),
        ([3, 8, 3, 9, 9], "landmarks name row 3 2 times, 2 rows in all more than once"),
    ],
)
def test_row_numbers_that_cannot_serve_are_refused(rows, message):
    for landmarks in (rows, np.array(rows)[:, np.newaxis]):
        with pytest.raises(DataError, match=message):
            sm.LandmarkPCA(2, landmarks=landmarks).fit(POINTS)
        for function in BY_FUNCTIONS:
            with pytest.raises(DataError, match=message):
                function(POINTS, landmarks)


@pytest.mark.parametrize("function", BY_FUNCTIONS)
@pytest.mark.parametrize("kind", ["array", "float32", "frame", "Dask", "sparse", "npy"])
def test_functions_take_row_numbers_in_the_order_given(function, kind, tmp_path):
    np.save(tmp_path / "points.npy", POINTS)
    np.save(tmp_path / "rows.npy", ROWS)
    kinds = {
        "array": lambda: POINTS,
        "float32": lambda: POINTS.astype(np.float32),
        "frame": lambda: pytest.importorskip("pandas").DataFrame(POINTS, columns=[f"x{n}" for n in range(64)]),
        "Dask": lambda: da.from_array(POINTS, chunks=(400, 64)),
        "sparse": lambda: sp.csr_matrix(POINTS),
        "npy": lambda: tmp_path / "points.npy",
    }
    points, places = kinds[kind](), POINTS.astype(np.float32)[ROWS] if kind == "float32" else POINTS[ROWS]
    expected = function(points, places)
    (tmp_path / "rows.csv").write_text("".join(f"{row}\n" for row in ROWS))
    files = [tmp_path / "rows.npy", str(tmp_path / "rows.csv")]
    for numbers in (ROWS, ROWS.tolist(), ROWS[:, np.newaxis], *files):
        assert abs(function(points, numbers) - expected).max() == 0


def test_row_numbers_name_rows_in_the_geometry_of_features_and_one_column_is_of_places():
    counts = np.random.default_rng(0).poisson(2, (50, 6)) + 1
    roots = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
    for points in (counts, sp.csr_matrix(counts)):
        found = sm.landmark_features(points, [7, 3], 0.5, geometry="hellinger")
        np.testing.assert_allclose(found, np.exp(-((roots[:, np.newaxis] - roots[[7, 3]]) ** 2).sum(2) / 0.5))
    line = np.arange(9.0)[:, np.newaxis] ** 2
    places = np.array([[1], [4]])
    np.testing.assert_allclose(sm.landmark_features(line, places, 10.0), np.exp(-((line - places.T) ** 2) / 10))
    np.testing.assert_allclose(sm.landmark_features(line, [1, 2], 10.0), np.exp(-((line - places.T) ** 2) / 10))


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
        ({"landmarks": "given"}, ConfigError, "landmarks='given' takes landmarks"),
        ({"landmarks": CENTRES, "n_landmarks": 49}, ConfigError, "n_landmarks=49 asks for another number"),
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
