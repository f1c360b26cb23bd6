"""Laplacian eigenmaps as an estimator: any kind of points, one answer; new points each on its own."""

import pickle
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
import zarr
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import scalemani as sm
from scalemani.engine.context import LEDGER_VARIABLE
from scalemani.errors import ConfigError, DataError, ScalemaniWarning
from scalemani.io.sources import open_points
from scalemani.runs.new_points import NewPoints, read_placement
from scalemani.runs.opened import open_run

SETTINGS = {"n_landmarks": 200, "perplexity": 5, "random_state": 3}


@pytest.fixture(scope="module")
def points(roll):
    return np.array(roll[:2500])


@pytest.fixture(scope="module")
def model(points):
    return sm.LaplacianEigenmaps(**SETTINGS).fit(points)


@pytest.mark.parametrize("kind", ["npy", "zarr", "zarr path", "dask", "float64", "list"])
def test_any_kind_of_points_gives_the_same_embedding(points, model, tmp_path, kind):
    np.save(tmp_path / "points.npy", points)
    stored = zarr.create_array(str(tmp_path / "points.zarr"), shape=points.shape, dtype="float32", chunks=(700, 3))
    stored[...] = points
    given = {
        "npy": tmp_path / "points.npy",
        "zarr": stored,
        "zarr path": str(tmp_path / "points.zarr"),
        "dask": da.from_array(points, chunks=(600, 3)),
        "float64": points.astype(np.float64),
        "list": points.tolist(),
    }[kind]
    other = sm.LaplacianEigenmaps(**SETTINGS).fit(given)
    np.testing.assert_allclose(other.embedding_, model.embedding_, rtol=0, atol=1e-5)
    np.testing.assert_allclose(other.eigenvalues_, model.eigenvalues_, rtol=1e-4)
    assert other.n_features_in_ == 3


def test_processes_and_a_client_give_the_answer_of_threads(points, model, tmp_path):
    apart = sm.LaplacianEigenmaps(**SETTINGS, scheduler="processes", workers=2).fit(points)
    np.testing.assert_allclose(apart.embedding_, model.embedding_, rtol=0, atol=1e-6)
    local = LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
    with local as cluster, Client(cluster) as client:
        served = sm.LaplacianEigenmaps(**SETTINGS, scheduler=client).fit(points)
    np.testing.assert_allclose(served.embedding_, model.embedding_, rtol=0, atol=1e-6)


def test_a_store_is_kept_and_resumed(points, model, tmp_path, monkeypatch):
    asked = {**SETTINGS, "store": tmp_path / "run"}
    first = sm.LaplacianEigenmaps(**asked).fit(points)
    np.testing.assert_array_equal(first.embedding_, model.embedding_)
    np.testing.assert_array_equal(open_run(tmp_path / "run").embedding[...], first.embedding_)
    monkeypatch.setenv(LEDGER_VARIABLE, str(tmp_path / "ledger"))
    again = sm.LaplacianEigenmaps(**asked).fit(points)
    assert not (tmp_path / "ledger").exists()
    np.testing.assert_array_equal(again.embedding_, first.embedding_)
    sm.LaplacianEigenmaps(**{**asked, "perplexity": 4}).fit(points)
    stages = {line.split()[0] for line in (tmp_path / "ledger").read_text().splitlines()}
    assert stages.isdisjoint({"points", "work_points", "landmark_weights"})


def test_a_batch_is_placed_as_its_rows_are_alone(model, points):
    rng = np.random.default_rng(0)
    new = (points[rng.integers(len(points), size=9000)] + rng.normal(0, 0.1, (9000, 3))).astype(np.float32)
    whole = model.transform(new)
    parts = [model.transform(part) for part in np.array_split(new, [1, 7, 100, 4096, 4097, 8500])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    order = rng.permutation(len(new))
    np.testing.assert_array_equal(model.transform(new[order]), whole[order])
    np.testing.assert_array_equal(model.transform(da.from_array(new, chunks=(1500, 3))), whole)
    with ThreadPoolExecutor(32) as pool:
        for placed in pool.map(model.transform, [new] * 32):
            np.testing.assert_array_equal(placed, whole)


@pytest.mark.parametrize("solver", ["refine", "lll", "lll+refine"])
def test_landmarks_are_placed_where_they_are(points, tmp_path, solver):
    model = sm.LaplacianEigenmaps(**SETTINGS, solver=solver, store=tmp_path / "run").fit(points)
    rows = open_run(tmp_path / "run").group("landmarks").read("rows")
    assert len(rows) == 200
    np.testing.assert_allclose(model.transform(points[rows]), model.embedding_[rows], rtol=0, atol=1e-8)
    if solver == "lll":  # Z times the landmarks' coordinates is then the embedding itself
        np.testing.assert_allclose(model.transform(points), model.embedding_, rtol=0, atol=1e-8)


@pytest.mark.parametrize("solver", ["refine", "lll", "lll+refine", "exact"])
def test_landmarks_off_the_data_place_new_points_too(points, tmp_path, solver):
    off_data = {**SETTINGS, "solver": solver, "landmarks": "kmeans", "settings": {"landmarks.snap": False}}
    model = sm.LaplacianEigenmaps(**off_data, store=tmp_path / "run").fit(points)
    landmarks = sm.select_landmarks(points, 200, "kmeans", random_state=3, snap=False)
    assert landmarks.indices is None
    np.testing.assert_array_equal(open_run(tmp_path / "run").group("landmarks").read("points"), landmarks.points)
    placed = model.transform(points)
    if solver == "lll":  # Z times the landmarks' coordinates is then the embedding itself
        np.testing.assert_allclose(placed, model.embedding_, rtol=0, atol=1e-8)
    on_data = sm.LaplacianEigenmaps(**SETTINGS, solver=solver).fit(points)
    spread = np.linalg.norm(model.embedding_ - model.embedding_.mean(axis=0), axis=0)
    missed = [np.linalg.norm(one.transform(points) - one.embedding_, axis=0) for one in (model, on_data)]
    assert (missed[0] <= np.maximum(1.2 * missed[1], 0.1 * spread)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(points)  # all of which lie within reach


def test_landmarks_off_the_data_that_no_point_uses_have_coordinates(tmp_path):
    rng = np.random.default_rng(5)
    points = np.concatenate([rng.normal(size=(600, 2)), rng.normal(size=(600, 2)) + np.array([7, 0])])
    settings = {"landmarks.snap": False, "landmark_weights.n_neighbors": 1}
    off_data = {"landmarks": "kmeans", "settings": settings}
    model = sm.LaplacianEigenmaps(n_landmarks=300, solver="lll", **off_data, store=tmp_path / "run").fit(points)
    landmarks = open_run(tmp_path / "run").group("landmarks").read("points")
    placed = model.transform(landmarks)
    nearest = np.square(landmarks[:, None] - points[None]).sum(axis=2).argmin(axis=1)
    assert (
        np.linalg.norm(placed - model.embedding_[nearest], axis=1).max() < 0.2 * np.ptp(model.embedding_, axis=0).max()
    )


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e12, 1e30, 1e150, 1e200, 1e300])
def test_new_points_far_from_all_others_get_finite_coordinates(model, distance):
    directions = np.concatenate([np.eye(3), -np.eye(3), np.ones((1, 3))])
    assert np.isfinite(model.transform(distance * directions)).all()


def test_new_points_far_from_all_others_are_told_of(model, points):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(points)
    with pytest.warns(
        ScalemaniWarning, match="2 of 6 new points lie more than 2 times as far from .* first rows 4, 5:"
    ):
        model.transform(np.vstack([points[:4], 1e6 * points[:2]]))


def test_no_rows_give_no_rows(model, tmp_path):
    assert model.transform(np.empty((0, 3))).shape == (0, 2)
    assert model.transform(da.zeros((0, 3))).shape == (0, 2)
    empty = zarr.create_array(str(tmp_path / "empty.zarr"), shape=(0, 3), dtype="float32", chunks=(10, 3))
    assert model.transform(empty).shape == (0, 2)


@pytest.mark.parametrize("make", [np.asarray, lambda rows: da.from_array(rows, chunks=(2, -1))])
def test_another_number_of_columns_is_refused_with_both_numbers(model, make):
    with pytest.raises(ValueError, match=r"4 features.* 3 features"):
        model.transform(make(np.zeros((5, 4))))


@pytest.mark.parametrize("make", [np.asarray, lambda rows: da.from_array(rows, chunks=(2, -1))])
def test_new_points_that_are_not_finite_are_refused(model, make):
    rows = np.zeros((5, 3))
    rows[3, 1] = np.nan
    with pytest.raises(DataError, match="row 3, column 1"):
        model.transform(make(rows))


def test_before_fit_there_is_nothing_to_place_points_in_and_nothing_to_see():
    for ask in (lambda model: model.transform(np.zeros((5, 3))), lambda model: model.plot(), lambda model: model.run_):
        with pytest.raises(NotFittedError):
            ask(sm.LaplacianEigenmaps())


def test_a_model_is_copied_and_cloned_like_any_other(model, points):
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.transform(points[:50]), model.transform(points[:50]))
    assert clone(model).get_params() == model.get_params()
    assert list(model.get_feature_names_out()) == ["laplacianeigenmaps0", "laplacianeigenmaps1"]


def test_a_run_that_is_opened_anew_places_points_as_its_model_does_to_the_bit(points, tmp_path):
    model = sm.LaplacianEigenmaps(**SETTINGS, store=tmp_path / "run").fit(points[:1000])
    placed = NewPoints(read_placement(open_run(tmp_path / "run")), open_points(points[1000:1500]))
    np.testing.assert_array_equal(placed.read(0, 500), model.transform(points[1000:1500]))


def test_data_frames_come_and_go(model, points):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(points, columns=["x", "y", "z"]).set_index(np.arange(len(points)) + 7)
    named = sm.LaplacianEigenmaps(**SETTINGS).set_output(transform="pandas").fit(frame)
    assert list(named.feature_names_in_) == ["x", "y", "z"]
    placed = named.transform(frame)
    assert (placed.index == frame.index).all()
    np.testing.assert_array_equal(placed.to_numpy(), model.transform(points))
    with pytest.raises(ValueError, match="feature names"):
        named.transform(frame.rename(columns={"x": "width"}))
    assert not hasattr(named.fit(da.from_array(points)), "feature_names_in_")


@pytest.mark.parametrize("n_points", [3, 4, 5, 10, 30, 95])
def test_what_is_left_open_follows_few_points(n_points):
    points = np.random.default_rng(n_points).normal(size=(n_points, 3))
    model = sm.LaplacianEigenmaps().fit(points)
    assert model.embedding_.shape == (n_points, 2)
    assert np.isfinite(model.embedding_).all()
    assert model.n_landmarks is None
    assert model.perplexity is None


def test_repeated_points_leave_fewer_landmarks():
    points = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 3, axis=0)
    model = sm.LaplacianEigenmaps().fit(points)
    assert model.certificates_["landmarks"]["landmarks"] == 20
    assert np.isfinite(model.embedding_).all()


def test_neighbours_that_are_given_bound_the_perplexity_that_is_not(points, tmp_path):
    sm.LaplacianEigenmaps(n_neighbors=12, n_landmarks=100, solver="lll", store=tmp_path / "run").fit(points)
    assert open_run(tmp_path / "run").params.affinities.perplexity == 4
    assert open_run(tmp_path / "run").params.n_neighbors == 12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_landmarks": 31}, "n_landmarks must be at most N=30"),
        ({"n_landmarks": 2.5}, "n_landmarks"),
        ({"n_neighbors": 30}, "need more than n_neighbors"),
        ({"n_neighbors": 0}, "^n_neighbors must be"),
        ({"perplexity": 30}, "perplexity must be < n_neighbors"),
        ({"perplexity": 1.0}, "perplexity must be > 1"),
        ({"perplexity": float("nan")}, "perplexity must be"),
        ({"perplexity": "30"}, "perplexity must be"),
        ({"n_components": 30}, "n_components must be below"),
        ({"n_components": 0}, "n_components"),
        ({"settings": {"landmark_weights.n_neighbors": 31}}, "n_neighbors must be at most"),
        ({"landmarks": "spreed"}, "'spread'"),
        ({"solver": "arpack"}, "'lll'"),
        ({"affinity": "gauss"}, "'gaussian'"),
        ({"random_state": -1}, "random_state must be >= 0"),
        ({"random_state": "seed"}, "random_state must be an integer"),
        ({"memory": "4 GX"}, "a size such as 4GB"),
        ({"workers": 0}, "workers must be an integer >= 1"),
        ({"scheduler": "tcp://user:secret@host:1"}, "without a password"),
        ({"scheduler": "127.0.0.1:8786"}, r"got '127.0.0.1:8786': did you mean tcp://127.0.0.1:8786\?"),
        ({"scheduler": "host"}, "got 'host'"),
        ({"scheduler": 5}, "got 5"),
    ],
)
def test_values_that_were_given_and_do_not_fit_are_refused(tmp_path, given, message):
    points = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises((ConfigError, DataError), match=message) as caught:
        sm.LaplacianEigenmaps(**given, store=tmp_path / "run").fit(points)
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("store", [5, "", b"run"])
def test_a_store_that_is_no_place_is_refused(points, store):
    with pytest.raises(ConfigError, match=re.escape(f"a run is a folder or at s3://bucket/name, got {store!r}")):
        sm.knn_graph(points, 5, store=store)


def test_a_store_may_be_a_bucket(points, model, bucket, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored = sm.LaplacianEigenmaps(**SETTINGS, store=f"{bucket}/run").fit(points)
    np.testing.assert_array_equal(stored.embedding_, model.embedding_)
    np.testing.assert_array_equal(open_run(f"{bucket}/run").embedding[...], model.embedding_)
    assert not list(tmp_path.iterdir())


def test_sparse_points_are_the_points_they_stand_for(points, model):
    sparse = scipy.sparse.csr_array(points)
    np.testing.assert_array_equal(sm.LaplacianEigenmaps(**SETTINGS).fit_transform(sparse), model.embedding_)
    np.testing.assert_array_equal(model.transform(sparse[:9]), model.transform(points[:9]))


UNGUARDED = """
import numpy as np
import scalemani as sm

print("started")
graph = sm.knn_graph(np.random.default_rng(0).normal(size=(50, 3)), 5, scheduler="processes", workers=2)
print(graph.indices.shape)
"""


def test_a_script_without_a_guard_is_not_run_again_by_every_process(tmp_path):
    (tmp_path / "script.py").write_text(UNGUARDED)
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.returncode) == ("started\n(50, 5)\n", 0), done.stderr


def test_models_that_are_fitted_side_by_side_do_not_mix(points):
    parts = [points[start::4] for start in range(4)]

    def embedded(part):
        return sm.LaplacianEigenmaps(n_landmarks=150, perplexity=5, solver="lll").fit(part).embedding_

    alone = [embedded(part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(pool.map(embedded, parts * 2), alone * 2, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_seed_can_be_drawn(points):
    few = points[:200]
    one, other = (
        sm.LaplacianEigenmaps(n_landmarks=50, solver="lll", random_state=np.random.RandomState(4)).fit(few).embedding_
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)
    sm.LaplacianEigenmaps(n_landmarks=50, solver="lll", random_state=None).fit(few)
