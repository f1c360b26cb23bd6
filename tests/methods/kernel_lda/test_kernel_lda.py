"""Kernel discriminants by landmarks against a dense computation of all points."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import load_digits, make_circles

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_labels
from scalemani.kernels.measures import subspace_angle
from scalemani.runs.walk import run

RIDGE = 1e-2


@pytest.fixture(scope="module")
def rings():
    """Three rings: classes that no straight line parts."""
    inner, halves = make_circles(400, factor=0.4, noise=0.04, random_state=0)
    outer, _ = make_circles(200, factor=0.99, noise=0.04, random_state=1)
    return np.concatenate([inner, 2 * outer]), np.concatenate([halves, np.full(200, 2)])


def dense_discriminants(kernel, labels, z, ridge):
    """Return the coordinates J K J Z P of the two directions with the largest share between classes, by LAPACK."""
    n_points = len(labels)
    centring = np.eye(n_points) - 1 / n_points
    columns = centring @ kernel @ centring @ z
    total, gram = columns.T @ columns, z.T @ z
    means = np.array([columns[labels == label].mean(axis=0) for label in np.unique(labels)])
    between = (means.T * np.bincount(labels)) @ means
    values, vectors = scipy.linalg.eigh(between, total + ridge * np.trace(total) / np.trace(gram) * gram)
    return values[::-1][:2], columns @ vectors[:, ::-1][:, :2]


def stored(folder, n_points):
    """Return K and Z of a run, rows in input order."""
    opened = sm.open_run(folder)
    kernel = opened.affinities.tocsr().toarray().astype(np.float64) + np.eye(n_points)
    group, order = opened.group("landmark_weights"), opened.group("work_points").read("input_rows")
    z = np.zeros((n_points, opened.params.n_landmarks))
    np.put_along_axis(z, group.read("indices"), group.read("values"), axis=1)
    in_input_order = np.empty_like(z)
    in_input_order[order] = z
    return kernel, in_input_order


@pytest.mark.parametrize("n_landmarks", [600, 60])
def test_coordinates_are_those_of_dense_matrices(rings, tmp_path, n_landmarks):
    points, labels = rings
    settings = {"affinities.sigma": 0.3, "kernel_discriminants.ridge": RIDGE}
    setting = {"n_landmarks": n_landmarks, "n_neighbors": 150, "settings": settings, "store": tmp_path / "run"}
    model = sm.LandmarkKernelLDA(2, **setting).fit(points, labels)
    kernel, z = stored(tmp_path / "run", 600)
    values, expected = dense_discriminants(kernel, labels, z, RIDGE)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-7)
    assert subspace_angle(model.embedding_, expected) < 1e-6
    np.testing.assert_allclose(model.embedding_.mean(axis=0), 0, atol=1e-9 * np.abs(model.embedding_).max())
    assert sm.measures.knn_accuracy(model.embedding_, labels).value > 0.99


def test_new_points_at_landmarks_lie_where_these_do():
    points, labels = load_digits(return_X_y=True)
    model = sm.LandmarkKernelLDA(9, n_landmarks=300).fit(points, labels)
    landmarks = sm.select_landmarks(points, 300, random_state=0)
    np.testing.assert_allclose(model.transform(landmarks.points), model.embedding_[landmarks.indices], atol=1e-10)
    assert sm.measures.knn_accuracy(model.embedding_, labels, 5).value > 0.95


def test_blocks_and_workers_change_little(roll, tmp_path):
    params = Parameters().with_values({"landmarks": {"n_landmarks": 200}})
    labelled = with_labels(open_points(roll), np.arange(len(roll)) * 4 // len(roll))
    one, other = (
        run(labelled, tmp_path / str(rows), "kernel-lda", params, Executor(workers=n), rows)
        for n, rows in ((1, 1024), (3, 3072))
    )
    scale = np.abs(one.embedding[...]).max()
    np.testing.assert_allclose(one.embedding[...], other.embedding[...], atol=1e-6 * scale)


def test_what_cannot_be_is_refused(rings):
    points, labels = rings
    with pytest.raises(ConfigError, match="at most 2 for 2 features, 3 classes"):
        sm.LandmarkKernelLDA(3).fit(points, labels)
    with pytest.raises(ConfigError, match="LandmarkKernelLDA requires y"):
        sm.LandmarkKernelLDA().fit(points)
    with pytest.raises(ConfigError, match=r"affinity must be gaussian or self-tuning"):
        sm.LandmarkKernelLDA(affinity="entropic").fit(points, labels)
