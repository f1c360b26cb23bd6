"""Eigenmaps of pieces of a graph, against LAPACK on each piece, and pieces side by side, against their discs."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

from scalemani.kernels.graph.components import Bridges, Components, join_rows, nearest_pairs, spanning_pairs
from scalemani.kernels.spectral.pieces import PieceTarget, numbered_by_size, piece_map, side_by_side


def graph_of(n_points, seed=0):
    """A connected graph of points on a strip, as (indptr, indices, values)."""
    points = np.random.default_rng(seed).random((n_points, 2)) * [3.0, 1.0]
    away = kneighbors_graph(points, min(10, n_points - 1), mode="distance")
    away.data = np.exp(-((away.data / 0.1) ** 2)) + 0.05
    both = sp.csr_matrix((away + away.T) / 2, dtype=np.float32)
    both.sort_indices()
    return both.indptr.astype(np.int64), both.indices.astype(np.int32), both.data


def target(n_components, exact=False, residual=1e-7):
    return PieceTarget(n_components, exact, residual, 200, np.float64, 0)


def exact_solution(rows, count):
    """Eigenvalues and vectors of L v = lambda D v by LAPACK, the trivial one left out."""
    indptr, indices, values = rows
    weights = sp.csr_matrix((values, indices, indptr)).toarray().astype(np.float64)
    degrees = weights.sum(axis=1)
    found = scipy.linalg.eigh(np.diag(degrees) - weights, np.diag(degrees), subset_by_index=[0, count])
    return found[0][1:], found[1][:, 1:], degrees


@pytest.mark.parametrize(("n_points", "exact"), [(400, False), (1300, False), (1300, True)])
def test_a_piece_has_the_vectors_of_lapack_by_every_solver(n_points, exact):
    rows = graph_of(n_points)
    found = piece_map(rows, target(3, exact))
    values, vectors, degrees = exact_solution(rows, 4)
    np.testing.assert_allclose(found.eigenvalues, values[:3], rtol=1e-5)
    cosines = np.abs(np.einsum("ij,i,ij->j", found.vectors, degrees, vectors[:, :3]))
    np.testing.assert_allclose(cosines, 1, atol=1e-6)
    np.testing.assert_allclose(np.einsum("ij,i,ij->j", found.vectors, degrees, found.vectors), 1, rtol=1e-5)
    assert found.residuals.max() < 1e-6
    assert abs(1 - found.following.values[0] - values[3]) <= max(1e-6, found.following.residuals[0])


@pytest.mark.parametrize("n_points", [1, 2, 3])
def test_a_piece_too_small_for_all_columns_has_one_less_than_its_points(n_points):
    indptr, indices, values = (
        graph_of(n_points) if n_points > 1 else (np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    )
    found = piece_map((indptr, indices, values), target(5))
    assert found.vectors.shape == (n_points, n_points - 1)
    assert ((found.eigenvalues > 0) & (found.eigenvalues <= 2)).all()


def test_eigenvalues_of_a_long_weakly_linked_piece_stay_in_their_range():
    joints = np.full(999, 1.0)
    joints[499] = 2e-7
    chain = sp.diags_array([joints, joints], offsets=[-1, 1], format="csr").astype(np.float32)
    found = piece_map((chain.indptr.astype(np.int64), chain.indices.astype(np.int32), chain.data), target(2))
    weights = chain.toarray().astype(np.float64)
    # Of two halves of 500 nodes and total degree 998 each that one weak edge joins.
    assert found.eigenvalues[0] == pytest.approx(2 * 2e-7 / 998, rel=1e-2)
    assert ((found.eigenvalues >= 0) & (found.eigenvalues <= 2)).all()
    assert weights.shape == (1000, 1000)


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_pieces_lie_side_by_side_without_overlap_and_by_size(n_dims):
    rng = np.random.default_rng(2)
    sizes = np.sort(rng.integers(1, 300, 40))[::-1]
    pieces = rng.permutation(np.repeat(np.arange(40), sizes))
    positions = rng.standard_t(3, (len(pieces), n_dims)) * rng.random(n_dims)
    placed = side_by_side(positions, pieces)
    radii = np.zeros(40)
    middles = np.zeros((40, n_dims))
    for piece in range(40):
        own = placed[pieces == piece]
        middles[piece] = own.mean(axis=0)
        radii[piece] = np.linalg.norm(own - middles[piece], axis=1).max()
    apart = cdist(middles, middles) - radii - radii[:, np.newaxis]
    assert (apart[~np.eye(40, dtype=bool)] > 0).all()
    several = sizes > 1
    np.testing.assert_allclose(radii[several] ** n_dims, sizes[several], rtol=1e-9)
    if n_dims == 2:
        extent = np.ptp(placed, axis=0)
        assert extent.max() < 2 * extent.min()


def test_a_row_joins_what_is_above_rounding_and_pieces_are_numbered_by_size():
    values = np.array([1.0, 1.0, 1e-9, 1e-9, 1.0, 1.0, 1.0, 1.0])
    rows = sp.coo_array((values, ([0, 1, 1, 2, 2, 3, 3, 4], [1, 0, 2, 1, 3, 2, 4, 3]))).tocsr()
    parents = np.arange(5, dtype=np.int32)
    join_rows(parents, (rows.indptr, rows.indices, rows.data), 0, np.sqrt(rows.sum(axis=1)))
    assert parents[1] == 0
    assert parents[2] == 2
    found = numbered_by_size(Components(np.array([0, 0, 1, 1, 1, 2, 2]), np.array([2, 3, 2])))
    np.testing.assert_array_equal(found.labels, [1, 1, 0, 0, 0, 2, 2])
    np.testing.assert_array_equal(found.sizes, [3, 2, 2])


def test_the_nearest_pairs_that_span_components_are_a_minimum_spanning_tree():
    rng = np.random.default_rng(4)
    points, labels = rng.random((60, 2)), np.repeat(np.arange(12), 5).astype(np.int32)
    rows = np.array([(i, j) for i in range(60) for j in range(60) if i != j])
    distances = cdist(points, points)[rows[:, 0], rows[:, 1]]
    between = np.full((12, 12), np.inf)
    np.minimum.at(between, (labels[rows[:, 0]], labels[rows[:, 1]]), distances)
    np.fill_diagonal(between, 0)
    nearest = nearest_pairs(labels, rows, distances)
    assert len(nearest.rows) == 66
    found = spanning_pairs(labels, Bridges(rows, distances))
    assert len(found.rows) == 11
    expected = sp.csgraph.minimum_spanning_tree(between)
    np.testing.assert_allclose(np.sort(found.distances), np.sort(expected.data))
