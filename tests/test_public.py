"""The names users import, the page of examples run as it is written, and steps by hand beside the pipeline's own."""

import re
import subprocess
import sys

import numpy as np
import pytest

import scalemani as sm
from scalemani.kernels.landmarks.selection import LANDMARK_METHODS
from scalemani.runs.opened import Run, open_run

# Calls and returns of functions are as many on every machine, where seconds depend on it and on what else it does.
LOADED = """
import sys
before, calls = set(sys.modules), []
sys.setprofile(lambda frame, event, argument: calls.append(event))
import scalemani
sys.setprofile(None)
print(len(calls), *sorted(set(sys.modules) - before))
"""
CALLS_OF_IMPORT, MODULES_OF_IMPORT = 350_000, 160  # 115,000 take 0.06 s
SEED = 4
COMPONENTS, LANDMARKS, NEIGHBORS, PERPLEXITY, LANDMARK_NEIGHBORS = 2, 300, 15, 5, 5


@pytest.fixture(scope="module")
def points(roll):
    return np.array(roll[:2500])


@pytest.fixture(scope="module")
def finished(points, tmp_path_factory) -> Run:
    """The pipeline's own result, every stage kept."""
    store = tmp_path_factory.mktemp("runs") / "run"
    sm.LaplacianEigenmaps(
        n_components=COMPONENTS,
        n_landmarks=LANDMARKS,
        perplexity=PERPLEXITY,
        n_neighbors=NEIGHBORS,
        settings={"landmark_weights.n_neighbors": LANDMARK_NEIGHBORS, "neighbors.method": "exact"},
        solver="lll",
        random_state=SEED,
        store=store,
    ).fit(points)
    return open_run(store)


@pytest.mark.parametrize("name", sm.__all__)
def test_every_public_name_is_there(name):
    assert getattr(sm, name).__doc__
    assert name in dir(sm)


def test_importing_the_package_loads_the_standard_library_alone_and_little_of_it():
    told = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()
    calls, modules = int(told[0]), told[1:]
    assert {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names) == {"scalemani"}
    assert len(modules) < MODULES_OF_IMPORT
    assert calls < CALLS_OF_IMPORT


def test_an_estimator_loads_no_client_of_dask_and_nothing_that_draws():
    code = "import sys, scalemani; scalemani.TSNE; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"distributed", "dask.dataframe", "dask.array", "matplotlib"}.intersection(loaded)


def test_an_unknown_name_is_told_of_the_known_ones():
    with pytest.raises(AttributeError, match="knn_graph"):
        sm.knn_graf  # noqa: B018


def test_the_version_is_said(scalemani):
    status, output, _ = scalemani("--version")
    assert (status, output) == (0, f"{sm.__version__}\n")
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", sm.__version__)


def test_the_page_of_examples_runs_as_written(points):
    graph = sm.knn_graph(points, n_neighbors=90, method="auto", recall=0.95, random_state=0)
    assert graph.indices.shape == graph.distances.shape == (2500, 90)
    assert graph.recall >= 0.95

    affinities = sm.entropic_affinities(graph.distances, perplexity=30, solver="newton", order="density", tol=1e-10)
    assert affinities.values.shape == (2500, 90)
    assert affinities.beta.shape == affinities.iterations.shape == affinities.saturated.shape == (2500,)

    W = sm.symmetric_affinities(graph.indices, affinities.values)
    landmarks = sm.select_landmarks(points, 1000, method="random", random_state=0)
    Z = sm.landmark_weights(points, landmarks.points, n_neighbors=5)
    A, B = sm.reduce_laplacian(W, Z)
    assert W.shape == (2500, 2500)
    assert Z.shape == (2500, 1000)
    assert A.shape == B.shape == (1000, 1000)
    eigenvalues, vectors = sm.solve_reduced(A, B, n_components=2)
    assert eigenvalues.shape == (2,)
    assert vectors.shape == (1000, 2)

    model = sm.LaplacianEigenmaps(
        n_components=2, n_landmarks=1000, perplexity=30, solver="lll+refine", residual=1e-3, random_state=0
    ).fit(points)
    assert model.embedding_.shape == (2500, 2)
    assert model.eigenvalues_.shape == (2,)
    assert model.certificates_["neighbors"]["recall"] >= 0.95
    assert model.transform(points[:7]).shape == (7, 2)
    assert sm.SpectralClustering(n_clusters=10).fit(points).labels_.shape == (2500,)


def test_the_graph_and_affinities_by_hand_are_the_pipelines(points, finished):
    graph = sm.knn_graph(points, NEIGHBORS, method="exact", random_state=SEED)
    affinities = sm.entropic_affinities(graph.distances, PERPLEXITY)
    input_rows = finished.group("work_points").read("input_rows")
    np.testing.assert_array_equal(
        graph.indices[input_rows], input_rows[finished.group("neighbors").read("round_0/indices")]
    )
    np.testing.assert_array_equal(graph.distances[input_rows], finished.group("neighbors").read("round_0/distances"))
    np.testing.assert_allclose(
        affinities.values[input_rows], finished.group("affinities").read("values"), rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(affinities.beta[input_rows], finished.group("affinities").read("beta"), rtol=1e-6)


@pytest.mark.parametrize("method", LANDMARK_METHODS)
def test_the_same_seed_selects_the_landmarks_of_the_pipeline(points, method, tmp_path):
    count = 20 if method.startswith("gp") else LANDMARKS  # more determine all points of a roll at the default bandwidth
    sm.LaplacianEigenmaps(
        n_landmarks=count, landmarks=method, perplexity=PERPLEXITY, solver="lll", random_state=SEED, store=tmp_path
    ).fit(points)
    chosen = sm.select_landmarks(points, count, method=method, random_state=SEED)
    stored = open_run(tmp_path).group("landmarks")
    if method == "gp":
        assert chosen.indices is None
    else:
        np.testing.assert_array_equal(chosen.indices, stored.read("rows"))
    np.testing.assert_array_equal(chosen.points, stored.read("points"))


def test_the_weights_by_hand_are_the_pipelines(points, finished):
    landmarks = sm.select_landmarks(points, LANDMARKS, random_state=SEED)
    weights = sm.landmark_weights(points, landmarks.points, LANDMARK_NEIGHBORS)
    group = finished.group("landmark_weights")
    stored = np.zeros(weights.shape)
    rows = finished.group("work_points").read("input_rows")[:, np.newaxis]
    stored[rows, group.read("indices")] = group.read("values")
    np.testing.assert_array_equal(weights.toarray(), stored)


def test_the_embedding_by_hand_is_the_pipelines(points, finished):
    graph = sm.knn_graph(points, NEIGHBORS, method="exact", random_state=SEED)
    affinities = sm.symmetric_affinities(
        graph.indices, sm.entropic_affinities(graph.distances, perplexity=PERPLEXITY).values
    )
    landmarks = sm.select_landmarks(points, LANDMARKS, random_state=SEED)
    weights = sm.landmark_weights(points, landmarks.points, LANDMARK_NEIGHBORS)
    eigenvalues, vectors = sm.solve_reduced(*sm.reduce_laplacian(affinities, weights), n_components=COMPONENTS)
    assert finished.certificates["components"]["components"] == 1
    np.testing.assert_allclose(eigenvalues, finished.eigenvalues, rtol=1e-5)
    by_hand, stored = weights @ vectors, finished.embedding[...]
    by_hand *= np.sign(np.sum(by_hand * stored, axis=0))
    np.testing.assert_allclose(by_hand, stored, rtol=0, atol=1e-5 * np.abs(stored).max())


INTERRUPTED = """
import signal, sys
import scalemani

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs with SIGINT ignored
moments = {moments!r}

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name in moments:
            moments.remove(name)
            {action}
sys.meta_path.insert(0, Interrupting())
ended = 0
for _ in range(5):
    try:
        scalemani.TSNE
    except KeyboardInterrupt:
        ended += 1
import dask.array, numpy, zarr
assert moments == [], (moments, ended)
assert scalemani.TSNE(perplexity=5).get_params()["perplexity"] == 5
print(ended, dask.utils.__name__, dask.array.__name__, zarr.core.__name__, numpy.linalg.__name__)
"""
NAMES = "dask.utils dask.array zarr.core numpy.linalg"


@pytest.mark.parametrize(
    ("action", "moments", "ended"),
    [
        # Of a terminal: it comes once all is loaded, once, however often it is pressed.
        ("signal.raise_signal(signal.SIGINT)", ["numpy.linalg", "dask.utils", "dask.delayed", "zarr.core"], 1),
        ("raise KeyboardInterrupt", ["dask.order", "dask.delayed", "zarr.core.array"], 3),
    ],
    ids=["signal", "exception"],
)
def test_a_first_import_that_is_interrupted_can_be_repeated(action, moments, ended):
    program = INTERRUPTED.format(moments=moments, action=action)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == (f"{ended} {NAMES}", 0), done.stderr


@pytest.mark.parametrize("name", ["DataError", "ShortfallWarning"])
def test_errors_and_warnings_are_said_to_be_elsewhere(name):
    with pytest.raises(AttributeError, match=r"errors and warnings are in scalemani\.errors"):
        getattr(sm, name)
