"""Runs in another metric than the Euclidean one: the graph is that of brute force, and all else follows the graph."""

import numpy as np
import pytest
import zarr
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

import scalemani as sm
from scalemani.config.metrics import METRIC_NAMES
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import open_points
from scalemani.runs.exporting import export_result
from scalemani.runs.walk import plan_run, run

N, K = 2000, 10
MAPPED = ("cosine", "correlation", "hellinger")


def hellinger(rows, others):
    roots, other_roots = (np.sqrt(table / table.sum(axis=1, keepdims=True)) for table in (rows, others))
    return pairwise_distances(roots, other_roots) / np.sqrt(2)


@pytest.fixture(scope="module")
def counts():
    """Counts of 30 words in 2,000 texts of different lengths, no two of which have the same shares."""
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.full(30, 0.3), 2000)
    return rng.poisson(shares * rng.integers(50, 5000, (2000, 1))) + rng.integers(1, 3, (2000, 30))


def brute_force(metric, rows, others, k):
    """Return the k nearest of the others by scikit-learn: indices and distances (n, k)."""
    if metric == "hellinger":
        away = hellinger(rows.astype(float), others.astype(float))
    else:
        away = NearestNeighbors(n_neighbors=len(others), algorithm="brute", metric=metric).fit(others)
        distances, indices = away.kneighbors(rows.astype(float))
        return indices[:, :k], distances[:, :k]
    indices = np.argsort(away, axis=1)[:, :k]
    return indices, np.take_along_axis(away, indices, axis=1)


@pytest.mark.parametrize(
    ("metric", "method"),
    [("euclidean", "exact"), *((metric, method) for metric in MAPPED for method in ("exact", "partition"))],
)
def test_the_graph_is_that_of_scikit_learns_brute_force(counts, metric, method):
    points = counts.astype(np.float64)
    if metric == "euclidean":  # shares, which unlike counts have no ties
        points /= points.sum(axis=1, keepdims=True)
    found = sm.knn_graph(points, K, method, recall=1.0, metric=metric, settings={"neighbors.sampled_queries": N})
    indices, distances = brute_force(metric, points, points, K + 1)
    assert (indices[:, 0] == np.arange(N)).mean() > 0.999
    np.testing.assert_allclose(found.distances, distances[:, 1:], atol=1e-10 if method == "exact" else 0.02)
    same = (found.indices == indices[:, 1:]).mean()
    assert same > (0.9999 if method == "exact" else 0.98)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("method", ["exact", "partition"])
def test_the_hamming_graph_of_bits_has_the_distances_of_brute_force(method, kind):
    draws = np.random.default_rng(3)
    types = draws.random((20, 128)) < 0.1
    bits = types[draws.integers(0, 20, N)] ^ (draws.random((N, 128)) < 0.05)
    given = bits if kind == "dense" else sparse.csr_matrix(bits.astype(np.uint8))
    found = sm.knn_graph(given, K, method, recall=1.0, metric="hamming", settings={"neighbors.sampled_queries": N})
    expected = np.sort(pairwise_distances(bits, metric="hamming"), axis=1)[:, 1 : K + 1]
    within = (bits[:, np.newaxis] != bits[found.indices]).mean(axis=2)  # lists are sets up to ties
    np.testing.assert_allclose(found.distances, within, rtol=1e-6)
    assert np.isclose(within, expected, rtol=1e-6).mean() > (0.9999 if method == "exact" else 0.98)


@pytest.fixture(scope="module")
def sets():
    """Rows of 200 bits around 20 kinds of different sizes, two of them empty."""
    draws = np.random.default_rng(4)
    kinds = draws.random((20, 200)) < draws.uniform(0.02, 0.2, (20, 1))
    bits = kinds[draws.integers(0, 20, N)] ^ (draws.random((N, 200)) < 0.02)
    bits[[7, 1200]] = False
    return bits


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("method", ["exact", "partition", "leaves"])
def test_the_jaccard_graph_of_bits_has_the_distances_of_brute_force(sets, tmp_path, method, kind):
    if (method, kind) == ("leaves", "sparse"):
        pytest.skip("leaves are of dense points")
    given = sets if kind == "dense" else sparse.csr_matrix(sets.astype(np.uint8))
    sampled = {} if method == "exact" else {"recall": 1.0, "settings": {"neighbors.sampled_queries": N}}
    found = sm.knn_graph(given, K, method, metric="jaccard", store=tmp_path / "run", **sampled)
    away = pairwise_distances(sets, metric="jaccard")
    listed = np.take_along_axis(away, found.indices[:].astype(int), axis=1)
    np.testing.assert_allclose(found.distances, listed, rtol=1e-6, atol=0)
    np.fill_diagonal(away, np.inf)
    near = listed <= np.sort(away, axis=1)[:, K - 1 : K] * (1 + 1e-6)
    assert near.mean() > (0.99999 if method == "exact" else 0.98)
    assert found.recall == pytest.approx(near.mean(), abs=1e-6)
    assert found.distances[7, 0] == 0 if method == "exact" else True  # of two empty sets
    if (method, kind) == ("exact", "dense"):
        same = sm.knn_graph(given, K, method, metric="tanimoto", workers=1, **sampled)
        np.testing.assert_array_equal(found.indices, same.indices)
    new = found.query(given[:50], 3)
    np.testing.assert_array_equal(new.distances[:, 0], 0)
    np.testing.assert_allclose(new.distances[:, 1], np.sort(away[:50], axis=1)[:, 0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize("metric", MAPPED)
def test_other_dtypes_have_the_same_graph_to_the_rounding_of_float32(counts, metric, dtype):
    found = sm.knn_graph(counts.astype(dtype), K, "exact", metric=metric)
    _, distances = brute_force(metric, counts.astype(float), counts.astype(float), K + 1)
    assert found.distances.dtype == np.float32
    np.testing.assert_allclose(found.distances, distances[:, 1:], rtol=2e-5, atol=1e-9)


def test_cosine_distances_of_near_duplicates_keep_their_digits_in_a_graph():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1500, 8))
    twins = rows + 1e-7 * rng.normal(size=rows.shape)
    graph = sm.knn_graph(np.concatenate([rows, twins]), 3, metric="cosine")
    np.testing.assert_array_equal(graph.indices[:1500, 0], np.arange(1500, 3000))
    # sin^2 of the angle, from the part of the twin that is across the row.
    lengths = np.linalg.norm(rows, axis=1)
    away = (twins - rows) - rows * (np.sum((twins - rows) * rows, axis=1) / lengths**2)[:, None]
    expected = 0.5 * np.square(np.linalg.norm(away, axis=1) / lengths)
    np.testing.assert_allclose(graph.distances[:1500, 0], expected, rtol=1e-6)


def test_points_in_files_arrays_and_sparse_rows_have_one_graph(counts, tmp_path):
    np.save(tmp_path / "counts.npy", counts.astype(np.float64))
    expected = sm.knn_graph(counts.astype(np.float64), K, metric="cosine")
    for given in (tmp_path / "counts.npy", sparse.csr_matrix(counts.astype(np.float64)), counts.tolist()):
        np.testing.assert_array_equal(sm.knn_graph(given, K, metric="cosine").distances[...], expected.distances)


def planned_keys(points, tmp_path, **points_values):
    asked = Parameters().with_values({"points": points_values})
    plan = plan_run(open_points(points), tmp_path / "run", "t-sne", asked, Executor(workers=1))
    return {planned.stage.name: planned.key for planned in plan.stages}


def test_a_metric_has_keys_of_its_own_and_the_euclidean_one_those_of_none(counts, tmp_path):
    points = counts.astype(np.float64)
    plain = planned_keys(points, tmp_path)
    assert planned_keys(points, tmp_path, metric="euclidean") == plain
    cosine = planned_keys(points, tmp_path, metric="cosine")
    assert all(cosine[stage] != key for stage, key in plain.items())
    # Unit rows that come as they are have the same rows and other distances.
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    assert planned_keys(unit, tmp_path)["points"] != planned_keys(unit, tmp_path, metric="cosine")["points"]


@pytest.mark.parametrize("method", ["knn-graph", "laplacian-eigenmaps"])
def test_a_run_reports_and_exports_distances_of_the_metric(counts, tmp_path, method):
    points = counts.astype(np.float64)
    asked = Parameters().with_values({"points": {"metric": "cosine"}, "neighbors": {"n_neighbors": K}})
    finished = run(open_points(points), tmp_path / "run", method, asked, Executor(), 1024)
    _, distances = brute_force("cosine", points, points, K + 1)
    assert finished.metric == "cosine"
    np.testing.assert_allclose(finished.graph.distances[...], distances[:, 1:], atol=1e-10)
    export_result(finished, tmp_path / "graph.zarr", "graph")
    np.testing.assert_allclose(zarr.open(tmp_path / "graph.zarr")["distances"][...], distances[:, 1:], atol=1e-10)
    if method == "laplacian-eigenmaps":
        np.testing.assert_allclose(np.linalg.norm(finished.landmarks.points, axis=1), 1, rtol=1e-12)
        assert finished.certificates["landmarks"]["geometry"] == "rows at unit length"


def test_embeddings_under_cosine_are_those_of_unit_rows(counts):
    points = counts.astype(np.float64)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    found = sm.LaplacianEigenmaps(metric="cosine", perplexity=8, residual=1e-6).fit(points)
    expected = sm.LaplacianEigenmaps(perplexity=8, residual=1e-6).fit(unit)
    np.testing.assert_allclose(found.embedding_, expected.embedding_, atol=1e-7)
    lengths = np.random.default_rng(0).uniform(0.1, 10, (50, 1))
    np.testing.assert_allclose(found.transform(points[:50] * lengths), expected.transform(unit[:50]), atol=1e-7)


@pytest.mark.parametrize("metric", MAPPED)
def test_new_points_that_differ_by_length_alone_are_placed_where_training_points_are(counts, metric):
    points = counts.astype(np.float64)
    model = sm.TSNE(metric=metric, perplexity=8, max_iter=30).fit(points)
    np.testing.assert_array_equal(model.transform(4 * points[:40]), model.embedding_[:40])
    zero = np.zeros((3, 30))
    with pytest.raises(DataError, match="first rows 0, 1, 2"):
        model.transform(zero)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
def test_new_rows_of_bits_are_placed_where_equal_training_points_are(kind, metric):
    bits = np.random.default_rng(3).random((300, 40)) < 0.3
    given = bits if kind == "dense" else sparse.csr_matrix(bits.astype(np.uint8))
    model = sm.TSNE(metric=metric, perplexity=8, max_iter=20).fit(given)
    np.testing.assert_array_equal(model.transform(given[:30]), model.embedding_[:30])
    rows = bits[:3].astype(np.uint8)
    rows[1, 4] = 2
    with pytest.raises(DataError, match="hold other values than 0 and 1, which are no bits: first rows 1"):
        model.transform(rows if kind == "dense" else sparse.csr_matrix(rows))


def test_landmarks_say_where_they_lie_and_points_follow_them(counts):
    points = counts.astype(np.float64)
    landmarks = sm.select_landmarks(points, 50, metric="hellinger")
    assert landmarks.metric == "hellinger"
    np.testing.assert_allclose(np.square(landmarks.points).sum(axis=1), 1, rtol=1e-12)
    weights = sm.landmark_weights(points, landmarks)
    roots = np.sqrt(points / points.sum(axis=1, keepdims=True))
    expected = sm.landmark_weights(roots, landmarks.points)
    np.testing.assert_allclose(weights.toarray(), expected.toarray(), atol=1e-9)
    np.testing.assert_array_equal(weights[landmarks.indices].toarray(), np.eye(50))


BAD_ROWS = {
    "cosine": (0.0, "hold nothing but zeros, which have no direction"),
    "correlation": (7.0, "hold one value only, which correlates with nothing"),
    "hellinger": (-1.0, "hold negative values, which are no frequencies"),
    "hamming": (0.5, "hold other values than 0 and 1, which are no bits"),
    "jaccard": (0.5, "hold other values than 0 and 1, which are no bits"),
}


@pytest.mark.parametrize("metric", BAD_ROWS)
def test_rows_that_a_metric_cannot_take_are_named_before_anything_is_written(counts, tmp_path, metric):
    value, words = BAD_ROWS[metric]
    points = counts.astype(np.float64) if metric not in ("hamming", "jaccard") else (counts > 5).astype(np.float64)
    points[[1100, 1999]] = value
    with pytest.raises(DataError) as caught:
        sm.TSNE(metric=metric, store=tmp_path / "run").fit(points)
    assert str(caught.value) == (
        f"2 of rows [1024, 2000) of points {words}: first rows 1100, 1999. metric={metric!r} cannot take them: remove "
        "these rows, or use another metric"
    )
    assert not (tmp_path / "run").exists()


def test_values_that_are_not_finite_are_named_as_they_came(counts):
    points = counts.astype(np.float64)
    points[7, 3] = np.nan
    with pytest.raises(DataError, match=r"got 1 values that are not \(1 NaN, 0 inf.*row 7, column 3"):
        sm.knn_graph(sparse.csr_matrix(points), metric="cosine")


@pytest.mark.parametrize("call", ["estimator", "graph", "landmarks", "command line"])
def test_an_unknown_metric_is_refused_with_what_there_is(counts, tmp_path, scalemani, call):
    words = (
        f"must be one of {', '.join(METRIC_NAMES)}; or minkowski:P with a power P, or a function of two rows that "
        "numba compiles, as module:function or path.py::function; or find the neighbours elsewhere, by scikit-learn's "
        "NearestNeighbors or pynndescent, and give their lists with metric=precomputed"
    )
    calls = {
        "estimator": lambda: sm.LaplacianEigenmaps(metric="mahalanobis").fit(counts),
        "graph": lambda: sm.knn_graph(counts, metric="mahalanobis"),
        "landmarks": lambda: sm.select_landmarks(counts, 5, metric="mahalanobis"),
    }
    if call in calls:
        with pytest.raises(ConfigError, match=words):
            calls[call]()
        return
    np.save(tmp_path / "points.npy", counts)
    status, _, error = scalemani("embed", tmp_path / "points.npy", tmp_path / "run", "--metric", "mahalanobis")
    assert status == 2
    assert words in error
    assert "got 'mahalanobis'" in error


def test_l2_is_euclidean_wherever_a_metric_is_named(counts, tmp_path):
    points = counts[:300].astype(np.float32)
    named, plain = (sm.knn_graph(points, K, metric=metric) for metric in ("l2", "euclidean"))
    np.testing.assert_array_equal(named.distances, plain.distances)
    model = sm.LaplacianEigenmaps(metric="l2", perplexity=5, store=tmp_path / "run").fit(points)
    assert sm.open_run(tmp_path / "run").metric == "euclidean"
    np.testing.assert_array_equal(model.embedding_, sm.LaplacianEigenmaps(perplexity=5).fit(points).embedding_)
    assert sm.select_landmarks(points, 5, metric="l2").metric == "euclidean"


def test_the_command_line_takes_a_metric_and_says_how_new_points_are_compared(counts, tmp_path, scalemani):
    np.save(tmp_path / "points.npy", counts)
    given = (
        "embed",
        tmp_path / "points.npy",
        tmp_path / "run",
        "--metric",
        "cosine",
        "--set",
        "affinities.perplexity=5",
    )
    assert scalemani(*given)[0] == 0
    assert "metric cosine" in scalemani("info", tmp_path / "run")[1]
    status, out, _ = scalemani("transform", tmp_path / "run", tmp_path / "points.npy", tmp_path / "placed.npy")
    assert status == 0
    assert "cosine, rows at unit length" in out
