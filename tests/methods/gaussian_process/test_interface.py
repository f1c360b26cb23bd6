import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.errors import ConfigError, DataError

QUICK = {"landmarks.steps": 30}


def drawn(n_points=600, n_columns=5):
    return np.random.default_rng(0).normal(size=(n_points, n_columns))


def counted(n_documents=500, n_words=40):
    draws = np.random.default_rng(1)
    topics = draws.dirichlet(np.full(n_words, 0.1), 4)
    counts = np.stack([draws.multinomial(60, topics[document % 4]) for document in range(n_documents)])
    return counts, np.arange(n_documents) % 4


@pytest.mark.parametrize("method", ["gp", "gp-active", "kmeans", "random"])
def test_features_are_those_of_the_landmarks_that_select_landmarks_finds(method):
    points, new = drawn(), drawn(50) + 0.1
    model = sm.LandmarkFeatures(12, method=method, settings=QUICK, random_state=3).fit(points)
    selected = sm.select_landmarks(points, 12, method, random_state=3, settings=QUICK)
    np.testing.assert_allclose(
        model.landmarks_, selected.points, rtol=1e-9, atol=1e-9
    )  # the variances are summed in another order
    np.testing.assert_array_equal(model.indices_, selected.indices)
    assert model.eta_ == pytest.approx(points.var(axis=0).sum())
    expected = np.exp(-cdist(new, selected.points, "sqeuclidean") / model.eta_)
    np.testing.assert_allclose(model.transform(new), expected, rtol=1e-12)
    same = sm.landmark_features(new, selected, model.eta_)
    np.testing.assert_allclose(same, model.transform(new), rtol=1e-9)


@pytest.mark.parametrize("method", ["gp", "gp-active"])
def test_landmarks_are_chosen_at_the_bandwidth_of_the_features(method):
    points = drawn()
    model = sm.LandmarkFeatures(12, method=method, settings=QUICK, eta=0.7, random_state=3).fit(points)
    at_eta = sm.select_landmarks(points, 12, method, random_state=3, settings={**QUICK, "landmarks.eta": 0.7})
    np.testing.assert_allclose(model.landmarks_, at_eta.points, rtol=1e-9, atol=1e-9)
    by_default = sm.select_landmarks(points, 12, method, random_state=3, settings=QUICK)
    assert not np.allclose(model.landmarks_, by_default.points)


@pytest.mark.parametrize("kind", ["path", "dask", "sparse"])
def test_points_may_come_from_anywhere(tmp_path, kind):
    points = np.maximum(drawn(), 0)
    np.save(tmp_path / "points.npy", points)
    given = {
        "path": tmp_path / "points.npy",
        "dask": da.from_array(points, chunks=(77, 2)),
        "sparse": sp.csr_array(points),
    }[kind]
    model = sm.LandmarkFeatures(9, settings=QUICK).fit(points)
    same = sm.LandmarkFeatures(9, settings=QUICK, eta=model.eta_).fit(given)
    np.testing.assert_array_equal(same.landmarks_, model.landmarks_)
    np.testing.assert_allclose(model.transform(given), model.transform(points), rtol=1e-12)


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_matrix])
def test_landmarks_of_histograms_are_topics(as_given):
    counts, topic = counted()
    model = sm.LandmarkFeatures(4, geometry="hellinger", settings={"landmarks.steps": 200}).fit(as_given(counts))
    np.testing.assert_allclose(np.square(model.landmarks_).sum(axis=1), 1.0)
    assert model.landmarks_.min() >= 0
    features = model.transform(as_given(counts))
    nearest = features.argmax(axis=1)
    assert all(len(np.unique(nearest[topic == one])) == 1 for one in range(4))
    assert len(np.unique(nearest)) == 4
    roots = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(features, np.exp(-cdist(roots, model.landmarks_, "sqeuclidean") / model.eta_), rtol=1e-9)
    assert model.eta_ == pytest.approx(roots.var(axis=0).sum())


def test_what_cannot_be_is_refused():
    points, (counts, _) = drawn(), counted()
    counts[[3, 77]] = 0
    with pytest.raises(DataError, match="points hold nothing but zeros, which are no frequencies: first rows 3, 77"):
        sm.LandmarkFeatures(4, geometry="hellinger").fit(sp.csr_matrix(counts))
    with pytest.raises(DataError, match="hold negative values, which are no frequencies"):
        sm.LandmarkFeatures(4, geometry="hellinger").fit(points)
    with pytest.raises(ConfigError, match=r"^eta must be > 0, got 0"):
        sm.LandmarkFeatures(4, eta=0).fit(points)
    with pytest.raises(ConfigError, match="geometry 'helinger' is unknown: did you mean 'hellinger'"):
        sm.landmark_features(points, points[:3], 1.0, geometry="helinger")
    with pytest.raises(ConfigError, match="method 'gpp' is unknown: did you mean 'gp'"):
        sm.LandmarkFeatures(4, method="gpp").fit(points)
    with pytest.raises(DataError, match="X has 5 features, but the landmarks have 4 features"):
        sm.landmark_features(points, points[:3, :4], 1.0)
    with pytest.raises(ConfigError, match=r"n_landmarks must be <= 600 \(the number of points\), got 601"):
        sm.LandmarkFeatures(601, method="random").fit(points)


def test_columns_of_arrow_are_checked_by_their_names():
    arrow = pytest.importorskip("pyarrow")
    points = drawn(60, 3)
    table = arrow.table(dict(zip("abc", points.T, strict=True)))
    model = sm.LandmarkFeatures(4, method="random").fit(table)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.transform(table).shape == (60, 4)
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(table.select(["b", "a", "c"]))


@pytest.mark.parametrize(
    ("scale", "words"), [(1e300, "overflow float64"), (1e-200, "underflow float64"), (0.0, "zero variance")]
)
@pytest.mark.parametrize("eta", [None, 2.0])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_points_whose_squares_cannot_be_are_refused_with_their_reason(scale, words, eta, kind):
    with pytest.raises(DataError, match=words):
        sm.LandmarkFeatures(5, eta=eta, settings=QUICK).fit(kind(scale * drawn(50)))
