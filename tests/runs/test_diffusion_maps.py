"""Diffusion maps against a dense computation from the points, and beside Laplacian eigenmaps."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError
from scalemani.io.export import export
from scalemani.io.sources import open_points
from scalemani.kernels.measures import procrustes_error, subspace_angle
from scalemani.runs.walk import run

SIGMA = 2.0
SOLVERS = ["refine", "lll", "lll+refine", "exact"]


@pytest.fixture(scope="module")
def points():
    """Points on an arc whose density falls to a tenth along it, and a few more dimensions of little noise."""
    rng = np.random.default_rng(5)
    angle = 3 * rng.uniform(0, 1, 400) ** 2
    return np.column_stack([5 * np.cos(angle), 5 * np.sin(angle), 0.05 * rng.normal(size=(400, 2))])


def walk(points, alpha):
    """Return the eigenvalues mu, the right eigenvectors and the degrees of the random walk, by LAPACK."""
    kernel = np.exp(-(cdist(points, points) ** 2) / (2 * SIGMA**2))
    np.fill_diagonal(kernel, 0.0)
    density = kernel.sum(axis=1)
    kernel /= np.outer(density, density) ** alpha
    degrees = kernel.sum(axis=1)
    values, vectors = np.linalg.eigh(kernel / np.sqrt(np.outer(degrees, degrees)))
    return values[::-1], vectors[:, ::-1] / np.sqrt(degrees)[:, np.newaxis], degrees


def model_of(points, sigma=SIGMA, **asked):
    settings = {"affinities.sigma": sigma, "neighbors.method": "exact"}
    full = {"affinity": "gaussian", "n_neighbors": len(points) - 1, "settings": settings}
    return sm.DiffusionMaps(3, **full, **asked).fit(points)


@pytest.mark.parametrize(("alpha", "time"), [(0.0, 1.0), (0.5, 0.0), (1.0, 1.0), (1.0, 3.5)])
def test_coordinates_are_those_of_the_dense_random_walk(points, alpha, time):
    values, vectors, _ = walk(points, alpha)
    model = model_of(points, alpha=alpha, time=time, solver="exact")
    np.testing.assert_allclose(model.eigenvalues_, 1 - values[1:4], atol=1e-6)
    expected = vectors[:, 1:4] * values[1:4] ** time
    turned = expected * np.sign((expected * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(model.embedding_, turned, atol=1e-5 * np.abs(expected).max())


def test_distances_are_those_of_diffusion_when_all_columns_are_kept(points):
    """|x_n - x_m|^2 is the squared distance of t-step transition probabilities over the stationary distribution."""
    few, time = points[:60], 2
    kernel = np.exp(-(cdist(few, few) ** 2) / (2 * SIGMA**2))
    np.fill_diagonal(kernel, 0.0)
    density = kernel.sum(axis=1)
    kernel /= np.outer(density, density)
    degrees = kernel.sum(axis=1)
    steps = np.linalg.matrix_power(kernel / degrees[:, np.newaxis], time)
    differences = steps[:, np.newaxis] - steps[np.newaxis]
    expected = np.sqrt((differences**2 / degrees).sum(axis=2))
    settings = {"affinities.sigma": SIGMA, "neighbors.method": "exact"}
    asked = {"affinity": "gaussian", "n_neighbors": 59, "settings": settings}
    model = sm.DiffusionMaps(59, alpha=1.0, time=time, solver="exact", **asked).fit(few)
    np.testing.assert_allclose(cdist(model.embedding_, model.embedding_), expected, atol=1e-5 * expected.max())


def test_alpha_one_forgets_the_density(points):
    """On an arc the first vector of the Laplace-Beltrami operator is a half cosine of the length along it."""
    length = np.arctan2(points[:, 1], points[:, 0])
    cosine = np.cos(np.pi * (length - length.min()) / np.ptp(length))[:, np.newaxis]
    errors = {
        alpha: procrustes_error(model_of(points, alpha=alpha, sigma=0.5, solver="exact").embedding_[:, :1], cosine)
        for alpha in (0.0, 1.0)
    }
    assert errors[1.0] < 0.1 < errors[0.0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_normalisation_and_time_they_are_laplacian_eigenmaps_to_the_bit(points, solver):
    setting = {"n_landmarks": 100, "perplexity": 10, "solver": solver}
    eigenmaps = sm.LaplacianEigenmaps(3, **setting).fit(points)
    model = sm.DiffusionMaps(3, alpha=0, time=0, **setting).fit(points)
    np.testing.assert_array_equal(model.embedding_, eigenmaps.embedding_)
    np.testing.assert_array_equal(model.eigenvalues_, eigenmaps.eigenvalues_)
    np.testing.assert_array_equal(model.transform(points[:7] + 0.01), eigenmaps.transform(points[:7] + 0.01))


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_finds_the_same_subspace(points, solver):
    values, vectors, _ = walk(points, 1.0)
    model = model_of(points, time=0, solver=solver, n_landmarks=len(points), residual=1e-7)
    assert subspace_angle(model.embedding_, vectors[:, 1:4]) < 1e-4
    np.testing.assert_allclose(model.eigenvalues_, 1 - values[1:4], atol=1e-5)


def test_new_points_at_landmarks_lie_where_these_do(points):
    model = model_of(points, n_landmarks=50)
    landmarks = sm.select_landmarks(points, 50, random_state=0)
    np.testing.assert_allclose(model.transform(landmarks.points), model.embedding_[landmarks.indices], atol=1e-12)


def test_landmarks_off_the_data_are_scaled_as_the_points_are(points):
    """Z times the coordinates of its landmarks is the embedding of `lll`: new points at old ones lie where these do."""
    setting = {"n_landmarks": 60, "perplexity": 10, "landmarks": "kmeans", "solver": "lll", "time": 5}
    model = sm.DiffusionMaps(3, settings={"landmarks.snap": False}, **setting).fit(points)
    np.testing.assert_allclose(model.transform(points), model.embedding_, atol=1e-10)


def embedded(points, folder, workers=2, block_rows=1024, **values):
    params = Parameters().with_values({"affinities": {"perplexity": 8}, **values})
    return run(open_points(points), folder, "diffusion-maps", params, Executor(workers=workers), block_rows)


def test_another_time_goes_on_from_the_same_eigenvectors(roll, tmp_path):
    runs = [embedded(roll, tmp_path / "run", diffusion_coordinates={"time": time}) for time in (1, 4)]
    assert {stage for stage in runs[0].keys if runs[0].keys[stage] != runs[1].keys[stage]} == {"diffusion_coordinates"}
    scales = runs[1].certificates["diffusion_coordinates"]["scales"]
    np.testing.assert_allclose(scales, (1 - runs[1].eigenvalues) ** 4, rtol=1e-12)


def test_blocks_and_workers_change_nothing(roll, tmp_path):
    one, other = (embedded(roll, tmp_path / str(rows), workers, rows) for workers, rows in ((1, 1024), (3, 5120)))
    np.testing.assert_allclose(one.embedding[...], other.embedding[...], rtol=1e-6, atol=1e-9)


def test_what_is_exported_is_what_the_estimator_returns(points, tmp_path):
    model = model_of(points, store=tmp_path / "run")
    export(sm.open_run(tmp_path / "run").embedding, tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.embedding_)


@pytest.mark.parametrize(("name", "value"), [("alpha", 1.5), ("alpha", -0.1), ("time", -1.0), ("time", float("nan"))])
def test_what_no_diffusion_has_is_refused(points, name, value):
    with pytest.raises(ConfigError, match=f"{name} must be"):
        sm.DiffusionMaps(**{name: value}).fit(points)
