import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from sklearn.decomposition import KernelPCA

from scalemani.errors import RankError
from scalemani.methods.isomap.kernels import (
    classical_scaling,
    geodesic_distances,
    residual_variance,
    triangulation,
    undirected_edges,
)


def test_distances_of_points_are_those_of_their_coordinates():
    points = np.random.default_rng(0).normal(size=(40, 3)) * [3, 2, 1]
    found, least = classical_scaling(cdist(points, points), 3)
    np.testing.assert_allclose(cdist(found.vectors, found.vectors), cdist(points, points), atol=1e-10)
    np.testing.assert_allclose(found.vectors.sum(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(found.eigenvalues, (found.vectors**2).sum(axis=0))
    assert abs(least) < 1e-10


def test_of_other_distances_coordinates_are_those_of_kernel_components():
    points = np.random.default_rng(1).normal(size=(30, 4))
    distances = np.sqrt(cdist(points, points, "cityblock")) + cdist(points, points, "chebyshev")
    found, least = classical_scaling(distances, 4)
    peer = KernelPCA(4, kernel="precomputed").fit_transform(-0.5 * distances**2)
    np.testing.assert_allclose(found.vectors, peer * np.sign((peer * found.vectors).sum(axis=0)), atol=1e-9)
    centred = distances**2
    centring = np.eye(30) - 1 / 30
    np.testing.assert_allclose(least, np.linalg.eigvalsh(-0.5 * centring @ centred @ centring)[0])


def test_more_dimensions_than_distances_span_are_refused():
    line = np.arange(10.0)[:, np.newaxis]
    with pytest.raises(RankError, match="2 components were requested of distances that span 1 dimensions"):
        classical_scaling(cdist(line, line), 2)


def test_residual_variance_is_what_a_correlation_leaves():
    random = np.random.default_rng(2)
    points = random.normal(size=(25, 3))
    distances, plane = cdist(points, points), points[:, :2]
    expected = 1 - np.corrcoef(distances.ravel(), cdist(plane, plane).ravel())[0, 1] ** 2
    assert residual_variance(distances, plane) == pytest.approx(expected)
    assert residual_variance(distances, 5 * points) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("power", [0, 332, -332])
def test_points_of_a_plane_are_triangulated_to_their_places_at_any_scale(power):
    rng = np.random.default_rng(0)
    points = np.ldexp(rng.normal(size=(40, 2)) + 3, power)
    landmarks = points[:10]
    distances = cdist(np.ldexp(landmarks, -power), np.ldexp(landmarks, -power))
    distances = np.ldexp((distances + distances.T) / 2, power)
    scaled, least = classical_scaling(distances, 2)
    assert abs(least) < 1e-10 * scaled.eigenvalues[0]
    placer, out = triangulation(distances, scaled), np.zeros((40, 2))
    to_points = np.ldexp(cdist(np.ldexp(landmarks, -power), np.ldexp(points, -power)), power)
    for first in (0, 4, 8):
        placer.add(to_points[first : first + 4], first, out)
    out = np.ldexp(out, placer.exponent - power)
    np.testing.assert_allclose(out[:10], np.ldexp(scaled.vectors, -power), atol=1e-12)
    np.testing.assert_allclose(cdist(out, out), cdist(np.ldexp(points, -power), np.ldexp(points, -power)), atol=1e-11)
    assert residual_variance(distances, scaled.vectors) == pytest.approx(0, abs=1e-12)


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
