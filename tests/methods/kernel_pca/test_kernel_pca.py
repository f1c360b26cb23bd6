"""Kernel principal components by landmarks against scikit-learn's of the same kernel."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_circles
from sklearn.decomposition import KernelPCA

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.kernels.measures import subspace_angle
from scalemani.runs.walk import run

SIGMA = 0.5


@pytest.fixture(scope="module")
def circles():
    return make_circles(500, factor=0.4, noise=0.05, random_state=0)


def test_with_every_point_a_landmark_components_are_those_of_scikit_learn(circles, tmp_path):
    """Of the stored kernel to a millionth, and of the Gaussian kernel to what float32 holds of it."""
    points, _ = circles
    setting = {"n_landmarks": 500, "n_neighbors": 499, "settings": {"affinities.sigma": SIGMA}}
    model = sm.LandmarkKernelPCA(3, store=tmp_path / "run", **setting).fit(points)
    kernel = sm.open_run(tmp_path / "run").affinities.tocsr().toarray().astype(np.float64) + np.eye(500)
    peer = KernelPCA(3, kernel="precomputed").fit(kernel)
    assert subspace_angle(model.embedding_, peer.transform(kernel)) < 1e-6
    np.testing.assert_allclose(model.eigenvalues_, peer.eigenvalues_, rtol=1e-9)
    gaussian = KernelPCA(3, kernel="rbf", gamma=1 / (2 * SIGMA**2)).fit_transform(points)
    assert subspace_angle(model.embedding_, gaussian) < 1e-5
    signs = np.sign((model.embedding_ * gaussian).sum(axis=0))
    np.testing.assert_allclose(model.embedding_, gaussian * signs, atol=1e-5)


def test_few_landmarks_part_what_is_not_linearly_apart(circles):
    points, labels = circles
    model = sm.LandmarkKernelPCA(6, n_landmarks=60, n_neighbors=100, settings={"affinities.sigma": 0.3}).fit(points)
    exact = sm.LandmarkKernelPCA(6, n_landmarks=500, n_neighbors=100, settings={"affinities.sigma": 0.3}).fit(points)
    assert (model.eigenvalues_ <= exact.eigenvalues_ * (1 + 1e-9)).all()
    assert model.eigenvalues_.sum() > 0.8 * exact.eigenvalues_.sum()
    assert sm.measures.knn_accuracy(model.embedding_, labels).value > 0.99


def test_training_points_are_placed_where_they_are():
    points = load_digits().data
    model = sm.LandmarkKernelPCA(4, n_landmarks=100).fit(points)
    np.testing.assert_allclose(model.transform(points), model.embedding_, atol=1e-10)


def test_blocks_and_workers_change_little(roll, tmp_path):
    params = Parameters().with_values({"landmarks": {"n_landmarks": 200}})
    one, other = (
        run(open_points(roll), tmp_path / str(rows), "kernel-pca", params, Executor(workers=n), rows)
        for n, rows in ((1, 1024), (3, 3072))
    )
    np.testing.assert_allclose(one.embedding[...], other.embedding[...], rtol=1e-6, atol=1e-8)


def test_affinities_that_are_no_kernel_are_refused(circles):
    with pytest.raises(ConfigError, match=r"affinity must be gaussian or self-tuning"):
        sm.LandmarkKernelPCA(affinity="entropic").fit(circles[0])
    with pytest.raises(ConfigError, match="n_components must be at most 49"):
        sm.LandmarkKernelPCA(50, n_landmarks=50).fit(circles[0])


def test_a_kernel_far_from_positive_is_told_of(circles, listening, tmp_path):
    """A wide Gaussian that is cut off at few neighbours has eigenvalues far below zero."""
    values = {"affinities": {"sigma": 5.0}, "neighbors": {"n_neighbors": 20}, "landmarks": {"n_landmarks": 500}}
    params = Parameters().with_values({**values, "landmark_embedding": {"n_components": 60}})
    run(open_points(circles[0]), tmp_path / "run", "kernel-pca", params, Executor(progress=listening))
    assert any("not positive semidefinite" in line for line in listening.warned)


def test_on_the_command_line(circles, tmp_path, scalemani):
    np.save(tmp_path / "points.npy", circles[0])
    given = (tmp_path / "points.npy", tmp_path / "run", "--method", "kernel-pca")
    assert scalemani("embed", *given)[0] == 0
    assert "gaussian" in scalemani("info", tmp_path / "run")[1]
    assert scalemani("plan", *given, "--explain", "kernel_components")[0] == 0
    assert scalemani("transform", tmp_path / "run", tmp_path / "points.npy", tmp_path / "new.npy")[0] == 0
    assert scalemani("export", tmp_path / "run", tmp_path / "out.npy")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "new.npy"), np.load(tmp_path / "out.npy"), atol=1e-10)


@pytest.mark.parametrize("n_points", [3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("kind", ["LandmarkKernelPCA", "LandmarkKernelLDA", "gaussian", "self-tuning"])
def test_of_few_points_the_default_neighbour_of_bandwidths_is_the_farthest_that_there_is(n_points, kind, tmp_path):
    points, place = np.random.default_rng(2).normal(size=(n_points, 3)), tmp_path / "run"
    if kind.startswith("Landmark"):
        model = getattr(sm, kind)(store=place).fit(points, np.arange(n_points) % 2)
    else:
        model = sm.LaplacianEigenmaps(affinity=kind, store=place).fit(points)
    assert np.isfinite(model.embedding_).all()
    params = sm.open_run(place).params
    assert params.affinities.bandwidth_neighbor == min(7, params.n_neighbors)
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    nth = np.sqrt(np.sort(squares, axis=1)[:, min(7, n_points - 1)])  # the point itself is at 0
    weights = np.exp(-squares / (2 * (nth if kind == "self-tuning" else np.median(nth)) ** 2))
    weights = (weights + weights.T) / 2
    np.fill_diagonal(weights, 0)
    if params.n_neighbors == n_points - 1:
        np.testing.assert_allclose(sm.open_run(place).affinities.tocsr().toarray(), weights, rtol=1e-5)


def test_a_requested_neighbour_of_bandwidths_beyond_the_points_is_refused():
    with pytest.raises(ConfigError, match=r"bandwidth_neighbor must be at most n_neighbors \(k=4\), got 6"):
        sm.LandmarkKernelPCA(settings={"affinities.bandwidth_neighbor": 6}).fit(np.eye(5))
