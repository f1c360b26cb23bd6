"""The stage `components`: pieces and bridges of a graph that brute force builds, counted by SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist

from scalemani.params import Parameters
from scalemani.runs.walk import run
from scalemani.sources import open_points
from scalemani.workers.executor import Executor

K = 6
SIZES = [1500, 60, 50, 40, 30]
CENTERS = np.array([[0, 0, 0], [30, 0, 0], [30, 25, 0], [-40, 0, 5], [0, 90, 0]], float)


def pieces(n_pieces):
    """Return points in so many clusters, mixed in their order."""
    draws = np.random.default_rng(n_pieces)
    points = np.repeat(CENTERS[:n_pieces], SIZES[:n_pieces], axis=0)
    return draws.permutation(points + draws.normal(size=points.shape)).astype(np.float32)


def brute_force(points):
    """Return the number of components of the k-nearest-neighbour graph, the label of each point, and all distances."""
    away = cdist(points.astype(np.float64), points.astype(np.float64))
    np.fill_diagonal(away, np.inf)
    nearest = np.argsort(away, axis=1)[:, :K]
    rows = np.repeat(np.arange(len(points)), K)
    edges = sp.csr_matrix((np.ones(rows.size), (rows, nearest.ravel())), shape=away.shape)
    return edges, *connected_components(edges, directed=False), away


@pytest.mark.parametrize("n_pieces", [1, 2, 5])
def test_components_and_bridges_are_those_of_the_graph_by_brute_force(tmp_path, n_pieces):
    points = pieces(n_pieces)
    values = {"neighbors": {"n_neighbors": K, "method": "exact"}, "affinities": {"perplexity": 2}}
    values["components"] = {"queries_per_component": 2000}  # all: bridges are closest pairs, not of samples
    params = Parameters().with_values({**values, "embedding": {"residual": 0.5, "max_passes": 2}})
    finished = run(open_points(points), tmp_path / "run", "laplacian-eigenmaps", params, Executor(), 1024)
    edges, count, labels, away = brute_force(points)
    certificates, group = finished.certificates["components"], finished.group("components")
    assert certificates["components"] == count >= n_pieces
    assert certificates["largest_components"] == sorted(np.bincount(labels).tolist(), reverse=True)[:10]
    assert certificates["bridges"] == count - 1
    order = finished.group("work_points").read("input_rows")
    agreement = sp.coo_matrix((np.ones(len(points)), (labels[order], group.read("labels")))).tocsr()
    assert agreement.nnz == count  # one label of ours for each of SciPy's
    bridges = order[group.read("bridge_rows")]
    np.testing.assert_allclose(group.read("bridge_distances"), away[bridges[:, 0], bridges[:, 1]], rtol=1e-5)
    between = np.array([[away[labels == a][:, labels == b].min() for b in range(count)] for a in range(count)])
    shortest = minimum_spanning_tree(np.where(np.isfinite(between), between, 0)).sum()
    assert group.read("bridge_distances").sum() == pytest.approx(shortest, rel=1e-5)
    joined = edges + sp.csr_matrix((np.ones(len(bridges)), bridges.T), shape=edges.shape)
    assert connected_components(joined, directed=False)[0] == 1
