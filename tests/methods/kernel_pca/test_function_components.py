"""Kernel components for a kernel between all points against dense problems by NumPy, and scikit-learn's."""

import functools

import numpy as np
import pytest
import scipy.linalg
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.io.sources import open_points
from scalemani.runs.walk import run

POINTS, NEW = np.split(load_digits().data[:350, 18:46] / 16, [300])
N_LANDMARKS, K_Z, DEGREE = 60, 5, 3
STAGE = "function_components"


def cubic(one, other):
    """Return (1 + x y)^3."""
    total = 1.0
    for d in range(one.size):
        total += one[d] * other[d]
    return total**DEGREE


def taxicab(one, other):
    """Return a distance, which is no kernel."""
    total = 0.0
    for d in range(one.size):
        total += abs(one[d] - other[d])
    return total


def one_sided(one, other):
    """Return x y times one plus a coordinate of x."""
    total = 0.0
    for d in range(one.size):
        total += one[d] * other[d]
    return total * (1.0 + one[20])


def logarithm(one, other):
    """Return log(x y), which is no number of rows that share nothing."""
    total = 0.0
    for d in range(one.size):
        total += one[d] * other[d]
    return np.log(total)


def gaussian(points, sigma):
    return np.exp(-cdist(points, points, "sqeuclidean") / (2 * sigma**2))


KERNELS = {
    "function": (cubic, {}, lambda points: (1 + points @ points.T) ** DEGREE),
    "gaussian": ("gaussian", {f"{STAGE}.sigma": 2.0}, functools.partial(gaussian, sigma=2.0)),
}


def centred(kernel):
    centring = np.eye(len(kernel)) - 1 / len(kernel)
    return centring @ kernel @ centring


def same_but_for_signs(one, other):
    return np.abs(one - other * np.sign((one * other).sum(axis=0))).max()


@pytest.fixture(scope="module", params=KERNELS)
def fitted(request, tmp_path_factory):
    kernel, settings, dense = KERNELS[request.param]
    store = tmp_path_factory.mktemp(request.param) / "run"
    model = sm.KernelFunctionPCA(3, kernel=kernel, n_landmarks=N_LANDMARKS, settings=settings, store=store)
    return model.fit(POINTS), centred(dense(POINTS))


def test_scores_are_those_of_the_dense_problem_and_new_points_those_of_their_weights(fitted):
    model, kernel = fitted
    landmarks = POINTS[np.asarray(model.run_.landmarks.rows)]
    z = sm.landmark_weights(POINTS, landmarks, K_Z).toarray()
    values, vectors = scipy.linalg.eigh(z.T @ kernel @ z, z.T @ z)
    expected = z @ vectors[:, :-4:-1] * np.sqrt(values[:-4:-1])
    size = np.abs(expected).max()
    assert same_but_for_signs(model.embedding_, expected) < 1e-8 * size
    np.testing.assert_allclose(model.eigenvalues_, values[:-4:-1], rtol=1e-9)
    of_new = sm.landmark_weights(NEW, landmarks, K_Z) @ model.run_.group(STAGE).read("vectors")
    np.testing.assert_allclose(model.transform(NEW), of_new, atol=1e-9 * size)
    np.testing.assert_allclose(model.transform(POINTS), model.embedding_, atol=1e-9 * size)


def test_they_are_no_farther_from_exact_components_than_they_state(fitted):
    model, kernel = fitted
    stated = model.certificates_[STAGE]
    unit = model.embedding_ / np.linalg.norm(model.embedding_, axis=0)
    missed = np.linalg.norm(kernel @ unit - unit * model.eigenvalues_, axis=0)
    assert stated["residual"] == pytest.approx(missed.max() / model.eigenvalues_[0], rel=1e-6)
    assert stated["residual"] > 0.01
    exact = np.linalg.eigvalsh(kernel)[:-4:-1]
    assert np.abs(exact - model.eigenvalues_).max() <= stated["eigenvalue_error_bound"]
    assert model.run_.verify().ok


@pytest.mark.parametrize(
    ("kernel", "peer"),
    [(cubic, {"kernel": "poly", "degree": DEGREE, "gamma": 1.0, "coef0": 1.0}), ("gaussian", {"kernel": "rbf"})],
)
def test_with_every_point_a_landmark_they_are_those_of_scikit_learn(kernel, peer):
    points = POINTS[:200]
    found = clone(sm.KernelFunctionPCA(3, kernel=kernel, n_landmarks=200)).fit(points)
    if kernel == "gaussian":  # by default sigma is the median distance
        sigma = np.median(cdist(points, points)[np.triu_indices(200, 1)])
        assert found.certificates_[STAGE]["sigma"] == pytest.approx(sigma, rel=1e-12)
        peer = peer | {"gamma": 1 / (2 * sigma**2)}
    expected = KernelPCA(3, **peer).fit(points)
    scores = expected.transform(points)
    assert same_but_for_signs(found.embedding_, scores) < 1e-8 * np.abs(scores).max()
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
    assert found.certificates_[STAGE]["residual"] < 1e-12


@pytest.mark.parametrize(
    ("kernel", "error", "words"),
    [
        (taxicab, ConfigError, "kernel=.*taxicab.* is not positive semidefinite: its eigenvalues between 60 landmarks"),
        (one_sided, ConfigError, "kernel=.*one_sided.* is not symmetric"),
        (logarithm, DataError, "kernel=.*logarithm.* is -inf between two rows that begin with"),
        ("rbf", ConfigError, "kernel must be gaussian, or a function k"),
        (lambda one, other: 1.0, ConfigError, "<lambda> has no name by which workers"),
    ],
)
def test_what_is_no_kernel_is_refused(kernel, error, words):
    points = np.where(np.arange(len(POINTS))[:, np.newaxis] % 2, POINTS, 0.0) if kernel is logarithm else POINTS
    with pytest.raises(error, match=words):
        sm.KernelFunctionPCA(2, kernel=kernel, n_landmarks=N_LANDMARKS).fit(points)


def test_blocks_and_workers_change_no_bit(tmp_path):
    points = np.random.default_rng(3).normal(size=(2100, 3))
    params = Parameters().with_values({"landmarks": {"n_landmarks": 30}, STAGE: {"kernel": f"{__name__}:cubic"}})
    one, other = (
        run(open_points(points), tmp_path / str(rows), "kernel-function-pca", params, Executor(workers=n), rows)
        for n, rows in ((1, 1024), (2, 3072))
    )
    np.testing.assert_array_equal(one.embedding[...], other.embedding[...])


def test_on_the_command_line(tmp_path, scalemani):
    np.save(tmp_path / "points.npy", POINTS)
    kernel = f"--set={STAGE}.kernel={__file__}::cubic"
    options = ("--method", "kernel-function-pca", kernel, f"--set=landmarks.n_landmarks={N_LANDMARKS}")
    assert scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *options)[0] == 0
    assert "eigenvalue_error_bound" in scalemani("info", tmp_path / "run")[1]
    assert scalemani("export", tmp_path / "run", tmp_path / "out.npy")[0] == 0
    model = sm.KernelFunctionPCA(2, kernel=cubic, n_landmarks=N_LANDMARKS).fit(POINTS)
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), model.embedding_, atol=1e-12)
