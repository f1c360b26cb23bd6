"""Spectral clustering: the clusters that exact eigenvectors of the same affinities give, whatever the blocks."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn import cluster
from sklearn.datasets import load_digits, make_blobs, make_moons

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.kernels.landmarks.kmeans import assign, kmeans
from scalemani.kernels.measures import clustering_error
from scalemani.runs.opened import Run, open_run
from scalemani.runs.walk import run
from scalemani.stages.clustering import unit_rows

BLOBS = make_blobs(1500, centers=6, n_features=4, cluster_std=1.0, random_state=2)
MOONS = make_moons(1500, noise=0.06, random_state=0)
DIGITS = load_digits(return_X_y=True)


def stored_affinities(finished: Run) -> sp.csr_matrix:
    """Return W of a run, rows and columns in input order."""
    group, dimensions = finished.group("symmetric_affinities"), finished.dimensions
    parts = []
    for block in range(dimensions.n_blocks):
        arrays = [group.read_part(name, block) for name in ("values", "indices", "indptr")]
        parts.append(sp.csr_matrix(tuple(arrays), shape=(len(arrays[2]) - 1, dimensions.n_points)))
    order = np.argsort(finished.group("work_points").read("input_rows"))
    return sp.csr_matrix(sp.vstack(parts).astype(np.float64)).tocsr()[order][:, order]


def exact_clusters(affinities: sp.csr_matrix, n_clusters: int) -> np.ndarray:
    """Return k-means of the K exact eigenvectors after the constant one, rows at unit length."""
    degrees = np.asarray(affinities.sum(axis=1)).ravel()
    laplacian = np.diag(degrees) - affinities.toarray()
    _, vectors = scipy.linalg.eigh(laplacian, np.diag(degrees), subset_by_index=[1, n_clusters])
    return cluster.KMeans(n_clusters, n_init=30, random_state=1).fit_predict(unit_rows(vectors))


@pytest.mark.parametrize(
    ("data", "n_clusters", "to_exact", "to_peer"),
    [(BLOBS, 6, 0.002, 0.002), (MOONS, 2, 0.002, 0.002), (DIGITS, 10, 0.01, 0.2)],
    ids=["blobs", "moons", "digits"],
)
def test_clusters_are_those_of_the_exact_eigenvectors(data, n_clusters, to_exact, to_peer, tmp_path):
    points, truth = data
    model = sm.SpectralClustering(n_clusters, perplexity=10, residual=1e-6, store=tmp_path / "run").fit(points)
    affinities = stored_affinities(open_run(tmp_path / "run"))
    assert clustering_error(model.labels_, exact_clusters(affinities, n_clusters)) <= to_exact
    peer = cluster.SpectralClustering(n_clusters, affinity="precomputed", random_state=0).fit(affinities.toarray())
    assert clustering_error(model.labels_, peer.labels_) <= to_peer
    assert clustering_error(model.labels_, truth) <= clustering_error(peer.labels_, truth) + 0.02


def test_landmarks_alone_come_near_to_the_exact_clusters(tmp_path):
    points, truth = DIGITS
    settings = {"n_landmarks": 300, "perplexity": 10, "store": tmp_path / "run"}
    plain = sm.SpectralClustering(10, solver="lll", **settings).fit(points)
    assert clustering_error(plain.labels_, truth) < 0.25


def test_labels_are_a_fixed_point_of_k_means_over_all_points(tmp_path):
    points, _ = DIGITS
    model = sm.SpectralClustering(10, perplexity=10, store=tmp_path / "run").fit(points)
    rows, finished = unit_rows(model.embedding_), open_run(tmp_path / "run")
    assert finished.certificates["clustering"]["settled"]
    assert finished.certificates["clustering"]["sizes"] == np.bincount(model.labels_).tolist()
    np.testing.assert_array_equal(finished.labels[...], model.labels_)
    centers = finished.group("clustering").read("centers")
    means = np.stack([rows[model.labels_ == label].mean(axis=0) for label in range(10)])
    np.testing.assert_allclose(means, centers, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(assign(rows, centers)[0], model.labels_)
    whole = kmeans(rows, 10, seed=0, n_restarts=20)
    inertia = np.sum((rows - centers[model.labels_]) ** 2)
    assert inertia <= 1.02 * whole.inertia


@pytest.mark.parametrize("layout", [(2048, 1), (3072, 2), (8192, 2)])
def test_clusters_do_not_depend_on_blocks_or_workers(roll, tmp_path, layout):
    values = {
        "neighbors": {"n_neighbors": 12},
        "affinities": {"perplexity": 4},
        "landmarks": {"n_landmarks": 200},
        "embedding": {"solver": "lll"},
        "clustering": {"n_clusters": 7},
    }

    def clusters(name, block_rows, workers):
        params, executor = Parameters().with_values(values), Executor(workers=workers)
        return run(open_points(roll), tmp_path / name, "spectral-clustering", params, executor, block_rows)

    one, other = clusters("one", 1024, 2), clusters("other", *layout)
    np.testing.assert_array_equal(one.labels[...], other.labels[...])
    np.testing.assert_allclose(
        one.group("clustering").read("centers"), other.group("clustering").read("centers"), rtol=0, atol=1e-9
    )


def test_new_points_join_the_cluster_they_lie_in(tmp_path):
    points, truth = BLOBS
    model = sm.SpectralClustering(6, n_landmarks=300, perplexity=10, store=tmp_path / "run").fit(points[:1200])
    landmarks = open_run(tmp_path / "run").group("landmarks").read("rows")
    np.testing.assert_array_equal(model.predict(points[landmarks]), model.labels_[landmarks])
    assert np.mean(model.predict(points[:1200]) == model.labels_) > 0.99
    both = np.concatenate([model.labels_, model.predict(points[1200:])])
    assert clustering_error(both, truth) <= 0.01
    assert model.predict(np.empty((0, 4))).shape == (0,)
    np.testing.assert_allclose(model.transform(points[landmarks]), model.embedding_[landmarks], atol=1e-9)
    columns = model.transform(points)[:, : model._centers.shape[1]]
    np.testing.assert_array_equal(assign(unit_rows(columns), model._centers)[0], model.predict(points))


def test_a_model_with_a_store_has_its_run_whatever_was_run_there_since(tmp_path):
    points, _ = BLOBS
    model = sm.SpectralClustering(6, n_landmarks=300, perplexity=10, store=tmp_path / "run").fit(points[:900])
    sm.TSNE(perplexity=5, n_landmarks=200, max_iter=3, store=tmp_path / "run").fit(points[:600])
    np.testing.assert_array_equal(model.run_.labels[...], model.labels_)
    assert model.run_.affinities.shape == (900, 900)
    with pytest.raises(AttributeError, match="store=FOLDER"):
        sm.LaplacianEigenmaps(n_landmarks=50).fit(points[:100]).run_  # noqa: B018


def test_a_descent_has_its_curve():
    points, _ = BLOBS
    model = sm.ElasticEmbedding(perplexity=5, n_landmarks=200, max_iter=5).fit(points[:600])
    assert model.curve_.iteration[-1] == model.n_iter_
    assert (np.diff(model.curve_.objective) < 0).all()
    assert model.curve_.objective[-1] == pytest.approx(model.objective_, rel=1e-2)


def test_eigenvectors_are_as_many_as_clusters_or_as_asked():
    points, _ = BLOBS
    assert sm.SpectralClustering(3, n_landmarks=100, solver="lll").fit(points).embedding_.shape == (1500, 3)
    wider = sm.SpectralClustering(3, n_components=5, n_landmarks=100, solver="lll").fit(points)
    assert wider.embedding_.shape == (1500, 5)
    assert set(np.unique(wider.labels_)) == {0, 1, 2}


def test_one_cluster_and_as_many_as_points():
    points = np.random.default_rng(0).normal(size=(12, 3))
    assert (sm.SpectralClustering(1).fit(points).labels_ == 0).all()
    assert len(np.unique(sm.SpectralClustering(12).fit(points).labels_)) == 12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_clusters": 0}, "^n_clusters must be >= 1"),
        ({"n_clusters": 2.0}, "^n_clusters must be"),
        ({"n_clusters": 31}, "n_clusters must be at most"),
        ({"n_clusters": 21, "n_landmarks": 20, "n_components": 4}, "n_clusters must be at most"),
        ({"n_clusters": 3, "settings": {"clustering.n_restarts": 0}}, "clustering.n_restarts must be >= 1"),
        ({"n_clusters": 3, "n_components": 30}, "n_components must be below"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, given, message):
    points = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ConfigError, match=message):
        sm.SpectralClustering(**given, store=tmp_path / "run").fit(points)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("solver", ["refine", "lll"])
def test_landmarks_off_the_data_start_the_clusters_as_well(solver):
    points, truth = DIGITS
    off_data = {"landmarks": "kmeans", "settings": {"landmarks.snap": False}, "solver": solver}
    model = sm.SpectralClustering(10, n_landmarks=300, perplexity=10, **off_data).fit(points)
    assert clustering_error(model.labels_, truth) < 0.25
    assert np.mean(model.predict(points) == model.labels_) > 0.97
