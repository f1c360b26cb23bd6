"""Neighbour graphs against brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import scalemani as sm


def true_neighbors(points, n_neighbors, metric="euclidean"):
    """Return the sorted distances and the neighbours of all points, self excluded."""
    distances = cdist(points.astype(np.float64), points.astype(np.float64), metric)
    np.fill_diagonal(distances, np.inf)
    order = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    return np.take_along_axis(distances, order, axis=1), order


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
def test_exact_graphs_have_the_distances_of_brute_force(digits, metric):
    graph = sm.knn_graph(digits[0], n_neighbors=12, method="exact", metric=metric)
    distances, _ = true_neighbors(digits[0], 12, metric)
    np.testing.assert_allclose(graph.distances[:], distances, rtol=1e-5, atol=1e-6)
    assert graph.recall == 1.0


def test_a_point_is_no_neighbor_of_itself_and_lists_ascend(digits):
    graph = sm.knn_graph(digits[0], n_neighbors=7)
    indices, distances = np.asarray(graph.indices[:]), np.asarray(graph.distances[:])
    assert indices.shape == distances.shape == (800, 7)
    assert not (indices == np.arange(800)[:, None]).any()
    assert (np.diff(distances, axis=1) >= 0).all()
    assert all(len(set(row)) == 7 for row in indices.tolist())


def test_approximate_graphs_reach_the_recall_that_is_requested(digits):
    graph = sm.knn_graph(digits[0], n_neighbors=10, method="partition", recall=0.95)
    measured = sm.measures.recall(np.asarray(graph.indices[:]), digits[0])
    assert graph.recall >= 0.95
    assert abs(measured.value - graph.recall) < 0.02


def test_sparse_points_have_the_graph_of_dense_ones(digits):
    dense = sm.knn_graph(digits[0], n_neighbors=8, method="exact")
    sparse = sm.knn_graph(sp.csr_matrix(digits[0]), n_neighbors=8, method="exact")
    np.testing.assert_allclose(sparse.distances[:], dense.distances[:], rtol=1e-6)


def test_the_transformer_stands_in_for_that_of_scikit_learn(digits):
    graph = sm.KNeighborsTransformer(n_neighbors=5).fit_transform(digits[0])
    distances, _ = true_neighbors(digits[0], 5)
    assert graph.shape == (800, 800)
    np.testing.assert_allclose(np.sort(graph[17].data)[-5:], distances[17], rtol=1e-5)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.array([[0.0, np.nan], [1.0, 2.0], [3.0, 4.0]]), "NaN|finite"),
        (np.zeros((0, 3)), "0 sample"),
        (np.array([["a", "b"], ["c", "d"]]), "number|real|dtype"),
    ],
)
def test_points_that_cannot_be_used_are_refused_by_one_message(points, message):
    with pytest.raises(ValueError, match=message):
        sm.knn_graph(points, n_neighbors=1)
