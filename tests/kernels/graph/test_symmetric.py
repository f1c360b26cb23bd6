import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.graph.symmetric import (
    DirectedEdges,
    incoming_edges,
    join_edges,
    row_sums,
    symmetric_rows,
    without_zeros,
)


def random_graph(n_points, n_neighbors, seed, dtype=np.float32, hubs=False):
    rng = np.random.default_rng(seed)
    draws = rng.random((n_points, n_points)) * (np.arange(n_points) ** 4 if hubs else 1)
    np.fill_diagonal(draws, -1)
    indices = np.argsort(-draws, axis=1, kind="stable")[:, :n_neighbors].astype(np.int32)
    values = rng.dirichlet(np.ones(n_neighbors), n_points).astype(dtype)
    return indices, values


def blocked(indices, values, size, extra=None):
    n_points = len(indices)
    starts = range(0, n_points, size)
    parts = []
    sources = [incoming_edges(indices[s : s + size], values[s : s + size], s, size, range(len(starts))) for s in starts]
    for start, edges in zip(starts, zip(*sources, strict=True), strict=True):
        stop = min(start + size, n_points)
        parts.append(symmetric_rows(indices[start:stop], values[start:stop], start, join_edges(list(edges)), extra))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p.indptr) for p in parts]))])
    columns, entries = np.concatenate([p.indices for p in parts]), np.concatenate([p.values for p in parts])
    return sp.csr_matrix((entries, columns, indptr), shape=(n_points, n_points))


def dense_oracle(indices, values):
    p = np.zeros((len(indices), len(indices)))
    for i, (row, weights) in enumerate(zip(indices, values, strict=True)):
        for j, w in zip(row, weights, strict=True):
            p[i, j] += w
    return (p + p.T) / 2


@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.integers(2, 60), st.integers(1, 8), st.integers(1, 40), st.integers(0, 99), st.sampled_from(["f4", "f8"]))
def test_equals_the_dense_sum_for_any_blocks_and_is_symmetric_bit_for_bit(n, k, size, seed, dtype):
    indices, values = random_graph(n, min(k, n - 1), seed, np.dtype(dtype))
    w = blocked(indices, values, size)
    np.testing.assert_allclose(w.toarray(), dense_oracle(indices, values), rtol=1e-6 if dtype == "f4" else 1e-15)
    assert (w != w.T).nnz == 0
    assert w.dtype == values.dtype
    assert w.has_canonical_format
    whole = blocked(indices, values, n)
    np.testing.assert_array_equal(whole.data, w.data)
    np.testing.assert_array_equal(whole.indices, w.indices)


def test_total_is_kept():
    indices, values = random_graph(300, 10, 0, np.float64)
    np.testing.assert_allclose(blocked(indices, values, 64).sum(), values.sum(), rtol=1e-12)


def test_hubs_with_long_rows():
    indices, values = random_graph(200, 5, 1, hubs=True)
    w = blocked(indices, values, 50)
    assert np.diff(w.indptr).max() > 64
    np.testing.assert_allclose(w.toarray(), dense_oracle(indices, values), rtol=1e-6)


def test_repeated_neighbours_add_up_symmetrically():
    indices = np.array([[1, 1, 2], [0, 2, 0], [0, 0, 1]], np.int32)
    values = np.random.default_rng(0).random((3, 3)).astype(np.float32)
    w = blocked(indices, values, 1)
    np.testing.assert_allclose(w.toarray(), dense_oracle(indices, values), rtol=1e-6)
    assert (w != w.T).nnz == 0


def test_zeros_are_no_edges_and_bridges_weigh_fully():
    indices, values = np.array([[1], [0], [3], [2]], np.int32), np.array([[1.0], [0.0], [1.0], [1.0]])
    bridge = DirectedEdges(np.array([1, 2], np.int32), np.array([2, 1], np.int32), np.array([0.25, 0.25]))
    w = blocked(indices, values, 2, bridge).toarray()
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 0.5
    expected[2, 3] = expected[3, 2] = 1.0
    expected[1, 2] = expected[2, 1] = 0.25
    np.testing.assert_array_equal(w, expected)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_indices_keep_their_dtype(dtype):
    indices, values = random_graph(20, 3, 2)
    (incoming,) = incoming_edges(indices.astype(dtype), values, 0, 20, [0])
    assert symmetric_rows(indices.astype(dtype), values, 0, incoming).indices.dtype == dtype


def test_row_sums_are_float64():
    indices, values = random_graph(50, 7, 3)
    w = blocked(indices, values, 50)
    np.testing.assert_allclose(row_sums(w.data, w.indptr), w.astype(np.float64).toarray().sum(axis=1), rtol=1e-14)


def exact_rows(indices, values, extra):
    """The entries of W by row and column: sums of each kind in float64, in the order of the edges, added once."""
    n_points, sums = len(indices), {}
    for i, (row, weights) in enumerate(zip(indices.tolist(), values.astype(np.float64), strict=True)):
        for j, weight in zip(row, weights, strict=True):
            if weight > 0:
                sums.setdefault((i, j), np.zeros(3))[0] += weight
                sums.setdefault((j, i), np.zeros(3))[1] += weight
    for target, source, weight in zip(*extra, strict=True):
        sums.setdefault((int(target), int(source)), np.zeros(3))[2] += weight
    expected = np.zeros((n_points, n_points), values.dtype)
    for place, (forward, backward, added) in sums.items():
        expected[place] = 0.5 * (forward + backward) + added
    return expected


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(2, 50), st.integers(1, 90), st.integers(1, 30), st.integers(0, 99))
def test_sums_of_repeated_edges_bridges_in_any_order_and_loops_are_those_of_their_order_to_the_bit(n, k, size, seed):
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, n, (n, k)).astype(np.int32)
    values = (rng.random((n, k)) * (rng.random((n, k)) < 0.8)).astype(np.float32)
    ends, weights = rng.integers(0, n, (2, 2 * n)).astype(np.int32), rng.random(2 * n)
    extra = DirectedEdges(ends[0], ends[1], weights)
    w = blocked(indices, values, size, extra)
    np.testing.assert_array_equal(w.toarray(), exact_rows(indices, values, extra))
    assert w.has_canonical_format


def test_zeros_are_left_out_of_rows_and_other_entries_stay():
    dense = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
    rows = sp.csr_matrix(dense)
    rows.data[[0, 2]] = 0
    found = without_zeros(rows.indptr.astype(np.int64), rows.indices, rows.data)
    assert found.indptr.tolist() == [0, 1, 1, 2]
    assert found.indices.tolist() == [3, 2]
    assert found.values.tolist() == [2, 4]
    assert all(one is other for one, other in zip(without_zeros(*found), found, strict=True))
