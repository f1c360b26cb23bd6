"""Principal components and discriminants by landmarks against scikit-learn's of the same points."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_labels
from scalemani.kernels.measures import subspace_angle
from scalemani.runs.walk import plan_run, run

ANGLE = 1e-6
DIGITS, NAMES = load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def classified():
    return make_classification(900, 30, n_informative=12, n_redundant=0, n_classes=5, random_state=0)


def test_with_every_point_a_landmark_components_are_those_of_scikit_learn(classified):
    points, _ = classified
    model = sm.LandmarkPCA(4, n_landmarks=len(points)).fit(points)
    peer = PCA(4, svd_solver="full").fit(points)
    scores = peer.transform(points)
    assert subspace_angle(model.embedding_, scores) < ANGLE
    np.testing.assert_allclose(model.eigenvalues_, peer.explained_variance_, rtol=1e-9)
    signs = np.sign((model.embedding_ * scores).sum(axis=0))
    np.testing.assert_allclose(model.embedding_, scores * signs, atol=1e-8 * np.abs(scores).max())
    share = model.certificates_["principal_components"]["explained_share"]
    assert share == pytest.approx(peer.explained_variance_ratio_.sum(), rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_with_all_landmarks_around_each_point_components_are_exact(classified, offset):
    """Forty landmarks reconstruct points of thirty features, so that Z spans all linear functions of them."""
    points = classified[0] + offset
    settings = {"landmark_weights.n_neighbors": 40, "landmark_weights.regularization": 1e-12}
    model = sm.LandmarkPCA(3, n_landmarks=40, settings=settings).fit(points)
    assert subspace_angle(model.embedding_, PCA(3, svd_solver="full").fit_transform(points)) < ANGLE


def test_fewer_landmarks_never_explain_more_and_come_near(classified):
    exact = PCA(2, svd_solver="full").fit(DIGITS).explained_variance_
    few, many = (sm.LandmarkPCA(2, n_landmarks=n).fit(DIGITS).eigenvalues_ for n in (50, 800))
    assert (few <= exact * (1 + 1e-9)).all()
    assert (many <= exact * (1 + 1e-9)).all()
    assert many.sum() > few.sum()
    assert many.sum() > 0.9 * exact.sum()


@pytest.mark.parametrize("n_landmarks", [900, 100])
def test_with_landmarks_enough_discriminants_are_those_of_scikit_learn(classified, n_landmarks):
    points, labels = classified
    model = sm.LandmarkLDA(4, n_landmarks=n_landmarks).fit(points, labels)
    peer = LinearDiscriminantAnalysis(n_components=4, solver="svd").fit(points, labels)
    assert subspace_angle(model.embedding_, peer.transform(points)) < ANGLE
    new = points[::7] + 0.1
    ratio = model.transform(new) / peer.transform(new)
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-6)
    within = model.embedding_ - np.array([model.embedding_[labels == c].mean(axis=0) for c in range(5)])[labels]
    np.testing.assert_allclose(within.T @ within / (len(points) - 5), np.eye(4), atol=1e-8)


def test_constant_features_and_names_of_classes_do_no_harm():
    """Digits have pixels that are always empty, and labels may be words."""
    words = np.array([f"digit {name}" for name in NAMES])
    model = sm.LandmarkLDA(9).fit(DIGITS, words)
    peer = LinearDiscriminantAnalysis(n_components=9, solver="svd").fit(DIGITS, NAMES)
    assert subspace_angle(model.embedding_, peer.transform(DIGITS)) < 1e-5
    assert sm.measures.knn_accuracy(model.embedding_, NAMES).value > 0.95


def test_few_landmarks_beat_the_subset_of_them():
    """All labels count, and not those of the landmarks alone."""
    many = np.column_stack([DIGITS, np.random.default_rng(0).normal(size=(len(DIGITS), 200))])
    model = sm.LandmarkLDA(9, n_landmarks=150).fit(many, NAMES)
    rows = sm.select_landmarks(many, 150, random_state=0).indices
    subset = LinearDiscriminantAnalysis(n_components=9, solver="svd").fit(many[rows], NAMES[rows]).transform(many)
    found, baseline = (sm.measures.knn_accuracy(x, NAMES, 5).value for x in (model.embedding_, subset))
    assert found > baseline


def embedded(points, folder, method, workers=2, block_rows=1024, **values):
    params = Parameters().with_values({"landmarks": {"n_landmarks": 200}, **values})
    return run(points, folder, method, params, Executor(workers=workers), block_rows)


@pytest.mark.parametrize("method", ["pca", "lda"])
def test_blocks_and_workers_change_no_bit(roll, tmp_path, method):
    points = with_labels(open_points(roll), np.arange(len(roll)) * 4 // len(roll))
    given = points if method == "lda" else open_points(roll)
    one, other = (embedded(given, tmp_path / str(rows), method, n, rows) for n, rows in ((1, 1024), (3, 3072)))
    np.testing.assert_array_equal(one.embedding[...], other.embedding[...])


@pytest.mark.parametrize("method", ["pca", "lda"])
def test_training_points_are_placed_where_they_are(method):
    model = {"pca": sm.LandmarkPCA, "lda": sm.LandmarkLDA}[method](2, n_landmarks=100).fit(DIGITS, NAMES)
    np.testing.assert_allclose(model.transform(DIGITS), model.embedding_, atol=1e-9 * np.abs(model.embedding_).max())
    np.testing.assert_array_equal(model.transform(DIGITS[:1]), model.transform(DIGITS[:9])[:1])


def test_another_metric_keeps_the_labels():
    model = sm.LandmarkLDA(5, metric="cosine").fit(DIGITS, NAMES)
    unit = DIGITS / np.linalg.norm(DIGITS, axis=1, keepdims=True)
    peer = LinearDiscriminantAnalysis(n_components=5, solver="svd").fit(unit, NAMES)
    assert subspace_angle(model.embedding_, peer.transform(unit)) < 1e-4


def test_labels_are_in_the_key(tmp_path):
    points, executor = open_points(DIGITS), Executor(workers=1)

    def keys(labels):
        return {
            planned.stage.name: planned.key
            for planned in plan_run(with_labels(points, labels), tmp_path / "run", "lda", Parameters(), executor).stages
        }

    changed = NAMES.copy()
    changed[0] = 9
    plain, other = keys(NAMES), keys(changed)
    assert {stage for stage in plain if plain[stage] != other[stage]} == {"classes", "discriminants"}
    assert keys(NAMES.astype(str)) == plain


def test_on_the_command_line(tmp_path, scalemani):
    np.save(tmp_path / "points.npy", DIGITS)
    np.save(tmp_path / "labels.npy", NAMES)
    given = (tmp_path / "points.npy", tmp_path / "run", "--method", "lda", "--labels", tmp_path / "labels.npy")
    assert scalemani("embed", *given, "--set=landmark_embedding.n_components=3")[0] == 0
    status, output, _ = scalemani("plan", *given, "--set=landmark_embedding.n_components=3")
    assert (status, output.count("complete")) == (0, 5)
    summary = json.loads(scalemani("info", tmp_path / "run", "--json")[1])
    assert summary["stages"]["classes"]["certificates"] == {"classes": 10, "smallest_class": 174}
    assert scalemani("transform", tmp_path / "run", tmp_path / "points.npy", tmp_path / "new.npy")[0] == 0
    assert scalemani("export", tmp_path / "run", tmp_path / "out.npy")[0] == 0
    assert scalemani("export", tmp_path / "run", tmp_path / "values.npy", "--what", "eigenvalues")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "new.npy"), np.load(tmp_path / "out.npy"), atol=1e-9)
    assert np.load(tmp_path / "values.npy").shape == (3,)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (NAMES[:-1], "has 1796 labels for 1797 points"),
        (np.zeros(1797), "two classes at least, got one class"),
        (np.arange(1797), "1797 classes with one member each"),
        (np.linspace(0, 1, 1797), "labels must be classes"),
    ],
)
def test_labels_that_say_nothing_are_refused(labels, words):
    with pytest.raises(DataError, match=words):
        sm.LandmarkLDA().fit(DIGITS, labels)


def test_classes_of_one_member_are_told_of(listening, tmp_path):
    labels = NAMES.copy()
    labels[3] = 77
    executor = Executor(progress=listening)
    run(with_labels(open_points(DIGITS), labels), tmp_path / "run", "lda", Parameters(), executor)
    assert any("1 classes have one member" in line and "77" in line for line in listening.warned)


def test_more_components_than_there_can_be_are_refused(tmp_path, scalemani):
    with pytest.raises(ConfigError, match=r"at most 9 for 64 features, 10 classes and n_landmarks=1000, got 10"):
        sm.LandmarkLDA(10).fit(DIGITS, NAMES)
    with pytest.raises(ConfigError, match=r"at most 64 for 64 features and n_landmarks=1000, got 65"):
        sm.LandmarkPCA(65).fit(DIGITS)
    with pytest.raises(ConfigError, match=r"at most 19 .* n_landmarks=20, got 30"):
        sm.LandmarkPCA(30, n_landmarks=20).fit(DIGITS)
    with pytest.raises(ConfigError, match="requires y to be passed"):
        sm.LandmarkLDA().fit(DIGITS)
    np.save(tmp_path / "points.npy", DIGITS)
    status, _, errors = scalemani("embed", tmp_path / "points.npy", tmp_path / "run", "--method", "lda")
    assert status == 2
    assert errors.splitlines()[-1].startswith("error: lda learns from labels: give one a point with --labels FILE")
    assert not (tmp_path / "run").exists()
