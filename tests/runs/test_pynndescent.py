"""pynndescent as a way to the graph and as a source of lists: one test of dense points, since each process compiles it.

That takes a minute of processor time, and another one for sparse points.
"""

import numpy as np
import pytest
from pynndescent import NNDescent
from sklearn.metrics import pairwise_distances

import scalemani as sm
from tests.docs.test_lists_page import COMPILED, check_lines
from tests.stages.arrays import test_invariants as invariants

N, K = 1500, 30


def brute_force(distances, k):
    """Return the k nearest by a matrix of distances, self left out."""
    away = distances.astype(float)
    np.fill_diagonal(away, np.inf)
    return np.argsort(away, axis=1)[:, :k]


def shared(found, expected):
    return np.mean([len(np.intersect1d(a, b)) for a, b in zip(found, expected, strict=True)]) / expected.shape[1]


def declared_holds(kind, folder):
    """Check all that is declared of stored arrays, in a run over points of a kind."""
    broken, checked = invariants.broken_of(kind, invariants.COMPILED, folder)
    assert broken == []
    assert "neighbors" in dict(checked)


@pytest.mark.timeout(900)  # it compiles, on a machine that does much else
@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
def test_pynndescent_finds_nearly_all_in_any_metric_and_its_lists_are_taken_as_they_are(tmp_path):
    draws = np.random.default_rng(0)
    points = draws.normal(size=(N, 5)) * [1, 1.5, 2, 2.5, 4]
    graph = sm.knn_graph(points, K, method="pynndescent")
    assert not (graph.indices == np.arange(N)[:, np.newaxis]).any()
    assert graph.recall >= 0.95
    assert abs(graph.recall - shared(graph.indices, brute_force(pairwise_distances(points), K))) < 0.02

    counts = draws.poisson(draws.dirichlet(np.full(20, 0.3), N) * 500) + draws.integers(1, 3, (N, 20))
    roots = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
    away = pairwise_distances(roots) / np.sqrt(2)
    hellinger = sm.knn_graph(counts, K, method="pynndescent", metric="hellinger")
    assert shared(hellinger.indices, brute_force(away, K)) > 0.95
    np.testing.assert_allclose(hellinger.distances, np.take_along_axis(away, hellinger.indices, axis=1), atol=1e-6)

    given = {"perplexity": 10, "n_neighbors": K, "solver": "exact"}
    lists = NNDescent(points, n_neighbors=2 * K, random_state=0).neighbor_graph
    model = sm.LaplacianEigenmaps(metric="precomputed", **given).fit(lists)
    # Its distances are of float32, and a few of its neighbours others.
    expected = sm.LaplacianEigenmaps(**given).fit(points).embedding_
    np.testing.assert_allclose(model.embedding_, expected, atol=1e-3)

    check_lines(COMPILED)
    for kind in sorted({*invariants.KINDS} - {"counts"}):
        declared_holds(kind, tmp_path / kind)


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore::scalemani.errors.ScalemaniWarning")
def test_what_is_declared_holds_of_lists_that_pynndescent_finds_of_sparse_points(tmp_path):
    declared_holds("counts", tmp_path / "run")
