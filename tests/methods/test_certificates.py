"""Certificates of methods by landmarks against dense problems of all points: what they state, and what they bound."""

import re

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.manifold._locally_linear import barycenter_weights

import scalemani as sm
from scalemani.config.methods import SolverExtension, extensions
from scalemani.config.objectives import OBJECTIVES
from scalemani.config.params import Parameters
from scalemani.config.routes import REDUCING_SOLVERS, ROUTES, takes_labels
from scalemani.config.stages import LLL
from scalemani.engine.workers.executor import Executor
from scalemani.interfaces.report.certificates import judged_certificates, meanings_of
from scalemani.io.sources import open_points
from scalemani.io.sources.side_data import with_labels
from scalemani.kernels.measures import subspace_angle
from scalemani.methods.isomap import geodesics
from scalemani.methods.landmark_graph import solver as landmark_solver
from scalemani.runs.walk import run
from scalemani.stages.table import arrays_of

N_POINTS, COMPONENTS = 400, 2
LANDMARKS = [25, 120, N_POINTS]
PIXELS, NAMES = load_digits(return_X_y=True)
DIGITS = PIXELS[:N_POINTS] + 0.01 * np.random.default_rng(0).normal(size=(N_POINTS, PIXELS.shape[1]))  # no ties
LABELS = NAMES[:N_POINTS]
WIDE = np.column_stack([DIGITS, np.random.default_rng(1).normal(size=(N_POINTS, 60))])  # more features than landmarks
# By how much a bound may exceed the true error of eigenvalues, and of shares between classes.
MOST_TIMES, MOST_TIMES_OF_SHARES = 10, 40


def centring(n_points):
    return np.eye(n_points) - 1 / n_points


def at_unit_length(embedding):
    return embedding / np.linalg.norm(embedding, axis=0)


def check_against(matrix, unit, values, found, scale):
    """Compare certificates with a dense symmetric matrix (N, N) whose largest eigenvalues are approximated."""
    missed = np.linalg.norm(matrix @ unit - unit * values, axis=0)
    assert found["residual"] == pytest.approx(missed.max() / scale, rel=1e-5, abs=1e-12)
    exact_values, exact = np.linalg.eigh(matrix)
    exact_values, exact = exact_values[::-1], exact[:, ::-1][:, : len(values)]
    error = np.abs(values - exact_values[: len(values)]).max()
    rounding = 1e-11 * np.abs(exact_values).max()
    assert error <= found["eigenvalue_error_bound"] + rounding
    if found["angle_bound"] is not None:
        assert subspace_angle(unit, exact) <= found["angle_bound"] + 1e-6
    if found["resolved_angle_bound"] is not None:
        first = slice(found["resolved_components"])
        assert subspace_angle(unit[:, first], exact[:, first]) <= found["resolved_angle_bound"] + 1e-6
    return error


@pytest.fixture(scope="module")
def components():
    """Principal components by few, some and all points as landmarks."""
    return {count: sm.LandmarkPCA(COMPONENTS, n_landmarks=count, random_state=0).fit(DIGITS) for count in LANDMARKS}


@pytest.mark.parametrize("count", LANDMARKS)
def test_principal_components_are_no_farther_from_exact_ones_than_they_say(components, count):
    model, centred = components[count], DIGITS - DIGITS.mean(axis=0)
    found = model.certificates_["principal_components"]
    products = centred @ centred.T / (N_POINTS - 1)
    unit, values = at_unit_length(model.embedding_), model.eigenvalues_
    error = check_against(products, unit, values, found, values[0])
    if count < N_POINTS:
        assert found["eigenvalue_error_bound"] <= MOST_TIMES * error
    else:
        assert max(found["residual"], found["eigenvalue_error_bound"] / values[0], found["angle_bound"]) < 1e-11


def test_few_landmarks_have_a_large_residual_and_no_angle(components):
    few, some = (components[count].certificates_["principal_components"] for count in LANDMARKS[:2])
    assert few["residual"] > some["residual"] > 0.05
    assert few["angle_bound"] is None


def test_an_angle_is_bounded_where_the_gap_is_wide():
    """Two directions of a large variance: landmarks leave little of them, and residuals are far below the gap."""
    random = np.random.default_rng(5)
    points = random.normal(size=(N_POINTS, 30)) * np.append([30.0, 20.0], np.full(28, 0.3))
    model = sm.LandmarkPCA(2, n_landmarks=100, random_state=0).fit(points)
    found, centred = model.certificates_["principal_components"], points - points.mean(axis=0)
    exact = np.linalg.svd(centred, full_matrices=False)[0][:, :2]
    angle = subspace_angle(model.embedding_, exact)
    assert 1e-4 < angle <= found["angle_bound"] < MOST_TIMES * angle
    assert (found["resolved_components"], found["resolved_angle_bound"]) == (2, found["angle_bound"])


def test_as_many_components_as_features_leave_nothing_that_could_follow():
    points = np.random.default_rng(6).normal(size=(300, 3))
    found = sm.LandmarkPCA(3, n_landmarks=40).fit(points).certificates_["principal_components"]
    assert found["eigengap"] > 0
    assert found["angle_bound"] is not None


@pytest.mark.parametrize("count", LANDMARKS)
def test_kernel_components_are_no_farther_from_exact_ones_than_they_say(tmp_path, count):
    settings = {"affinities.sigma": 20.0}
    model = sm.LandmarkKernelPCA(COMPONENTS, n_landmarks=count, settings=settings, store=tmp_path, random_state=0)
    model.fit(DIGITS)
    kernel = sm.open_run(tmp_path).affinities.tocsr().toarray().astype(np.float64) + np.eye(N_POINTS)
    centred = centring(N_POINTS) @ kernel @ centring(N_POINTS)
    found, values = model.certificates_["kernel_components"], model.eigenvalues_
    error = check_against(centred, at_unit_length(model.embedding_), values, found, values[0])
    if count < N_POINTS:
        assert found["eigenvalue_error_bound"] <= MOST_TIMES * error
        assert found["residual"] > 0.01
    else:
        assert max(found["residual"], found["eigenvalue_error_bound"] / values[0]) < 1e-11


def reconstruction(points, n_neighbors):
    """Return M = (I - R)^T (I - R) of each point's nearest neighbours."""
    nearest = np.argsort(cdist(points, points), axis=1)[:, 1 : n_neighbors + 1]
    left = np.eye(len(points))
    np.put_along_axis(left, nearest, -barycenter_weights(points, points, nearest), axis=1)
    return left.T @ left


@pytest.mark.parametrize("count", LANDMARKS)
def test_locally_linear_coordinates_are_no_farther_from_exact_ones_than_they_say(count):
    model = sm.LandmarkLLE(COMPONENTS, n_landmarks=count, n_neighbors=12, random_state=0).fit(DIGITS)
    assert model.certificates_["components"]["components"] == 1
    found, values = model.certificates_["local_reconstruction"], model.eigenvalues_
    # The constant vector, whose eigenvalue is zero, is moved out of the way.
    matrix = -reconstruction(DIGITS, 12) - 100.0 / N_POINTS
    error = check_against(matrix, model.embedding_, -values, found, 1.0)
    if count < N_POINTS:
        assert found["eigenvalue_error_bound"] <= min(MOST_TIMES * error, values[-1] * (1 + 1e-9))
        assert found["residual"] > 0.01
    else:
        assert max(found["residual"], found["eigenvalue_error_bound"]) < 1e-10


def paths_between(points, n_neighbors):
    distances = cdist(points, points)
    nearest = np.argsort(distances, axis=1)[:, 1 : n_neighbors + 1]
    rows = np.repeat(np.arange(len(points)), n_neighbors)
    edges = sp.csr_matrix((distances[rows, nearest.ravel()], (rows, nearest.ravel())), distances.shape)
    return dijkstra(edges.maximum(edges.T), directed=False)


def missed_by_isomap(paths, embedding):
    """Return |B u - |x|^2 u| of all columns over the largest |x|^2, and the eigenvalues of B over it."""
    products = -0.5 * centring(len(paths)) @ paths**2 @ centring(len(paths))
    centred = embedding - embedding.mean(axis=0)
    squares = (centred**2).sum(axis=0)
    unit = centred / np.sqrt(squares)
    away = np.linalg.norm(products @ unit - unit * squares, axis=0)
    return away / squares.max(), np.linalg.eigvalsh(products) / squares.max(), squares / squares.max()


@pytest.mark.parametrize(
    ("n_points", "count", "n_neighbors"),
    [*((N_POINTS, count, 12) for count in LANDMARKS), *((geodesics.FEWEST_SAMPLED, count, 6) for count in (8, 16))],
)
def test_an_isomap_states_its_residual_for_paths_between_all_points(n_points, count, n_neighbors):
    """Of few points all are sampled."""
    points, sampled = DIGITS[:n_points], n_points < N_POINTS
    model = sm.LandmarkIsomap(COMPONENTS, n_landmarks=count, n_neighbors=n_neighbors, random_state=0).fit(points)
    found, paths = model.certificates_["isomap"], paths_between(points, n_neighbors)
    assert np.isfinite(paths).all()
    away, exact, squares = missed_by_isomap(paths, model.embedding_)
    for residual, square in zip(away, squares, strict=True):
        assert np.abs(exact - square).min() <= residual + 1e-12
    pairs = ~np.eye(n_points, dtype=bool)
    unexplained = 1 - np.corrcoef(paths[pairs], cdist(model.embedding_, model.embedding_)[pairs])[0, 1] ** 2
    if sampled:
        variance_of_all = np.sqrt(n_points / (n_points - 1))
        assert found["residual"] == pytest.approx(away.max() * variance_of_all, rel=1e-6, abs=1e-12)
        assert found["residual_error"] == 0
        assert found["points_residual_variance"] == pytest.approx(unexplained, rel=1e-8)
    elif count < n_points:
        assert 0 < found["residual_error"] < 0.3 * found["residual"]
        assert abs(found["residual"] - away.max()) < 5 * found["residual_error"]
        variance_error = found["points_residual_variance_error"]
        assert abs(found["points_residual_variance"] - unexplained) < 5 * variance_error
    if count == n_points:
        assert found["residual"] < 1e-12
    else:
        assert found["residual"] > 0.02


def test_fewer_landmarks_leave_an_isomap_a_larger_residual():
    few, some = (
        sm.LandmarkIsomap(COMPONENTS, n_landmarks=count, random_state=0).fit(DIGITS).certificates_["isomap"]
        for count in (10, 200)
    )
    assert few["residual"] - 2 * few["residual_error"] > some["residual"] + 2 * some["residual_error"]


def scatters(points, labels):
    """Return S_b and S_t of all features."""
    centred = points - points.mean(axis=0)
    means = np.array([centred[labels == label].mean(axis=0) for label in np.unique(labels)])
    return (means.T * np.bincount(labels)) @ means, centred.T @ centred


@pytest.mark.parametrize("count", LANDMARKS)
def test_discriminants_are_no_farther_from_exact_ones_than_they_say(tmp_path, count):
    model = sm.LandmarkLDA(COMPONENTS, n_landmarks=count, store=tmp_path, random_state=0).fit(WIDE, LABELS)
    found, shares = model.certificates_["discriminants"], model.eigenvalues_
    between, total = scatters(WIDE, LABELS)
    axes = sm.open_run(tmp_path).group("discriminants").read("axes")
    exact = scipy.linalg.eigh(between, total, eigvals_only=True)[::-1][:COMPONENTS]
    assert (exact - shares <= found["share_error_bound"] + 1e-10).all()
    missed = np.linalg.norm(between @ axes - total @ axes * shares, axis=0) / np.linalg.norm(axes, axis=0)
    backward = missed / (np.linalg.norm(between, 2) + shares * np.linalg.norm(total, 2))
    assert backward.max() - 1e-14 <= found["residual"] <= MOST_TIMES * backward.max() + 1e-12
    span = sm.open_run(tmp_path).group("discriminants").read("span")
    outside = 1 - np.trace(span.T @ total @ span) / np.trace(total)
    assert found["outside_share"] == pytest.approx(outside, abs=1e-12)
    if count == 25:
        assert found["residual"] > 1e-3
        assert found["outside_share"] > 0.05
        assert found["share_error_bound"] > (exact - shares).max() > 0.01
    elif count == N_POINTS:
        assert max(found["residual"], found["share_error_bound"]) < 1e-8


@pytest.mark.parametrize("count", LANDMARKS)
def test_kernel_discriminants_are_no_farther_from_exact_ones_than_they_say(tmp_path, count):
    settings = {"affinities.sigma": 20.0, "kernel_discriminants.ridge": 0.5}
    asked = {"n_landmarks": count, "n_neighbors": 30, "settings": settings, "store": tmp_path, "random_state": 0}
    model = sm.LandmarkKernelLDA(COMPONENTS, **asked).fit(DIGITS, LABELS)
    found, shares = model.certificates_["kernel_discriminants"], model.eigenvalues_
    opened, centred = sm.open_run(tmp_path), centring(N_POINTS)
    kernel = centred @ (opened.affinities.tocsr().toarray().astype(np.float64) + np.eye(N_POINTS)) @ centred
    ridge = float(opened.group("kernel_discriminants").read("ridge"))
    between = kernel @ (LABELS[:, np.newaxis] == LABELS).astype(float) / np.bincount(LABELS)[LABELS] @ kernel
    total = kernel @ kernel + ridge * np.eye(N_POINTS)
    exact = scipy.linalg.eigh(between, total, eigvals_only=True)[::-1]
    error = np.abs(exact[:COMPONENTS] - shares).max()
    assert error <= found["share_error_bound"] + 1e-10
    for share in shares:
        assert np.abs(exact - share).min() <= found["residual"] + 1e-10
    if count == N_POINTS:
        assert max(found["residual"], found["share_error_bound"]) < 1e-8
    else:
        assert 0.01 < found["share_error_bound"] <= MOST_TIMES_OF_SHARES * error


def kernel_between(points, landmarks, sigma, n_joined):
    """Return the kernel between all points as far as either reaches: to as many landmarks, itself among them."""
    reach = np.sort(cdist(points, landmarks), axis=1)[:, n_joined]
    distances = cdist(points, points)
    joined = distances <= np.maximum(reach[:, np.newaxis], reach) * (1 + 1e-9)
    return np.where(joined, np.exp(-(distances**2) / (2 * sigma**2)), 0.0)


@pytest.mark.parametrize("solver", ["nystrom", "le-z"])
@pytest.mark.parametrize(
    ("n_points", "count"),
    [*((N_POINTS, count) for count in LANDMARKS), *((landmark_solver.FEWEST_SAMPLED, count) for count in (16, 32))],
)
def test_eigenmaps_of_landmarks_alone_state_their_residual_for_all_points(tmp_path, solver, n_points, count):
    """Of few points all are sampled."""
    points, sampled = DIGITS[:n_points], n_points < N_POINTS
    asked = {"n_landmarks": count, "store": tmp_path, "random_state": 0}
    model = sm.LaplacianEigenmaps(COMPONENTS, solver=solver, **asked).fit(points)
    found, values = model.certificates_["embedding"], 1 - model.eigenvalues_
    sigma = model.certificates_["landmark_graph"]["sigma"]
    kernel = kernel_between(points, model.run_.landmarks.points, sigma, 10)
    degrees = kernel.sum(axis=1)
    scaled = kernel / np.sqrt(np.outer(degrees, degrees))
    unit = at_unit_length(model.embedding_ * np.sqrt(degrees)[:, np.newaxis])
    missed = np.linalg.norm(scaled @ unit - unit * values, axis=0)
    exact = np.linalg.eigvalsh(scaled)
    for residual, value in zip(missed, values, strict=True):
        assert np.abs(exact - value).min() <= residual + 1e-12
    if sampled:
        assert found["residual"] == pytest.approx(missed.max(), rel=1e-6, abs=1e-12)
        assert found["residual_error"] == 0
    elif count < n_points:
        assert 0 < found["residual_error"] < 0.5 * found["residual"]
        assert abs(found["residual"] - missed.max()) < 5 * found["residual_error"]
    if solver == "le-z" and count == n_points:
        assert found["residual"] < 1e-12
    elif count < n_points:
        assert found["residual"] > 0.05


@pytest.mark.parametrize("solver", ["lll", "variational-nystrom"])
@pytest.mark.parametrize("count", LANDMARKS[1:])
def test_eigenvalues_by_landmarks_are_off_by_no_more_than_their_bound(tmp_path, solver, count):
    asked = {"perplexity": 8, "n_landmarks": count, "store": tmp_path, "random_state": 0}
    model = sm.LaplacianEigenmaps(COMPONENTS, solver=solver, **asked).fit(DIGITS)
    weights = sm.open_run(tmp_path).affinities.tocsr().toarray().astype(np.float64)
    degrees = weights.sum(axis=1)
    exact = 1 - np.linalg.eigvalsh(weights / np.sqrt(np.outer(degrees, degrees)))[::-1][1 : COMPONENTS + 1]
    found = model.certificates_["embedding"]
    error = np.abs(model.eigenvalues_ - exact).max()
    assert error <= found["eigenvalue_error_bound"] + 1e-12 <= model.eigenvalues_.max() + 2e-12
    if count < N_POINTS:
        assert found["angle_bound"] is None
        assert found["residual"] > 0.01
        assert found["eigenvalue_error_bound"] <= 2 * MOST_TIMES * error
    else:
        assert max(found["residual"], found["eigenvalue_error_bound"]) < 1e-12


def test_a_report_says_that_no_angle_follows(tmp_path, scalemani):
    finished_run(tmp_path / "run", "pca", DIGITS, LABELS)
    (found,) = [one for one in judged_certificates(sm.open_run(tmp_path / "run")) if one.name == "angle_bound"]
    assert (found.value, found.judged.verdict) == (None, "look")
    assert "not resolved" in found.judged.scale
    _, output, _ = scalemani("info", tmp_path / "run")
    assert "angle_bound none" in output
    assert scalemani("report", tmp_path / "run", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert re.search(r"angle_bound</th><td class=\"number\">none</td>", page)
    assert "not resolved" in page


BLOCKED = ["pca", "lda", "locally-linear-embedding", "isomap", "nystrom", "le-z"]
MANY = np.random.default_rng(3).normal(size=(2600, 5)) * [5.0, 3.0, 1.0, 1.0, 0.5]


def finished_run(folder, method, points, labels, workers=2, block_rows=1024, **values):
    params = Parameters().with_values({"landmarks": {"n_landmarks": 60}, **values})
    source = open_points(points)
    given = with_labels(source, labels) if takes_labels(method) else source
    return run(given, folder, method, params, Executor(workers=workers), block_rows)


@pytest.mark.parametrize("name", BLOCKED)
def test_blocks_and_workers_change_no_bit_of_a_certificate(tmp_path, name):
    method = name if name in ROUTES else "laplacian-eigenmaps"
    values = {} if name in ROUTES else {"embedding": {"solver": name}}
    labels = np.arange(len(MANY)) * 4 // len(MANY)
    one, other = (
        finished_run(tmp_path / str(rows), method, MANY, labels, workers, rows, **values)
        for workers, rows in ((1, 1024), (2, 3072))
    )
    stage = stage_of_embedding(ROUTES[method])
    assert one.certificates[stage] == other.certificates[stage]


def test_certificates_of_kernel_components_follow_their_sums_alone(tmp_path):
    """The reduced kernel is a sum over blocks: solutions are the same but for the last bits, and so are these."""
    one, other = (
        finished_run(tmp_path / str(rows), "kernel-pca", MANY, None, 2, rows, affinities={"sigma": 2.0})
        for rows in (1024, 3072)
    )
    found, expected = (found.certificates["kernel_components"] for found in (one, other))
    for name in ("residual", "eigengap", "eigenvalue_error_bound"):
        assert found[name] == pytest.approx(expected[name], rel=1e-9)


def stage_of_embedding(route):
    """Return the stage of a route that stores the embedding by landmarks."""
    return next(
        stage.name for stage in reversed(route) if any(one.name == "embedding" for one in arrays_of(stage.name))
    )


# Methods that embed by landmarks, and solvers of the spectral embedding that do. Clusters and diffusion maps come of
# the latter; a descent starts from it.
BY_LANDMARKS = [
    *(
        (method, None)
        for method, route in ROUTES.items()
        if any(stage.name == "landmarks" and not stage.solvers for stage in route)
        and method not in ("laplacian-eigenmaps", "spectral-clustering", "diffusion-maps", *OBJECTIVES)
    ),
    *(("laplacian-eigenmaps", solver) for solver in (*REDUCING_SOLVERS, *extensions(SolverExtension))),
]


def test_all_methods_by_landmarks_are_looked_at():
    assert {"pca", "lda", "kernel-pca", "kernel-lda", "locally-linear-embedding", "isomap"} <= {
        method for method, _ in BY_LANDMARKS
    }
    assert {LLL, "nystrom", "le-z", "variational-nystrom"} <= {solver for _, solver in BY_LANDMARKS}


@pytest.mark.parametrize(("method", "solver"), BY_LANDMARKS)
def test_every_method_by_landmarks_says_how_far_it_is_from_the_problem_of_all_points(tmp_path, method, solver):
    values = {"affinities": {"sigma": 20.0}} if method.startswith("kernel") else {}
    values |= {} if solver is None else {"embedding": {"solver": solver}}
    finished = finished_run(tmp_path / "run", method, DIGITS, LABELS, **values)
    stage = stage_of_embedding([one for one in ROUTES[method] if one.name in finished.keys])
    found = finished.certificates[stage]
    assert np.isfinite(found["residual"])
    assert found["residual"] > 0
    assert {"eigenvalue_error_bound", "share_error_bound", "residual_error"} & set(found)
    assert set(found) <= set(meanings_of(stage))
