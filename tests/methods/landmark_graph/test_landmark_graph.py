"""Embeddings by the landmarks' own graph, against what brute force makes of the same landmarks."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

import scalemani as sm
from scalemani.config.routes import ROUTES
from scalemani.config.stages import Key, Stage
from scalemani.errors import ConfigError, DisconnectedGraphError, ScalemaniWarning
from scalemani.methods.landmark_graph.kernels import bhattacharyya_neighbors, local_geometry
from scalemani.methods.landmark_graph.landmark_covariances import StoredLandmarkCovariances
from scalemani.methods.landmark_graph.landmark_graph import StoredLandmarkGraph

PIXELS = load_digits().data[:1500]
DIGITS = PIXELS + 0.01 * np.random.default_rng(0).normal(size=PIXELS.shape)  # no ties
POINTS, NEW = DIGITS[:1300], DIGITS[1300:]
N_LANDMARKS, JOINED, COMPONENTS = 150, 12, 3
ASKED = {"n_components": COMPONENTS, "n_landmarks": N_LANDMARKS, "landmarks": "spread"}
TUNING = {"landmark_graph.n_neighbors": JOINED}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Models by both solvers and both kinds of graph; covariances are diagonal."""
    folder, models = tmp_path_factory.mktemp("graphs"), {}
    for solver in ("nystrom", "le-z"):
        for kind in ("euclidean", "bhattacharyya"):
            tuning = TUNING if kind == "euclidean" else {**TUNING, "landmark_graph.covariances": "diagonal"}
            store = folder / f"{solver}-{kind}"
            model = sm.LaplacianEigenmaps(
                solver=solver, settings={**tuning, "landmark_graph.kind": kind}, store=store, **ASKED
            )
            models[solver, kind] = model.fit(POINTS)
    return models


def stored(model) -> StoredLandmarkGraph:
    return StoredLandmarkGraph(model.run_.group("landmark_graph"))


def brute_maps(landmarks, neighbors, sigma):
    """Return eigenvalues and vectors of L v = lambda D v of the landmarks' graph, the trivial ones left out."""
    joined = np.eye(len(landmarks), dtype=bool)
    np.put_along_axis(joined, neighbors, True, axis=1)
    kernel = np.where(joined | joined.T, np.exp(-cdist(landmarks, landmarks, "sqeuclidean") / (2 * sigma**2)), 0.0)
    degrees = kernel.sum(axis=1)
    values, vectors = scipy.linalg.eigh(np.diag(degrees) - kernel, np.diag(degrees))
    return values[1 : COMPONENTS + 1], vectors[:, 1 : COMPONENTS + 1]


@pytest.mark.parametrize("solver", ["nystrom", "le-z"])
@pytest.mark.parametrize("kind", ["euclidean", "bhattacharyya"])
def test_the_embedding_is_that_of_brute_force(fitted, solver, kind):
    model = fitted[solver, kind]
    landmarks, graph = model.run_.landmarks.points, stored(model)
    distances = cdist(landmarks, landmarks)
    sigma = np.median(np.sort(distances, axis=1)[:, 7])
    assert float(graph.sigma.read()) == pytest.approx(sigma)
    neighbors = np.argsort(distances, axis=1)[:, 1 : JOINED + 1]
    if kind == "bhattacharyya":
        covariances = local_geometry(POINTS, landmarks, 100, diagonal=True).covariances
        neighbors = bhattacharyya_neighbors(landmarks, covariances, JOINED)
        kept = StoredLandmarkCovariances(model.run_.group("landmark_covariances"))
        np.testing.assert_array_equal(kept.variances.read(), covariances)
        np.testing.assert_array_equal(kept.counts.read(), 100)
    np.testing.assert_array_equal(graph.neighbors.read(), neighbors)
    values, vectors = brute_maps(landmarks, neighbors, sigma)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-9)
    if solver == "le-z":
        expected = sm.landmark_weights(POINTS, landmarks) @ vectors
    else:
        nearest = np.argsort(cdist(POINTS, landmarks), axis=1)[:, : JOINED + 1]
        kernel = np.exp(-(np.take_along_axis(cdist(POINTS, landmarks), nearest, axis=1) ** 2) / (2 * sigma**2))
        expected = np.einsum("nk,nkd->nd", kernel / kernel.sum(axis=1, keepdims=True), vectors[nearest]) / (1 - values)
    signs = np.sign(np.einsum("nd,nd->d", expected, model.embedding_))
    np.testing.assert_allclose(model.embedding_, expected * signs, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("solver", ["nystrom", "le-z"])
@pytest.mark.parametrize("factor", [0.6, 3.0])
def test_edges_weigh_by_the_sigma_requested(solver, factor):
    """And so do points, whose kernel over the landmarks has the same bandwidth, in a run and as new ones."""
    landmarks = POINTS[::10]
    distances = cdist(landmarks, landmarks)
    sigma = factor * np.median(np.sort(distances, axis=1)[:, 7])
    tuning = {**TUNING, "landmark_graph.sigma": sigma}
    asked = {"n_components": COMPONENTS, "n_landmarks": len(landmarks), "landmarks": landmarks, "settings": tuning}
    model = sm.LaplacianEigenmaps(solver=solver, **asked).fit(POINTS)
    values, vectors = brute_maps(landmarks, np.argsort(distances, axis=1)[:, 1 : JOINED + 1], sigma)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-9)
    assert model.certificates_["landmark_graph"]["sigma"] == sigma
    if solver == "nystrom":
        away = cdist(NEW, landmarks)
        nearest = np.argsort(away, axis=1)[:, : JOINED + 1]
        kernel = np.exp(-(np.take_along_axis(away, nearest, axis=1) ** 2) / (2 * sigma**2))
        expected = np.einsum("nk,nkd->nd", kernel / kernel.sum(axis=1, keepdims=True), vectors[nearest]) / (1 - values)
        placed = model.transform(NEW)
        signs = np.sign(np.einsum("nd,nd->d", expected, placed))
        np.testing.assert_allclose(placed, expected * signs, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("solver", ["lll", "le-z"])
@pytest.mark.parametrize("regularization", [1e-6, 0.5])
def test_weights_of_new_points_are_regularised_as_requested(solver, regularization):
    landmarks, k = POINTS[::10], 6
    settings = {"landmark_weights.regularization": regularization, "landmark_weights.n_neighbors": k}
    model = sm.LaplacianEigenmaps(
        2, solver=solver, n_landmarks=len(landmarks), landmarks=landmarks, settings=settings
    ).fit(POINTS)
    at_landmarks = model.transform(landmarks)
    placed = model.transform(NEW[:40])
    for point, found in zip(NEW[:40], placed, strict=True):
        nearest = np.argsort(np.linalg.norm(landmarks - point, axis=1))[:k]
        differences = landmarks[nearest] - point
        gram = differences @ differences.T
        weights = np.linalg.solve(gram + regularization * np.trace(gram) / k * np.eye(k), np.ones(k))
        np.testing.assert_allclose(found, weights / weights.sum() @ at_landmarks[nearest], atol=1e-6)


@pytest.mark.parametrize("solver", ["nystrom", "le-z"])
def test_points_far_from_every_landmark_are_counted_and_told_of(solver, tmp_path):
    points = POINTS[:600].copy()
    points[[5, 50, 500]] += [[40.0], [-60.0], [90.0]]
    asked = {"n_landmarks": 100, "landmarks": "random", "settings": TUNING, "store": tmp_path}
    model = sm.LaplacianEigenmaps(2, solver=solver, **asked)
    with pytest.warns(ScalemaniWarning, match="embedding: 3 of 600 points lie more than 2 times as far from the"):
        model.fit(points)
    landmarks = model.run_.landmarks.points
    away = cdist(points, landmarks)
    gaps = np.sort(cdist(landmarks, landmarks))[:, 5]
    away[away == 0] = np.inf
    ratios = np.sort(away)[:, 4] / np.median(gaps[np.argsort(away)[:, :5]], axis=1)
    far = ratios > 3 * np.quantile(ratios, 0.98)  # gaps of points left out are a little wider
    assert model.certificates_["embedding"]["far_points"] == far.sum() == 3


def test_no_point_of_a_usual_run_is_far(fitted):
    assert {model.certificates_["embedding"]["far_points"] for model in fitted.values()} == {0}


def test_gaussians_around_landmarks_choose_other_neighbours(fitted):
    one, other = (stored(fitted["le-z", kind]).neighbors.read() for kind in ("euclidean", "bhattacharyya"))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("solver", ["nystrom", "le-z"])
def test_new_points_are_placed_as_training_points_are(fitted, solver):
    model = fitted[solver, "bhattacharyya"]
    np.testing.assert_allclose(model.transform(POINTS), model.embedding_, atol=1e-12)
    assert model.transform(NEW).shape == (200, COMPONENTS)


def test_no_graph_of_the_points_is_made(fitted):
    names = ["points", "landmarks", "landmark_graph", "embedding"]
    assert list(fitted["nystrom", "euclidean"].certificates_) == names


def test_covariances_are_measured_once_for_graphs_of_more_and_fewer_neighbours(fitted):
    first = fitted["nystrom", "bhattacharyya"]
    tuning = {"landmark_graph.n_neighbors": 2 * JOINED, "landmark_graph.covariances": "diagonal"}
    store = first.run_.store.root
    again = sm.LaplacianEigenmaps(
        solver="nystrom", settings={**tuning, "landmark_graph.kind": "bhattacharyya"}, store=store, **ASKED
    )
    again.fit(POINTS)
    keys, others = first.run_.keys, again.run_.keys
    assert others["landmark_covariances"] == keys["landmark_covariances"]
    assert others["landmark_graph"] != keys["landmark_graph"]
    assert again.run_.records()["landmark_covariances"] == first.run_.records()["landmark_covariances"]
    assert stored(again).neighbors.read().shape == (N_LANDMARKS, 2 * JOINED)
    wider = {**tuning, "landmark_graph.kind": "bhattacharyya", "landmark_graph.neighborhood": 50}
    measured = again.set_params(settings=wider).fit(POINTS).run_.keys
    assert measured["landmark_covariances"] != keys["landmark_covariances"]
    assert measured["landmark_graph"] != others["landmark_graph"]


def keys_held(stage, stages):
    """Return the names of the stages whose keys are in that of a stage."""
    inputs = {name for name in stage.inputs if name not in stage.key.without and name in stages}
    return inputs.union(*(keys_held(stages[name], stages) for name in inputs))


@pytest.mark.parametrize(
    "method", [name for name, stages in ROUTES.items() if any(stage.key.without for stage in stages)]
)
def test_what_is_left_out_of_a_key_reads_nothing_that_is_not_in_it(method):
    stages = {stage.name: stage for stage in ROUTES[method]}
    for stage in stages.values():
        for followed in (stages[name] for name in stage.key.without if name not in keys_held(stage, stages)):
            assert set(followed.inputs) <= set(stage.inputs)
            assert {name.partition(".")[0] for name in followed.key.parameters} <= {
                stage.name,
                *stage.key.parameters_of,
            }
            alone = Stage(followed.name, followed.inputs, key=Key(parameters=followed.key.parameters))
            assert replace(followed, by_block=True, solvers=(), optional=False) == alone


def test_covariances_of_fewer_points_than_dimensions_are_told_of():
    tuning = {"landmark_graph.neighborhood": 20, "landmark_graph.n_neighbors": 20}
    model = sm.LaplacianEigenmaps(
        2, solver="le-z", settings={**tuning, "landmark_graph.kind": "bhattacharyya"}, n_landmarks=40
    )
    with pytest.warns(ScalemaniWarning, match=r"40 of 40 landmarks have singular covariances, of 20 points each in 64"):
        model.fit(POINTS[:500])
    assert model.certificates_["landmark_covariances"] == {"least_points": 20, "singular_covariances": 40}


def test_the_stage_of_covariances_has_nothing_to_do_for_graphs_by_distances(scalemani, tmp_path):
    np.save(tmp_path / "points.npy", POINTS)
    asked = ("stage", "landmark_covariances", tmp_path / "points.npy", tmp_path / "run")
    status, output, _ = scalemani(*asked, "--set=embedding.solver=nystrom")
    assert status == 0
    assert "nothing to do, a run with these parameters does not need it" in output


def test_points_are_clustered_by_it_too():
    model = sm.SpectralClustering(10, solver="le-z", n_landmarks=300, landmarks="kmeans").fit(POINTS)
    assert sm.measures.clustering_error(model.labels_, load_digits().target[:1300]) < 0.35
    assert np.mean(model.predict(POINTS) == model.labels_) > 0.99


def test_weights_over_landmarks_act_on_one_solver_and_are_told_of_by_the_other(scalemani, tmp_path):
    np.save(tmp_path / "points.npy", POINTS)
    common = ("plan", tmp_path / "points.npy", tmp_path / "run", "--set=landmarks.n_landmarks=100")
    weights = "--set=landmark_weights.n_neighbors=3"
    keys = {}
    for solver in ("nystrom", "le-z"):
        for asked in ((), (weights,)):
            output = scalemani(*common, f"--set=embedding.solver={solver}", *asked)[1]
            assert ("landmark_weights.n_neighbors=3 has no effect" in output) == (solver == "nystrom" and asked != ())
            (line,) = [line for line in output.splitlines() if line.startswith("embedding ")]
            keys[solver, asked] = line.split()[1]
    assert keys["nystrom", ()] == keys["nystrom", (weights,)]
    assert len(set(keys.values())) == 3


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            sm.LaplacianEigenmaps(solver="le-z", n_landmarks=10, settings={"landmark_graph.n_neighbors": 10}),
            "below n_land",
        ),
        (sm.LaplacianEigenmaps(11, solver="nystrom", n_landmarks=11), "n_components must be below"),
        (
            sm.TSNE(settings={"embedding.solver": "nystrom"}),
            "t-sne has another route: take one of laplacian-eigenmaps, spectral-clustering",
        ),
        (sm.DiffusionMaps(solver="le-z"), "diffusion-maps has another route"),
    ],
)
def test_what_cannot_be_is_refused(model, message):
    with pytest.raises(ConfigError, match=message):
        model.fit(POINTS)


def test_points_with_weights_are_refused():
    with pytest.raises(ConfigError, match="solver='le-z' knows no weights"):
        sm.LaplacianEigenmaps(solver="le-z", n_landmarks=60).fit(POINTS, sample_weight=np.ones(len(POINTS)))


def test_a_graph_in_pieces_is_refused_with_what_would_help():
    apart = np.concatenate([POINTS[:300], 1000 + POINTS[300:600]])
    with pytest.raises(DisconnectedGraphError, match=r"60 landmarks falls into 2 pieces.* settings..landmark_graph"):
        sm.LaplacianEigenmaps(solver="nystrom", n_landmarks=60).fit(apart)


def test_nystrom_with_every_point_a_landmark_recovers_the_affinities():
    points = np.random.default_rng(0).normal(size=(60, 3))
    settings = {"landmark_graph.n_neighbors": 59, "landmark_graph.sigma": np.sqrt(0.5)}
    fitted = sm.LaplacianEigenmaps(59, solver="nystrom", n_landmarks=60, settings=settings).fit(points)
    affinities = np.exp(-(cdist(points, points) ** 2))  # positive definite: every eigenvector has an extension
    degrees, maps = affinities.sum(axis=1), fitted.embedding_
    spectrum = 1 / degrees.sum() + maps * (1 - fitted.eigenvalues_) @ maps.T
    np.testing.assert_allclose(degrees[:, np.newaxis] * spectrum * degrees, affinities, atol=1e-8)
