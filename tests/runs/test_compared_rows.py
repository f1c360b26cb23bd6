"""Runs in a metric that compares rows: graphs out of core, exact or within leaves, what follows, and refusals."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from pynndescent.distances import named_distances
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import haversine_distances

import scalemani as sm
from scalemani.config.functions import name_of_function
from scalemani.config.metrics import METRICS, compares_rows
from scalemani.config.params import Parameters
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.functions.run_measures import measure_run
from scalemani.io.sources import open_points
from scalemani.kernels.rows.metrics import map_rows
from scalemani.runs.walk import plan_run, run
from scalemani.stages.neighbors import pynndescent_metric
from scalemani.stages.neighbors.choice import choose_compared_search

COMPARED = sorted({*filter(compares_rows, METRICS)} - {"haversine", "wasserstein"})  # by SciPy, of rows as they are
N, K = 2500, 15
FEW = {"neighbors": {"n_neighbors": 20}, "affinities": {"perplexity": 6.0}}


@pytest.fixture(scope="module")
def points():
    draws = np.random.default_rng(7)
    return (draws.gamma(1.0, size=(12, 20))[draws.integers(0, 12, N)] + 0.1 * draws.gamma(1.0, size=(N, 20))) + 0.01


@pytest.mark.parametrize(
    ("metric", "dtype"), [(metric, ("float64", "float32")[i % 2]) for i, metric in enumerate(COMPARED)]
)
def test_a_graph_of_points_on_disk_is_scipys_and_certified(points, tmp_path, metric, dtype):
    given = points.astype(dtype)
    np.save(tmp_path / "points.npy", given)
    asked = Parameters().with_values({"points": {"metric": metric}, "neighbors": {"n_neighbors": K}})
    source = open_points(tmp_path / "points.npy")
    found = run(source, tmp_path / "run", "knn-graph", asked, Executor(workers=2), 1024)
    away = cdist(given.astype(float), given.astype(float), METRICS[metric].scipy)
    np.fill_diagonal(away, np.inf)
    indices, distances = found.graph.indices[...], found.graph.distances[...]
    assert distances.dtype == given.dtype
    rounding = 1e-12 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(distances, np.take_along_axis(away, indices, axis=1), rtol=rounding)
    np.testing.assert_allclose(distances, np.sort(away, axis=1)[:, :K], rtol=rounding)
    assert all(len(set(row)) == K for row in indices.tolist())
    assert found.certificates["neighbors"]["recall"] == 1.0
    assert found.certificates["neighbors"]["method"] == "exact"
    assert "landmarks" not in found.keys


@pytest.mark.parametrize(
    ("metric", "form"), [("canberra", np.asarray), ("jaccard", np.asarray), ("jaccard", sparse.csr_array)]
)
def test_a_run_is_measured_by_its_metric(points, tmp_path, metric, form):
    draws = np.random.default_rng(1)
    given = (draws.random((1100, 30)) < 0.2).astype(float) if metric == "jaccard" else points[:1100, :4]
    away = cdist(given, given, METRICS[metric].scipy or metric)
    asked = Parameters().with_values(
        {
            "points": {"metric": metric},
            **FEW,
            "layout": {"max_iterations": 20},
            "components": {"disconnected": "separate"},
        }
    )
    method = "t-sne" if form is np.asarray else "laplacian-eigenmaps"
    finished = run(open_points(form(given)), tmp_path / "run", method, asked, Executor(), 1024)
    found = measure_run(finished, n_neighbors=10, n_sampled=2000)
    on_map = cdist(*[np.asarray(finished.embedding[...])] * 2)
    for table in (away, on_map):
        np.fill_diagonal(table, np.inf)
    near = np.argsort(on_map, axis=1)[:, :10]
    limits = np.take_along_axis(away, near, axis=1)[:, :, np.newaxis] * (1 - 1e-12)
    closer = (away[:, np.newaxis] < limits).sum(axis=2)
    assert found["recall"].value == 1.0
    assert found["neighbor_preservation"].value == pytest.approx((closer < 10).mean(), abs=1e-6)
    excess = np.maximum(0, closer + 1 - 10).sum()
    trust = 1 - 2 / (1100 * 10 * (2 * 1100 - 3 * 10 - 1)) * excess
    assert found["trustworthiness"].value == pytest.approx(trust, abs=1e-6)


WITHIN_LEAVES = {
    "neighbors": {"method": "leaves", "n_neighbors": K, "leaf_points": 100, "sampled_queries": 500, "recall": 0.95}
}


def true_recall(found, points, metric):
    """Return the share of distinct listed rows that are no farther than the true k-th, by SciPy alone."""
    away = cdist(points.astype(float), points.astype(float), METRICS[metric].scipy)
    np.fill_diagonal(away, np.inf)
    indices, reach = found.graph.indices[...], np.sort(away, axis=1)[:, K - 1] * (1 + 1e-6)
    near = [len(set(row[away[i, row] <= reach[i]])) for i, row in enumerate(indices)]
    np.testing.assert_allclose(found.graph.distances[...], np.take_along_axis(away, indices, axis=1), rtol=1e-6)
    return np.mean(near) / K


@pytest.mark.parametrize("metric", ["braycurtis", "chebyshev"])
def test_leaves_reach_the_recall_that_they_certify(points, tmp_path, metric):
    given = points.astype("float32")
    asked = Parameters().with_values({"points": {"metric": metric}, **WITHIN_LEAVES})
    found = run(open_points(given), tmp_path / "run", "knn-graph", asked, Executor(workers=2), 1024)
    certificate = found.certificates["neighbors"]
    assert certificate["method"] == "leaves"
    assert certificate["recall"] >= 0.95
    assert abs(true_recall(found, given, metric) - certificate["recall"]) < 4 * certificate["recall_error"] + 1e-3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_leaves_in_files_and_processes_give_the_bits_of_threads(tmp_path, dtype):
    points = np.random.default_rng(3).normal(size=(N, 24))  # without leading axes: leaves alone miss neighbors
    asked = Parameters().with_values({"points": {"metric": "manhattan"}, **WITHIN_LEAVES})
    asked = asked.with_values({"neighbors.leaf_points": 60})
    executors = Executor(workers=2), Executor("processes", workers=2)
    first, second = (
        run(open_points(points.astype(dtype)), tmp_path / str(i), "knn-graph", asked, executor, 1024 * (i + 1))
        for i, executor in enumerate(executors)
    )
    assert first.certificates["neighbors"]["rounds"] >= 1
    assert first.certificates["neighbors"] == second.certificates["neighbors"]
    for name in ("indices", "distances"):
        np.testing.assert_array_equal(first.group("graph").read(name), second.group("graph").read(name))


def test_many_points_are_searched_within_leaves_and_few_exactly():
    """Both searches compare by the function: the seconds of exact search grow with the square of the points."""
    methods = []
    for n_points in (5000, 200_000):
        sizes = Sizes(
            Dimensions(n_points, 64, "float32", 8192),
            Parameters().with_values({"points.metric": "canberra", "neighbors.n_neighbors": K}).resolved("knn-graph"),
        )
        choice = choose_compared_search(sizes)
        assert choice.resolved == min(choice.seconds, key=choice.seconds.get)
        assert choice.is_noted
        methods.append(choice.resolved)
    assert methods == ["exact", "leaves"]


def test_auto_resolves_to_leaves_before_keys_are_made(tmp_path):
    many = np.random.default_rng(0).random((60_000, 3)).astype("float32")
    outlines = [
        plan_run(
            open_points(many),
            tmp_path / "run",
            "knn-graph",
            Parameters().with_values({"points.metric": "chebyshev", "neighbors": {"n_neighbors": 5, "method": method}}),
            Executor(workers=1),
        ).outline
        for method in ("auto", "leaves")
    ]
    assert outlines[0].search.resolved == "leaves"
    assert outlines[0].keys == outlines[1].keys


def test_points_are_appended_to_a_graph_of_leaves(points, tmp_path):
    settings = {"neighbors.leaf_points": 100, "neighbors.sampled_queries": 300}
    sm.knn_graph(points[:2000], K, "leaves", metric="braycurtis", settings=settings, store=tmp_path / "run")
    grown = sm.append(tmp_path / "run", points[2000:]).run
    assert grown.certificates["neighbors"]["method"] == "leaves"
    assert grown.certificates["neighbors"]["recall"] >= 0.95
    assert true_recall(grown, points, "braycurtis") > 0.93


@numba.njit
def far(one, other):
    """Return the sum of differences, large ones at their root."""
    total = 0.0
    for d in range(one.size):
        away = abs(one[d] - other[d])
        total += away if away < 1.0 else np.sqrt(away)
    return total


def distances_far(points):
    away = np.abs(points[:, np.newaxis] - points)
    return np.where(away < 1.0, away, np.sqrt(away)).sum(axis=2)


def oracle_of(points, metric):
    """Return all distances (N, N) of a metric that SciPy has for other rows, or under another name."""
    wide = points.astype(float)
    if metric == "haversine":
        return haversine_distances(wide)
    if metric == "wasserstein":
        shares = np.cumsum(wide / wide.sum(axis=1, keepdims=True), axis=1)
        return cdist(shares, shares, "cityblock")
    return distances_far(wide) if callable(metric) else cdist(wide, wide, "minkowski", p=3)


@pytest.mark.parametrize(
    ("metric", "method"),
    [
        *itertools.product(["minkowski:3", "haversine", "wasserstein", far], ["exact", "leaves"]),
        (far, "pynndescent"),  # which is compiled for each function
    ],
)
def test_other_distances_have_the_graph_of_their_definition(points, method, metric):
    given = points[:1500]
    if metric == "haversine":
        given = np.random.default_rng(0).uniform([-1.5, -3.1], [1.5, 3.1], (1500, 2))
    settings = {"neighbors.leaf_points": 100} if method == "leaves" else None
    graph = sm.knn_graph(given, K, method, metric=metric, settings=settings)
    away = oracle_of(given, metric)
    np.fill_diagonal(away, np.inf)
    indices = graph.indices[...].astype(int)
    np.testing.assert_allclose(graph.distances[...], np.take_along_axis(away, indices, axis=1), rtol=1e-9)
    reach = np.sort(away, axis=1)[:, K - 1] * (1 + 1e-9)
    near = [len(set(row[away[i, row] <= reach[i]])) / K for i, row in enumerate(indices)]
    assert graph.recall >= 0.95
    assert np.mean(near) == pytest.approx(graph.recall, abs=0.01)


MINE = """
import numba
import numpy as np

@numba.njit
def mine(one, other):
    return {factor} * np.abs(one - other).sum()
"""


def test_a_function_of_the_command_line_is_resumed_until_it_is_edited(points, tmp_path, scalemani):
    np.save(tmp_path / "points.npy", points[:400])
    written, run_folder = tmp_path / "mine.py", tmp_path / "run"
    written.write_text(MINE.format(factor=1.0))
    command = ["embed", tmp_path / "points.npy", run_folder, "--method", "t-sne", "--metric", f"{written}::mine"]
    command += ["--set", "affinities.perplexity=6", "--set", "layout.max_iterations=20", "--set", "layout.converged=0"]
    assert scalemani(*command)[0] == 0
    first = sm.open_run(run_folder).keys
    assert scalemani(*command)[0] == 0
    assert sm.open_run(run_folder).keys == first
    written.write_text(MINE.format(factor=1.25))
    for refused in (
        ["append", run_folder, tmp_path / "points.npy"],
        ["transform", run_folder, tmp_path / "points.npy", tmp_path / "placed.npy"],
    ):
        status, _, error = scalemani(*refused)
        assert status == 2
        assert "is another function than that of the run" in " ".join(error.split())
    assert scalemani(*command)[0] == 0
    assert sm.open_run(run_folder).keys != first


SCRIPT = """
import numba
import numpy as np
import scalemani as sm

@numba.njit
def mine(one, other):
    return np.abs(one - other).sum()

print("begun")
sm.knn_graph(np.load("points.npy"), 5, metric=mine)
"""


def test_a_script_that_compares_rows_by_its_own_function_comes_to_an_end(tmp_path):
    """As the main program it is run once; loaded for its function, it runs within."""
    (tmp_path / "script.py").write_text(SCRIPT)
    np.save(tmp_path / "points.npy", np.random.default_rng(0).random((200, 3)))
    embedding = ["-m", "scalemani", "embed", "points.npy", "run", "--method", "knn-graph", "--quiet"]
    for command in (["script.py"], [*embedding, "--metric", "script.py::mine"]):
        ended = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "PYTHONPATH": str(Path(sm.__file__).parents[1])},
        )
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.split().count("begun") == 1


def negative(one, other):
    return -1.0


def skewed(one, other):
    return max(0.0, one[0] - other[0])


def similarity(one, other):
    return 1.0 / (1.0 + np.abs(one - other).sum())


def no_number(one, other):
    return np.nan


def not_compiled(one, other):
    return open("file")


def test_functions_that_are_no_distances_are_refused_before_work(points, tmp_path):
    for function in (negative, skewed, no_number, similarity):
        with pytest.raises(DataError, match="get no distance from"):
            sm.knn_graph(points[:50], 5, metric=function, store=tmp_path / "run")
    for function in (not_compiled, of_other_types):
        with pytest.raises(ConfigError, match=r"is no function of two rows.*that returns a number: [^D]"):
            sm.knn_graph(points[:50], 5, metric=function, store=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@numba.njit("float64(float64[::1], float64[::1])")
def with_a_signature(one, other):
    return np.abs(one - other).sum()


@numba.njit
def with_a_default(one, other, power=1):
    return (np.abs(one - other) ** power).sum()


@numba.njit("float32(float32[::1], float32[::1])")
def of_other_types(one, other):
    return np.abs(one - other).sum()


@pytest.mark.parametrize("function", [with_a_signature, with_a_default])
def test_functions_with_signatures_and_defaults_are_metrics(points, function):
    away = cdist(points[:300], points[:300], "cityblock")
    np.fill_diagonal(away, np.inf)
    graph = sm.knn_graph(points[:300], 5, metric=function)
    np.testing.assert_allclose(graph.distances, np.sort(away, axis=1)[:, :5], rtol=1e-12)
    assert graph.recall == 1.0


@pytest.mark.parametrize("metric", [*COMPARED, "haversine", "wasserstein", "minkowski:3", far, with_a_signature])
def test_pynndescent_compares_rows_as_scipy_does(points, metric):
    """Its names and arguments, for rows as they are stored, in float32."""
    known = name_of_function(metric) if callable(metric) else metric
    given = np.random.default_rng(0).uniform([-1.5, -3.1], [1.5, 3.1], (9, 2)) if metric == "haversine" else points[:9]
    stored = map_rows(given, known).astype(np.float32)
    name, arguments = pynndescent_metric(known)
    function = named_distances[name] if isinstance(name, str) else name
    found = [[function(one, other, *arguments.values()) for other in stored] for one in stored]
    away = cdist(given, given, METRICS[metric].scipy) if metric in COMPARED else None
    if away is None:
        away = cdist(given, given, "cityblock") if metric is with_a_signature else oracle_of(given, metric)
    np.testing.assert_allclose(found, away, rtol=1e-4, atol=1e-6)


def test_one_metric_has_several_names_and_one_graph(points):
    by_name = [sm.knn_graph(points[:400], 5, metric=metric) for metric in ("manhattan", "l1", "cityblock")]
    for graph in by_name[1:]:
        np.testing.assert_array_equal(graph.indices, by_name[0].indices)


def test_the_command_line_embeds_and_audits_a_run_by_chebyshev(points, tmp_path, scalemani):
    np.save(tmp_path / "points.npy", points[:600])
    given = ["--method", "t-sne", "--metric", "chebyshev", "--set", "affinities.perplexity=6"]
    assert scalemani("embed", tmp_path / "points.npy", tmp_path / "run", *given)[0] == 0
    status, out, error = scalemani("verify", tmp_path / "run", "--quiet")
    assert (status, error) == (0, ""), out


@pytest.mark.parametrize(("metric", "method"), [("far", "t-sne"), ("minkowski:3", "diffusion-maps")])
def test_commands_take_runs_by_a_function_and_by_processes(tmp_path, scalemani, metric, method):
    points = np.random.default_rng(5).gamma(1.0, size=(650, 6))  # in one piece
    run_folder, processes = tmp_path / "run", ["--scheduler", "processes", "--workers", "1"]
    np.save(tmp_path / "points.npy", points[:600])
    np.save(tmp_path / "more.npy", points[600:])
    settings = ["affinities.perplexity=6", "neighbors.n_neighbors=20"]
    settings += ["layout.max_iterations=20", "layout.converged=0"] if method == "t-sne" else []
    named = f"{__file__}::far" if metric == "far" else metric
    given = ["--method", method, "--metric", named, *(f"--set={one}" for one in settings)]
    for command in (
        ["plan", tmp_path / "points.npy", run_folder, *given],
        ["embed", tmp_path / "points.npy", run_folder, *given, *processes],
        ["info", run_folder],
        ["measure", run_folder],
        ["report", run_folder, tmp_path / "report.html"],
        ["append", run_folder, tmp_path / "more.npy", *processes],
        ["verify", run_folder],
        ["transform", run_folder, tmp_path / "more.npy", tmp_path / "placed.npy"],
    ):
        status, out, error = scalemani(*command)
        assert status == 0, (command, out, error)
    grown = sm.open_run(run_folder)
    assert grown.n_input_points == 650
    placed, own = np.load(tmp_path / "placed.npy"), np.asarray(grown.retained_embedding[...])
    assert (np.abs(placed[:, np.newaxis] - own).max(axis=2).min(axis=1) == 0).all()  # points of the run are at theirs


@pytest.mark.parametrize(
    "method", ["laplacian-eigenmaps", "diffusion-maps", "spectral-clustering", "elastic-embedding"]
)
def test_methods_of_a_graph_go_on_from_it_as_from_the_lists_of_scipy(points, tmp_path, method):
    some = points[:300]
    short = {**FEW, "layout": {"max_iterations": 20}} if method == "elastic-embedding" else FEW
    asked = Parameters().with_values({"points": {"metric": "canberra"}, "clustering": {"n_clusters": 3}, **short})
    found = run(open_points(some), tmp_path / "run", method, asked, Executor(workers=1), 1024)
    assert np.isfinite(found.retained_embedding[...]).all()
    away = cdist(some, some, "canberra")
    order = np.argsort(away, axis=1, kind="stable")[:, 1:21]
    np.testing.assert_array_equal(found.graph.indices[...], order)


def test_clusters_that_no_neighbor_joins_are_embedded(points, tmp_path):
    apart = np.concatenate([points[:200], points[200:400] + 1000.0])
    asked = Parameters().with_values({"points": {"metric": "manhattan"}, **FEW})
    found = run(open_points(apart), tmp_path / "run", "laplacian-eigenmaps", asked, Executor(workers=1), 1024)
    assert found.certificates["components"]["components"] >= 2
    assert np.isfinite(found.retained_embedding[...]).all()


REFUSED = {
    "pca": ({}, "pca needs coordinates"),
    "isomap": ({}, "isomap needs coordinates"),
    "combined-isomap": ({}, "combined-isomap needs coordinates"),
    "locally-linear-embedding": ({}, "locally-linear-embedding needs coordinates"),
    "laplacian-eigenmaps": ({"embedding.solver": "lll"}, "embedding.solver=lll needs coordinates"),
    "knn-graph": ({"neighbors.method": "partition"}, "neighbors.method=partition needs coordinates"),
    "t-sne": ({"layout.init": "pca"}, "layout.init=pca needs coordinates"),
    "diffusion-maps": ({"duplicates.tolerance": 0.5}, "duplicates.tolerance=0.5 needs coordinates"),
}


@pytest.mark.parametrize("method", REFUSED)
def test_what_needs_coordinates_is_refused_before_work_starts(points, tmp_path, method):
    values, words = REFUSED[method]
    asked = Parameters().with_values({"points.metric": "manhattan", **values})
    with pytest.raises(ConfigError, match=f"{words}, and metric=manhattan compares rows"):
        plan_run(open_points(points), tmp_path / "run", method, asked, Executor(workers=1))
    assert not (tmp_path / "run").exists()


def test_functions_that_need_coordinates_refuse_rows_without(points):
    for call in (
        lambda: sm.select_landmarks(points, 5, metric="canberra"),
        lambda: sm.measures.recall(np.zeros((N, 1), int), points, metric="canberra"),
    ):
        with pytest.raises(ConfigError, match="metric=canberra compares rows"):
            call()


def test_rows_without_amounts_are_refused(points):
    for value, words in ((-1.0, "hold negative values"), (0.0, "hold nothing but zeros")):
        given = points[:50].copy()
        given[7] = value
        with pytest.raises(DataError, match=f"{words}.*first rows 7"):
            sm.knn_graph(given, 5, metric="braycurtis")
