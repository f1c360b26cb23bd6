"""KNeighborsTransformer stands where scikit-learn's does, and in scanpy."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn import neighbors
from sklearn.cluster import DBSCAN
from sklearn.manifold import Isomap
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

import scalemani as sm
from scalemani.config.params.by_stage import NeighborsParams
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import open_points

K = 7


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(2).normal(size=(2000, 6)) + 1


def same_lists(found, expected):
    """Compare entry by entry, in the order in which they are stored."""
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.data, expected.data, atol=1e-7)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
def test_its_matrix_is_that_of_scikit_learn(points, mode, metric):
    ours = sm.KNeighborsTransformer(K, mode=mode, metric=metric)
    theirs = neighbors.KNeighborsTransformer(n_neighbors=K, mode=mode, metric=metric, algorithm="brute")
    same_lists(ours.fit_transform(points), theirs.fit_transform(points))
    new = np.random.default_rng(3).normal(size=(50, 6)) + 1
    same_lists(ours.transform(new), theirs.transform(new))
    same_lists(ours.transform(points), ours.fit_transform(points))
    assert ours.recall_ == 1
    assert ours.n_samples_fit_ == 2000
    assert len(ours.get_feature_names_out()) == len(theirs.get_feature_names_out()) == 2000


def test_each_point_comes_first_with_a_stored_zero_even_among_equal_points(points):
    doubled = np.concatenate([points[:300], points[:300]])
    graph = sm.KNeighborsTransformer(K).fit_transform(doubled)
    rows = graph.indices.reshape(600, K + 1)
    np.testing.assert_array_equal(rows[:, 0], np.arange(600))
    np.testing.assert_array_equal(rows[:, 1], (np.arange(600) + 300) % 600)
    assert graph.nnz == 600 * (K + 1)
    assert (graph.data.reshape(600, K + 1)[:, :2] == 0).all()
    assert (np.diff(graph.data.reshape(600, K + 1)) >= 0).all()


def test_new_points_are_searched_by_cells_where_points_are_many():
    points = np.random.default_rng(2).normal(size=(NeighborsParams.exact_below + 1, 4))
    model = sm.KNeighborsTransformer(K).fit(points)
    new = points[:200] + 1e-3
    found = model.transform(new).indices.reshape(200, K + 1)
    expected = neighbors.NearestNeighbors(n_neighbors=K + 1).fit(points).kneighbors(new, return_distance=False)
    assert np.mean([len(set(a) & set(b)) for a, b in zip(found, expected, strict=True)]) > 0.97 * (K + 1)


def test_it_feeds_estimators_that_take_neighbours(points):
    ours = make_pipeline(sm.KNeighborsTransformer(K), Isomap(n_neighbors=K, metric="precomputed"))
    theirs = make_pipeline(neighbors.KNeighborsTransformer(n_neighbors=K), Isomap(n_neighbors=K, metric="precomputed"))
    np.testing.assert_allclose(
        abs(ours.fit_transform(points[:400])), abs(theirs.fit_transform(points[:400])), atol=1e-8
    )
    labels = DBSCAN(eps=0.7, metric="precomputed").fit_predict(sm.KNeighborsTransformer(30).fit_transform(points))
    assert adjusted_rand_score(labels, DBSCAN(eps=0.7).fit_predict(points)) > 0.9


def test_points_on_disk_and_a_kept_store_give_the_same_lists(points, tmp_path):
    np.save(tmp_path / "points.npy", points)
    model = sm.KNeighborsTransformer(K, store=tmp_path / "run")
    same_lists(model.fit_transform(tmp_path / "points.npy"), sm.KNeighborsTransformer(K).fit_transform(points))
    same_lists(model.transform(tmp_path / "points.npy"), model.fit_transform(points))


def test_what_cannot_be_used_is_refused(points):
    with pytest.raises(ConfigError, match="unknown mode 'distances': did you mean 'distance'"):
        sm.KNeighborsTransformer(K, mode="distances").fit(points)
    with pytest.raises(DataError, match="need more than n_neighbors"):
        sm.KNeighborsTransformer(K).fit(points[:K])
    model = sm.KNeighborsTransformer(K, metric="cosine").fit(points)
    with pytest.raises(ValueError, match="6 features"):
        model.transform(points[:, :5])
    with pytest.raises(DataError, match="first rows 2"):
        model.transform(np.where(np.arange(4)[:, None] == 2, 0, points[:4]))


def test_scanpy_clusters_by_it_as_by_its_own_neighbours():
    scanpy = pytest.importorskip("scanpy")
    pytest.importorskip("leidenalg")
    file = Path(os.environ.get("SCALEMANI_DATA", "")) / "sc_paul15.npz"
    if not file.exists():
        pytest.skip("SCALEMANI_DATA does not name a folder with sc_paul15.npz")
    counts = open_points(file)
    cells = scanpy.AnnData(counts.read(0, counts.shape[0]).astype(np.float32))
    scanpy.pp.normalize_total(cells)
    scanpy.pp.log1p(cells)
    scanpy.pp.pca(cells, n_comps=30)

    def clusters(transformer, seed=0):
        scanpy.pp.neighbors(cells, n_neighbors=15, transformer=transformer)
        scanpy.tl.leiden(cells, flavor="igraph", n_iterations=2, random_state=seed)
        return cells.obs["leiden"].to_numpy()

    theirs, again = clusters(None), clusters(None, seed=1)
    ours = clusters(sm.KNeighborsTransformer(15))
    assert adjusted_rand_score(theirs, ours) >= 0.9 * adjusted_rand_score(theirs, again)
