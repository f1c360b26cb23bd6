"""`scalemani measure`: what it says of a run is what measures of the same arrays in memory say."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

import scalemani as sm
from scalemani.config.params import Parameters
from scalemani.engine.workers.executor import Executor
from scalemani.errors import ConfigError, DataError
from scalemani.interfaces.functions.run_measures import measure_run
from scalemani.io.sources import open_points
from scalemani.kernels.measures import closer_counts
from scalemani.runs.opened import open_run
from scalemani.runs.walk import run

PIXELS, NAMES = load_digits(return_X_y=True)
DIGITS = (PIXELS + 0.01 * np.random.default_rng(0).normal(size=PIXELS.shape)).astype(np.float32)  # no ties


NEAR, FAR = ("trustworthiness", "neighbor_preservation"), ("triplet_accuracy", "distance_correlation")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of spectral clustering of digits in several blocks, whose graph is not exact."""
    place = tmp_path_factory.mktemp("measured") / "run"
    values = {
        "neighbors": {"n_neighbors": 12, "method": "partition", "n_probes": 1, "max_rounds": 0},
        "partition": {"cell_points": 60},
    }
    params = Parameters().with_values({"affinities": {"perplexity": 4}, **values})
    run(open_points(DIGITS), place, "spectral-clustering", params, Executor(), 1024)
    return place


def test_of_all_points_it_says_what_measures_in_memory_say(folder):
    opened = open_run(folder)
    found = measure_run(opened, NAMES, n_neighbors=10, n_sampled=5000)
    positions, graph = np.asarray(opened.embedding[...]), np.asarray(opened.graph.indices[0 : len(DIGITS)])
    every = {"n_sampled": None}
    expected = {
        "recall": sm.measures.recall(graph, DIGITS, **every),
        "trustworthiness": sm.measures.trustworthiness(DIGITS, positions, 10, **every),
        "neighbor_preservation": sm.measures.neighbor_preservation(DIGITS, positions, 10, **every),
        "1-nn accuracy": sm.measures.knn_accuracy(positions, NAMES, 1, **every),
        "10-nn accuracy": sm.measures.knn_accuracy(positions, NAMES, 10, **every),
        "silhouette": sm.measures.silhouette(positions, NAMES, **every),
    }
    for name, measure in expected.items():
        assert found[name].value == pytest.approx(measure.value, rel=1e-9), name
        assert (found[name].error, found[name].n_sampled) == (0.0, len(DIGITS)), name
    assert 0.5 < found["recall"].value < 1
    ranked = np.argsort(squareform(pdist(positions)), axis=1).argsort(axis=1)
    excess = [np.maximum(ranked[row, near] - 10, 0).sum() for row, near in enumerate(graph[:, :10])]
    expected_continuity = 1 - 2 * np.sum(excess) / (len(DIGITS) * 10 * (2 * len(DIGITS) - 31))
    assert found["continuity"].value == pytest.approx(expected_continuity, abs=2e-4)  # positions tie
    for name in ("triplet_accuracy", "distance_correlation"):  # samples of pairs, in the same order
        assert found[name].value == pytest.approx(
            getattr(sm.measures, name)(DIGITS, positions, **every).value, abs=1e-9
        )
    centers = sm.measures.center_triplet_accuracy(DIGITS, positions, NAMES, **every)
    assert found["center_triplet_accuracy"].value == pytest.approx(centers.value, abs=1e-9)
    nearest = [np.asarray(opened.graph.distances[...])[:, :10], np.sort(squareform(pdist(positions)))[:, 1:11]]
    density = spearmanr(*(table.mean(axis=1) for table in nearest)).statistic
    assert found["density_correlation"].value == pytest.approx(density, abs=1e-6)
    clusters = np.asarray(opened.labels[...])
    assert found["clustering_error"] == sm.measures.clustering_error(clusters, NAMES)
    assert found["normalized_mutual_information"] == sm.measures.normalized_mutual_information(clusters, NAMES)
    assert found["adjusted_rand_index"] == sm.measures.adjusted_rand_index(clusters, NAMES)
    assert [*found][:3] == ["recall", "trustworthiness", "neighbor_preservation"]


def test_error_bars_hold_what_all_points_say(folder):
    """Of a dozen samples, means lie within four standard errors of the truth, and not all within a half."""
    opened = open_run(folder)
    truth = measure_run(opened, n_sampled=5000)
    samples = [measure_run(opened, n_sampled=200, random_state=seed) for seed in range(12)]
    for name, measure in truth.items():
        deviations = [abs(one[name].value - measure.value) / one[name].error for one in samples]
        assert max(deviations) < 4, name
        assert max(deviations) > 0.5, name


def test_points_that_are_closer_are_counted():
    rng = np.random.default_rng(0)
    points, rows = rng.integers(0, 3, (50, 2)).astype(np.float32), np.array([4, 31])
    limits = np.array([[1.0, 4.0, 0.0], [8.0, 1.0, 2.0]])
    squares = ((points[rows][:, np.newaxis] - points) ** 2).sum(axis=2)
    squares[[0, 1], rows] = np.inf
    expected = (squares[:, np.newaxis] < limits[:, :, np.newaxis]).sum(axis=2)
    found = sum(closer_counts(points[rows], rows - start, limits, points[start : start + 20]) for start in (0, 20, 40))
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60), st.sampled_from([-200, -20, 0, 20, 200]), st.booleans())
def test_ties_and_near_ties_are_counted_in_any_unit(seed, width, exponent, far):
    """Whole numbers times a power of two, whose squared distances are exact, with limits on and just beside them."""
    rng = np.random.default_rng(seed)
    points, rows = rng.integers(0, 4, (70, width)) + 1000.0 * far, np.array([4, 31, 69])
    squares = ((points[rows][:, np.newaxis] - points) ** 2).sum(axis=2)
    limits = squares[:, 10:15] + np.array([0.0, 0.01, -0.01, 1.0, 1e-6])
    squares[[0, 1, 2], rows] = np.inf
    expected = (squares[:, np.newaxis] < limits[:, :, np.newaxis]).sum(axis=2)
    unit = 2.0**exponent
    np.testing.assert_array_equal(closer_counts(points[rows] * unit, rows, limits * unit**2, points * unit), expected)


def test_on_the_command_line(folder, tmp_path, scalemani):
    np.save(tmp_path / "labels.npy", NAMES)
    status, output, _ = scalemani("measure", folder, "--labels", tmp_path / "labels.npy", "--sampled", 300)
    assert status == 0
    lines = output.splitlines()
    assert lines[0].startswith("recall ")
    assert re.search(r" \+- 0\.\d{4}   300 points +share of the true nearest neighbours that the graph has$", lines[0])
    assert [line[:32].strip() for line in lines[3:]] == [
        "continuity", "density correlation", "triplet accuracy", "distance correlation", "1-nn accuracy",
        "15-nn accuracy", "silhouette", "center triplet accuracy", "clustering error",
        "normalized mutual information", "adjusted rand index",
    ]  # fmt: skip
    status, output, _ = scalemani("measure", folder, "--json", "--sampled", 300)
    found = json.loads(output)
    assert status == 0
    assert list(found) == ["recall", *NEAR, "continuity", "density_correlation", *FAR]
    assert found["recall"]["n_sampled"] == 300
    np.save(tmp_path / "one.npy", np.zeros(len(NAMES), int))
    status, output, _ = scalemani("measure", folder, "--labels", tmp_path / "one.npy", "--sampled", 300)
    [line] = [line for line in output.splitlines() if line.startswith("silhouette")]
    assert re.search(r" nan \+- nan   1200 points +undefined: the points looked at are of one class, or each", line)
    np.save(tmp_path / "short.npy", NAMES[:-1])
    status, _, errors = scalemani("measure", folder, "--labels", tmp_path / "short.npy")
    assert (status, errors.count("\n")) == (2, 1)
    assert "1796 labels for 1797 points" in errors
    assert scalemani("measure", tmp_path / "none")[0] != 0


def test_a_graph_and_a_map_without_a_graph_are_measured_by_what_they_have(tmp_path):
    for method, names in (("knn-graph", ["recall"]), ("pca", [*NEAR, *FAR])):
        finished = run(open_points(DIGITS), tmp_path / method, method, Parameters(), Executor())
        found = measure_run(finished, n_sampled=100)
        assert list(found) == names
    assert found["trustworthiness"].value > 0.7


def test_numbers_out_of_range_are_refused(folder):
    with pytest.raises(ConfigError, match="n_neighbors must be <= 898"):
        measure_run(open_run(folder), n_neighbors=900)
    with pytest.raises(ConfigError, match="n_sampled must be >= 1"):
        measure_run(open_run(folder), n_sampled=0)
    with pytest.raises(DataError, match="labels must be classes"):
        measure_run(open_run(folder), np.linspace(0, 1, len(DIGITS)))
