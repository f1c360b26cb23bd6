"""Runs that start from neighbour lists: the embedding is that of the same lists from points; bad lists are refused."""

from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from sklearn import neighbors
from sklearn.metrics import adjusted_rand_score, pairwise_distances

import scalemani as sm
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import DistanceMatrix, open_lists

K = 30
GIVEN = {"metric": "precomputed", "perplexity": 10}


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(1500, 5)) * [1, 1.5, 2, 2.5, 4]


@pytest.fixture(scope="module")
def graph(points):
    return sm.knn_graph(points, K, "exact")


@pytest.fixture(scope="module")
def expected(points):
    return sm.LaplacianEigenmaps(perplexity=10, n_neighbors=K, solver="exact").fit(points)


def with_self(graph):
    """The lists as searches give them that find each point first."""
    rows = np.arange(len(graph.indices))[:, None]
    return np.hstack([rows, graph.indices]), np.hstack([np.zeros(rows.shape), graph.distances])


def as_matrix(indices, distances):
    n_points, k = indices.shape
    return sparse.csr_matrix((distances.ravel(), indices.ravel(), np.arange(0, n_points * k + 1, k)), (n_points,) * 2)


def ways(points, graph):
    """The same lists from several libraries and in several containers."""
    found = neighbors.NearestNeighbors(n_neighbors=K + 1).fit(points)
    return {
        "scikit-learn's transformer": lambda: neighbors.KNeighborsTransformer(n_neighbors=K).fit_transform(points),
        "scikit-learn's search": lambda: found.kneighbors(points)[::-1],
        "scikit-learn's graph without self": lambda: found.kneighbors_graph(n_neighbors=K, mode="distance"),
        "our transformer": lambda: sm.KNeighborsTransformer(K).fit_transform(points),
        "a graph": lambda: graph,
        "a pair": lambda: (graph.indices, graph.distances),
        "COO": lambda: as_matrix(graph.indices, graph.distances + 0.0).tocoo(),
    }


def annotated(distances):
    return SimpleNamespace(obs_names=[], obsm={}, obsp={"connectivities": None, "distances": distances})


@pytest.mark.parametrize("way", [
    "scikit-learn's transformer", "scikit-learn's search", "scikit-learn's graph without self", "our transformer",
    "a graph", "a pair", "COO",
])  # fmt: skip
def test_the_embedding_is_that_of_the_same_lists_from_points(points, graph, expected, way):
    given = ways(points, graph)[way]()
    model = sm.LaplacianEigenmaps(**GIVEN, n_neighbors=K, solver="exact").fit(given)
    np.testing.assert_allclose(model.embedding_, expected.embedding_, atol=1e-6)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=1e-6)
    assert model.n_features_in_ == 1500


def test_other_containers_hold_the_same_lists(points, graph):
    indices, distances = with_self(graph)
    given_ways = {
        "distances first": (distances, indices),
        "those of faiss": (distances.astype(np.float32), indices),
        "umap's three": (indices.astype(np.int32), distances, None),
        "an AnnData": annotated(as_matrix(graph.indices, graph.distances)),
        "all distances": pairwise_distances(points),
        "distances in zarr": zarr.array(pairwise_distances(points), chunks=(400, 700)),
    }
    for way, given_lists in given_ways.items():
        found = open_lists(given_lists)
        found = found.nearest(K) if isinstance(found, DistanceMatrix) else found
        np.testing.assert_array_equal(np.sort(found.indices), np.sort(graph.indices), way)  # float32 has other ties
        np.testing.assert_allclose(found.distances, graph.distances, rtol=1e-6, err_msg=way)


def test_distances_give_as_many_neighbours_as_there_are_other_points():
    distances = pairwise_distances(np.random.default_rng(2).normal(size=(40, 3)))
    given_all = {**GIVEN, "n_landmarks": 20, "n_neighbors": 39}
    assert np.isfinite(sm.LaplacianEigenmaps(**given_all).fit(distances).embedding_).all()
    with pytest.raises(ConfigError, match="at most 39"):
        sm.LaplacianEigenmaps(**{**given_all, "n_neighbors": 40}).fit(distances)


def lists_of_faiss(points):
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlatL2(points.shape[1])
    index.add(points.astype(np.float32))
    squares, indices = index.search(points.astype(np.float32), K + 1)
    return np.sqrt(squares), indices


def lists_of_umap(points):
    umap = pytest.importorskip("umap.umap_")
    return umap.nearest_neighbors(points, K + 1, "euclidean", {}, False, np.random.RandomState(0))


def lists_of_scanpy(points):
    scanpy = pytest.importorskip("scanpy")
    cells = scanpy.AnnData(points)
    scanpy.pp.neighbors(cells, n_neighbors=K + 1, use_rep="X")
    return cells


@pytest.mark.parametrize("search", [lists_of_faiss, lists_of_umap, lists_of_scanpy])
def test_what_another_library_returns_is_taken_as_it_is(points, expected, search):
    """Those of scikit-learn are above, those of pynndescent in a module of their own."""
    model = sm.LaplacianEigenmaps(**GIVEN, n_neighbors=K, solver="exact").fit(search(points))
    # Distances are of float32, and a few neighbours others.
    np.testing.assert_allclose(model.embedding_, expected.embedding_, atol=1e-3)


@given(
    table=arrays.arrays(np.float64, (12, 12), elements=st.integers(0, 4).map(float)),
    k=st.integers(1, 11),
    rows_at_once=st.integers(1, 12),
)
def test_the_nearest_by_all_distances_are_those_of_a_sort(table, k, rows_at_once):
    distances = np.triu(table, 1) + np.triu(table, 1).T
    matrix = open_lists(distances)
    matrix.block_bytes = rows_at_once * distances[0].nbytes
    lists = matrix.nearest(k)
    for row, away in enumerate(distances):
        others = np.delete(np.arange(12), row)
        expected = others[np.lexsort((others, away[others]))][:k]
        np.testing.assert_array_equal(lists.indices[row], expected)
        np.testing.assert_array_equal(lists.distances[row], away[expected])


def test_all_distances_in_a_file_give_the_default_graph(points, tmp_path, scalemani):
    few = points[:200]
    np.save(tmp_path / "distances.npy", pairwise_distances(few))
    given = ("embed", tmp_path / "distances.npy", tmp_path / "run", "--metric", "precomputed")
    assert scalemani(*given)[0] == 0
    found, expected = sm.open_run(tmp_path / "run"), sm.LaplacianEigenmaps(store=tmp_path / "own").fit(few)
    np.testing.assert_array_equal(found.graph.indices[...], expected.run_.graph.indices[...])
    np.testing.assert_allclose(found.embedding[...], expected.embedding_, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d[:, :150], r"must be a square matrix \(N, N\), got \(200, 150\)"),
        (lambda d: np.where(np.arange(200) == 7, -d, d), "199 rows of the distances in .* have negative distances"),
        (
            lambda d: np.exp(-d),
            r"is not zero: .* affinities .affinity='precomputed'., or inner products of rows",
        ),
        (lambda d: d + 1, "200 rows .* have a distance from the point to itself that is not zero: first rows 0, 1"),
        (lambda d: 1e160 * d, "squares of distances in ndarray in memory leave float64"),
        (lambda d: 1e-160 * d, "squares of distances in ndarray in memory leave float64"),
        (lambda d: np.where(np.arange(200)[:, None] < 90, 2 * d, d), "are at another distance from a neighbour"),
        (lambda d: np.where(np.eye(200)[::-1] > 0, np.nan, d), "got 200 values that are not .*the first at row 0"),
    ],
)
def test_distances_that_cannot_be_are_refused_before_anything_is_written(points, tmp_path, change, words):
    with pytest.raises(DataError, match=words):
        sm.TSNE(metric="precomputed", store=tmp_path / "run").fit(change(pairwise_distances(points[:200])))
    assert not (tmp_path / "run").exists()


def test_an_anndata_without_a_graph_says_what_it_has():
    cells = SimpleNamespace(obs_names=[], obsm={}, obsp={"connectivities": None})
    with pytest.raises(DataError, match=r"has no obsp\['distances'\], got connectivities: find the neighbours first"):
        open_lists(cells)


def test_lists_in_files_are_read(points, graph, expected, tmp_path, scalemani):
    matrix = as_matrix(*with_self(graph))
    sparse.save_npz(tmp_path / "lists.npz", matrix)
    group = zarr.open_group(tmp_path / "lists.zarr", mode="w")
    group.create_array("indices", data=graph.indices)
    group.create_array("distances", data=graph.distances)
    np.savez(tmp_path / "pair.npz", indices=graph.indices, distances=graph.distances)
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["X"] = points
        stored = file.create_group("obsp/distances")
        for part in ("data", "indices", "indptr"):
            stored[part] = getattr(matrix, part)
        stored.attrs.update({"encoding-type": "csr_matrix", "shape": matrix.shape})
    for name in ("lists.npz", "lists.zarr", "pair.npz", "cells.h5ad"):
        run = tmp_path / f"run-{name}"
        settings = ("--set", "affinities.perplexity=10", "--set", "embedding.solver=exact")
        given = ("embed", tmp_path / name, run, "--metric", "precomputed", *settings)
        assert scalemani(*given)[0] == 0
        np.testing.assert_allclose(sm.open_run(run).embedding[...], expected.embedding_, atol=1e-6)
        status, _, error = scalemani("transform", run, tmp_path / name, tmp_path / "out.npy")
        assert status == 2
        assert "placing new points needs the points that were embedded" in error
    assert "needs points, and metric=precomputed gives neighbours alone" in scalemani(*given, "--method", "pca")[2]


def test_a_descent_from_lists_repeats_itself_and_refuses_new_points(points, graph, tmp_path):
    model = sm.TSNE(**GIVEN, max_iter=20, store=tmp_path / "run").fit(graph)
    np.testing.assert_array_equal(model.embedding_, sm.TSNE(**GIVEN, max_iter=20).fit(graph).embedding_)
    found = model.run_.graph
    np.testing.assert_array_equal(found.indices[...], graph.indices)
    np.testing.assert_array_equal(found.distances[...], graph.distances)
    with pytest.raises(ConfigError, match="made of neighbours alone"):
        model.transform(points)
    refitted = sm.LaplacianEigenmaps(perplexity=10).fit(points).set_params(metric="precomputed").fit(graph)
    with pytest.raises(ConfigError, match="made of neighbours alone"):
        refitted.transform(points)


def test_fewer_neighbours_than_given_are_the_nearest_and_more_are_refused(points, graph):
    fewer = sm.LaplacianEigenmaps(metric="precomputed", n_neighbors=15, perplexity=5, solver="exact").fit(graph)
    expected = sm.LaplacianEigenmaps(n_neighbors=15, perplexity=5, solver="exact").fit(points)
    np.testing.assert_allclose(fewer.embedding_, expected.embedding_, atol=1e-6)
    with pytest.raises(ConfigError, match=r"^n_neighbors must be at most 30, the neighbours a point in the input"):
        sm.TSNE(metric="precomputed", n_neighbors=31).fit(graph)


def spoiled(graph, what):
    indices, distances = graph.indices.copy(), graph.distances.copy()
    if what == "self":
        indices[[3, 9], 4] = [3, 9]
    elif what == "repeated":
        indices[[3, 9], 4] = indices[[3, 9], 5]
    elif what == "range":
        indices[[3, 9], 4] = [1500, -2]
    elif what == "negative":
        distances[[3, 9], 4] = [-1e-3, np.nan]
    else:
        row = 3
        mutual = next(j for j in range(K) if row in indices[indices[row, j]])
        distances[row, mutual] *= 1.5
        distances[row] = np.where(
            np.arange(K) > mutual, np.maximum(distances[row], distances[row, mutual]), distances[row]
        )
    return indices, distances


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (
            "self",
            "2 rows of the neighbour lists in tuple in memory list themselves at a distance above zero: first rows 3",
        ),
        ("repeated", "list a neighbour twice: first rows 3, 9"),
        ("range", r"list rows outside \[0, 1500\): first rows 3, 9"),
        ("negative", "have distances that are negative or not finite: first rows 3, 9"),
        ("asymmetric", "are at another distance from a neighbour than it is from them: first rows 3"),
    ],
)
def test_lists_that_no_search_gives_are_refused_before_anything_is_written(graph, tmp_path, what, words):
    with pytest.raises(DataError, match=words):
        sm.TSNE(metric="precomputed", store=tmp_path / "run").fit(spoiled(graph, what))
    assert not (tmp_path / "run").exists()


def test_clusters_of_lists_are_those_of_the_same_lists_from_points():
    groups = np.repeat(np.arange(4), 100)
    points = np.random.default_rng(1).normal(size=(400, 3)) + 4.0 * np.eye(4, 3)[groups]
    asked = {"n_clusters": 4, "n_components": 3, "perplexity": 20, "n_neighbors": 60, "solver": "exact"}
    found = sm.SpectralClustering(metric="precomputed", **asked).fit(sm.knn_graph(points, 60))
    expected = sm.SpectralClustering(**asked).fit(points)
    assert adjusted_rand_score(found.labels_, expected.labels_) > 0.95
    with pytest.raises(ConfigError, match="placing new points needs the points"):
        found.predict(points)


def test_other_shapes_are_refused(points, graph):
    with pytest.raises(DataError, match="must be a square matrix"):
        open_lists(as_matrix(graph.indices, graph.distances)[:700])
    with pytest.raises(DataError, match="give points with another metric than precomputed"):
        sm.TSNE(metric="precomputed").fit(points)
    with pytest.raises(DataError, match=r"metric='precomputed' takes a matrix of distances \(N, N\)"):
        open_lists([graph.indices])
    with pytest.raises(DataError, match="two tables"):
        open_lists((graph.indices, graph.distances[:, 1:]))


def test_some_points_may_list_themselves(graph):
    indices, distances = (part[:, :K] for part in with_self(graph))
    indices, distances = indices.copy(), distances.copy()
    indices[::2], distances[::2] = graph.indices[::2], graph.distances[::2]
    lists = open_lists((indices, distances))
    np.testing.assert_array_equal(lists.indices, graph.indices[:, : K - 1])
    np.testing.assert_array_equal(lists.distances, graph.distances[:, : K - 1])


def test_what_needs_points_is_refused_in_one_message(graph, points):
    for model in (sm.LandmarkKernelPCA(metric="precomputed"), sm.LaplacianEigenmaps(**GIVEN, solver="lll")):
        with pytest.raises(ConfigError, match="needs points, and metric=precomputed gives neighbours alone"):
            model.fit(graph)
    with pytest.raises(ConfigError, match="landmarks are chosen among points"):
        sm.select_landmarks(points, 5, metric="precomputed")
    with pytest.raises(
        ConfigError, match="neighbour lists go with metric='precomputed', and points with another metric"
    ):
        sm.knn_graph(points, metric="precomputed")
