"""The neighbour graph as a product: exact where that is asked, certified where it is not, zarr where points are."""

import gc
import time

import dask.array as da
import numpy as np
import pytest
import zarr

import scalemani as sm
from scalemani.errors import ConfigError, DataError
from scalemani.runs.opened import open_run


def brute_force(points, k):
    """Return neighbours by distance, then by row, self excluded by row: (N, k) indices and distances."""
    table = points.astype(np.float64)
    indices = np.empty((len(points), k), np.int64)
    distances = np.empty((len(points), k))
    for row, point in enumerate(table):
        away = np.sqrt(np.sum((table - point) ** 2, axis=1))
        away[row] = np.inf
        nearest = np.lexsort((np.arange(len(points)), away))[:k]
        indices[row], distances[row] = nearest, away[nearest]
    return indices, distances


def as_zarr(points, folder):
    stored = zarr.create_array(
        str(folder / "points.zarr"), shape=points.shape, dtype=points.dtype, chunks=(500, points.shape[1])
    )
    stored[...] = points
    return stored


@pytest.fixture(scope="module")
def normal():
    return np.random.default_rng(1).normal(size=(2300, 6))


@pytest.mark.parametrize("kind", ["numpy", "zarr", "dask", "path"])
def test_exact_is_brute_force_whatever_holds_the_points(normal, tmp_path, kind):
    given = {
        "numpy": lambda: normal,
        "zarr": lambda: as_zarr(normal, tmp_path),
        "dask": lambda: da.from_array(normal, chunks=(700, 6)),
        "path": lambda: (np.save(tmp_path / "points.npy", normal), tmp_path / "points.npy")[1],
    }[kind]()
    graph = sm.knn_graph(given, 15, method="exact")
    assert isinstance(graph.indices, np.ndarray if kind == "numpy" else zarr.Array)
    assert isinstance(graph.distances, np.ndarray if kind == "numpy" else zarr.Array)
    indices, distances = brute_force(normal, 15)
    assert len(graph.indices) == len(normal)
    np.testing.assert_array_equal(graph.indices[...], indices)
    np.testing.assert_allclose(graph.distances[...], distances, rtol=1e-14)
    assert graph.distances.dtype == np.float64
    assert graph.recall == 1.0


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_ties_go_by_row_in_input_order(dtype):
    points = np.random.default_rng(2).integers(0, 4, size=(1500, 3)).astype(dtype)
    graph = sm.knn_graph(points, 12, method="exact")
    indices, distances = brute_force(points, 12)
    np.testing.assert_allclose(graph.distances, distances, rtol=1e-6)
    np.testing.assert_array_equal(graph.indices, indices)
    assert graph.distances.dtype == np.float32


@pytest.mark.parametrize("method", ["exact", "partition"])
def test_a_point_is_left_out_by_its_row_and_its_duplicates_are_not(roll, method):
    points = np.repeat(roll[:600], 3, axis=0)
    graph = sm.knn_graph(points, 5, method=method)
    rows = np.arange(len(points))[:, np.newaxis]
    assert not (graph.indices == rows).any()
    assert (graph.distances[:, :2] == 0).all()
    assert (graph.distances[:, 2] > 0).all()
    np.testing.assert_array_equal(graph.indices[:, :2] // 3, np.broadcast_to(rows // 3, (len(points), 2)))


def test_the_recall_that_is_stated_is_the_recall_that_is(tmp_path):
    rng = np.random.default_rng(3)
    points = (rng.normal(size=(6000, 5)) @ rng.normal(size=(5, 30)) + 0.3 * rng.normal(size=(6000, 30))).astype("f4")
    graph = sm.knn_graph(points, 10, method="partition", recall=0.8, store=tmp_path / "run")
    truth, _ = brute_force(points, 10)
    shared = np.mean([len(np.intersect1d(a, b)) for a, b in zip(graph.indices, truth, strict=True)]) / 10
    assert graph.recall >= 0.8
    assert abs(graph.recall - shared) < 0.02
    assert open_run(tmp_path / "run").records()["neighbors"]["certificates"]["method"] == "partition"
    rows = np.arange(6000)[:, np.newaxis]
    assert not (graph.indices == rows).any()
    away = np.linalg.norm(points[graph.indices].astype("f8") - points[:, np.newaxis].astype("f8"), axis=2)
    np.testing.assert_allclose(graph.distances, away, rtol=1e-6)
    assert (np.diff(graph.distances, axis=1) >= 0).all()
    assert all(len(np.unique(row)) == 10 for row in graph.indices)


def test_the_same_seed_gives_the_same_graph_whatever_runs_it(roll, tmp_path):
    one = sm.knn_graph(roll, 8, method="partition", random_state=5, workers=1)
    other = sm.knn_graph(as_zarr(roll, tmp_path), 8, method="partition", random_state=5, workers=2)
    np.testing.assert_array_equal(one.indices, other.indices[...])
    np.testing.assert_array_equal(one.distances, other.distances[...])
    assert one.recall == other.recall


def test_a_graph_in_a_store_is_kept_and_a_temporary_one_goes_with_its_arrays(normal, tmp_path, temporary_files):
    kept = sm.knn_graph(normal, 7, store=tmp_path / "run")
    np.testing.assert_array_equal(open_run(tmp_path / "run").group("graph").read("indices"), kept.indices)
    indices = sm.knn_graph(da.from_array(normal), 7).indices
    gc.collect()
    np.testing.assert_array_equal(indices[...], kept.indices)
    assert list(temporary_files.glob("scalemani-*"))
    del indices
    deadline = time.monotonic() + 240  # zarr's own thread may hold what it has read for a moment more
    while list(temporary_files.glob("scalemani-*")) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert not list(temporary_files.glob("scalemani-*"))


@pytest.mark.parametrize(("n_points", "k"), [(3, 1), (3, 2), (4, 3), (40, 39), (200, 20)])
def test_few_points_have_graphs_too(n_points, k):
    points = np.random.default_rng(0).normal(size=(n_points, 2))
    np.testing.assert_array_equal(sm.knn_graph(points, k).indices, brute_force(points, k)[0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_neighbors": 40}, r"N=40 points, need more than n_neighbors \(k=40\)"),
        ({"n_neighbors": 0}, "^n_neighbors must be >= 1"),
        ({"n_neighbors": 2.5}, "^n_neighbors must be"),
        ({"n_neighbors": 5, "method": "brute"}, "'exact'"),
        ({"n_neighbors": 5, "recall": 1.5}, "^recall must be"),
        ({"n_neighbors": 5, "random_state": "x"}, "random_state must be an integer"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, given, message):
    points = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises((ConfigError, DataError), match=message):
        sm.knn_graph(points, **given, store=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_graph_has_a_length_and_takes_rows_as_numpy_does(normal, tmp_path):
    indices, distances = brute_force(normal, 7)
    mask = np.arange(len(normal)) % 3 == 1
    graphs = sm.knn_graph(normal, 7), sm.knn_graph(normal, 7, store=tmp_path / "run"), open_run(tmp_path / "run").graph
    for graph in graphs:
        assert len(graph) == len(normal)
        for rows in (3, -1, slice(2, 9), slice(None, None, 100), mask, [5, 2, 5], np.array([1, 0])):
            found = graph[rows]
            np.testing.assert_array_equal(found.indices, indices[rows])
            np.testing.assert_allclose(found.distances, distances[rows], rtol=1e-6)
            assert [part.shape for part in found] == [indices[rows].shape] * 2
        assert [part.shape for part in graph] == [indices.shape] * 2


@pytest.mark.parametrize("k", [1, 7, 30])
def test_new_points_find_their_neighbours_among_the_points(normal, tmp_path, k):
    new = np.concatenate([normal[:5], np.random.default_rng(5).normal(size=(295, 6))])
    graph = sm.knn_graph(normal, 7, store=tmp_path / "run")
    found = graph.query(new, k)
    away = np.linalg.norm(new[:, np.newaxis] - normal, axis=2)
    truth = np.argsort(away, axis=1, kind="stable")[:, :k]
    shared = np.mean([len(np.intersect1d(a, b)) for a, b in zip(found.indices, truth, strict=True)]) / k
    assert shared > 0.8
    assert abs(found.recall - shared) < 0.05
    np.testing.assert_allclose(found.distances, np.take_along_axis(away, found.indices, axis=1), atol=1e-12)
    np.testing.assert_array_equal(found.indices[:5, 0], np.arange(5))
    assert graph.query(da.from_array(new)).indices.shape == (300, 7)


def test_a_query_that_cannot_be_answered_is_refused(normal, tmp_path):
    with pytest.raises(ConfigError, match="store=FOLDER"):
        sm.knn_graph(normal, 7).query(normal[:3])
    graph = sm.knn_graph(normal, 7, store=tmp_path / "run")
    for k in (0, 2301, True, 2.0):
        with pytest.raises(ConfigError, match="n_neighbors must be"):
            graph.query(normal[:3], k)
    with pytest.raises(DataError, match="5 features"):
        graph.query(normal[:3, :5])
    with pytest.raises(DataError, match="NaN"):
        graph.query(np.full((3, 6), np.nan))


def test_the_graph_of_a_run_and_of_an_estimator_is_that_of_knn_graph(normal, tmp_path):
    points = normal[:400]
    model = sm.LaplacianEigenmaps(n_neighbors=9, n_landmarks=50, store=tmp_path / "run").fit(points)
    expected = sm.knn_graph(points, 9)
    for graph in (model.graph_, sm.open_run(tmp_path / "run").graph):
        assert isinstance(graph, sm.KnnGraph)
        assert graph.recall == 1.0
        np.testing.assert_array_equal(np.asarray(graph.indices), expected.indices)
        mask = np.arange(400) % 7 == 3
        of_rows = 7, -1, np.int64(3), [5, 1, 5], np.array([[399, 0], [-2, 200]]), mask, [], slice(5, 1, -2), ...
        of_columns = (7, 2), (slice(3, 9), 0), ([4, 2], [1, 8]), (mask, slice(None, 3)), slice(2, 9, 3)
        for rows in of_rows + of_columns:
            np.testing.assert_array_equal(graph.distances[rows], expected.distances[rows])
        with pytest.raises(IndexError, match="400"):
            graph.indices[400]
        indices, distances = graph  # as the two tables that it is
        assert indices.shape == distances.shape == (400, 9)
        found = graph.query(points[:30], 4)
        np.testing.assert_array_equal(found.indices, np.c_[np.arange(30), brute_force(points, 3)[0][:30]])
    without_store = sm.LaplacianEigenmaps(n_neighbors=9, n_landmarks=50).fit(points)
    with pytest.raises(AttributeError, match="give store=FOLDER"):
        _ = without_store.graph_


def test_the_graph_of_lists_that_were_passed_answers_no_query(normal, tmp_path):
    lists = sm.knn_graph(normal[:300], 20)
    sm.LaplacianEigenmaps(metric="precomputed", n_landmarks=50, store=tmp_path / "run").fit(lists)
    with pytest.raises(ConfigError, match="has precomputed neighbors: query takes a run of points"):
        sm.open_run(tmp_path / "run").graph.query(normal[:3])
