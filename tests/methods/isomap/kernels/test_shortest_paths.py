import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from scalemani.methods.isomap.kernels.shortest_paths import geodesic_distances, undirected_edges

NO_BRIDGES = np.empty((0, 2), np.int64), np.empty(0)


def drawn(n_nodes, n_neighbors, seed, dtype=np.float64):
    """Return neighbour lists of random nodes at random distances, the same both ways."""
    random = np.random.default_rng(seed)
    indices = np.stack(
        [random.choice(np.delete(np.arange(n_nodes), row), n_neighbors, replace=False) for row in range(n_nodes)]
    )
    lengths = random.integers(1, 50, (n_nodes, n_nodes))
    lengths = (lengths + lengths.T).astype(dtype)
    return indices.astype(np.int32), np.take_along_axis(lengths, indices, axis=1)


def oracle(indices, distances):
    """Return the shortest paths (N, N) by scipy."""
    n_nodes, k = indices.shape
    edges = sp.csr_matrix((distances.ravel(), indices.ravel(), np.arange(0, n_nodes * k + 1, k)), (n_nodes, n_nodes))
    return shortest_path(edges, method="D", directed=False)


@given(n_nodes=st.integers(3, 40), n_neighbors=st.integers(1, 6), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_lengths_are_those_of_scipy(n_nodes, n_neighbors, seed):
    indices, distances = drawn(n_nodes, min(n_neighbors, n_nodes - 1), seed)
    edges = undirected_edges(indices, distances, *NO_BRIDGES)
    sources = np.arange(0, n_nodes, 2)[::-1]
    np.testing.assert_array_equal(geodesic_distances(edges, sources), oracle(indices, distances)[sources])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_edge_is_at_both_ends_once(dtype):
    indices, distances = drawn(30, 5, 0, dtype)
    bounds, heads, lengths = undirected_edges(indices, distances, *NO_BRIDGES)
    found = {(row, head): length for row in range(30) for head, length in of_row(bounds, heads, lengths, row)}
    assert len(found) == len(heads)
    assert found == {(head, row): length for (row, head), length in found.items()}
    assert {frozenset(edge) for edge in found} == {frozenset((r, int(h))) for r in range(30) for h in indices[r]}


def of_row(bounds, heads, lengths, row):
    part = slice(bounds[row], bounds[row + 1])
    return zip(heads[part].tolist(), lengths[part].tolist(), strict=True)


def test_paths_lead_over_bridges_and_nowhere_without_them():
    indices = np.array([[1], [0], [3], [2]], np.int32)
    distances = np.array([[1.0], [1.0], [2.0], [2.0]])
    apart = geodesic_distances(undirected_edges(indices, distances, *NO_BRIDGES), np.array([0]))
    np.testing.assert_array_equal(apart, [[0, 1, np.inf, np.inf]])
    joined = undirected_edges(indices, distances, np.array([[1, 2]]), np.array([10.0]))
    found = geodesic_distances(joined, np.arange(4))
    np.testing.assert_array_equal(found, [[0, 1, 11, 13], [1, 0, 10, 12], [11, 10, 0, 2], [13, 12, 2, 0]])


def test_copies_of_a_point_are_no_way_apart():
    indices, distances = np.array([[1], [2], [1]], np.int32), np.zeros((3, 1))
    edges = undirected_edges(indices, distances, *NO_BRIDGES)
    np.testing.assert_array_equal(geodesic_distances(edges, np.arange(3)), np.zeros((3, 3)))
