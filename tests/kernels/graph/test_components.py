import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist

from scalemani.kernels.arrays.union_find import separate_items
from scalemani.kernels.graph.components import (
    boruvka_round,
    bridge_queries,
    components,
    join_neighbors,
    nearer,
    nearest_outside,
)


def streamed(indices, values, size):
    parents = separate_items(len(indices))
    for start in range(0, len(indices), size):
        parents = join_neighbors(parents, indices[start : start + size], values[start : start + size], start)
    return components(parents)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(1, 80), st.integers(1, 3), st.integers(1, 50), st.floats(0, 1), st.integers(0, 99))
def test_equals_scipy_for_any_blocks(n, k, size, kept, seed):
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, n, (n, k)).astype(np.int32)
    values = (rng.random((n, k)) < kept).astype(np.float32)
    used = values > 0
    rows = np.repeat(np.arange(n), k).reshape(n, k)
    graph = sp.csr_matrix((np.ones(used.sum()), (rows[used], indices[used])), shape=(n, n))
    count, labels = connected_components(graph, directed=False)
    found = streamed(indices, values, size)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_array_equal(found.sizes, np.bincount(labels))
    assert len(found.sizes) == count


def test_a_step_leaves_its_argument_alone():
    parents = separate_items(3)
    join_neighbors(parents, np.array([[1]], np.int32), np.ones((1, 1)), 0)
    np.testing.assert_array_equal(parents, [0, 1, 2])


def test_queries_spread_over_all_but_the_largest():
    labels = np.repeat([0, 1, 2], [10, 1000, 200])
    queries = bridge_queries(labels, 64)
    assert np.bincount(labels[queries], minlength=3).tolist() == [10, 0, 64]
    assert queries[10] == 1010
    assert queries[-1] == 1209
    assert len(bridge_queries(np.zeros(5, int))) == 0


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.integers(0, 99), st.sampled_from([1.0, 1e-6, 1e6]), st.sampled_from([0.0, 1e5]), st.integers(1, 1300))
def test_nearest_outside_is_exact_for_any_blocks(seed, scale, offset, size):
    rng = np.random.default_rng(seed)
    points = (rng.normal(size=(1300, 5)) * scale + offset * scale).astype(np.float32)
    labels = rng.integers(0, 3, 1300)
    queries = np.arange(0, 1300, 37)
    best = (np.full(len(queries), -1), np.full(len(queries), np.inf))
    for start in range(0, 1300, size):
        rows = slice(start, start + size)
        best = nearer(best, nearest_outside(points[queries], labels[queries], points[rows], labels[rows], start))
    distances = cdist(points[queries].astype(np.float64), points.astype(np.float64))
    distances[labels[queries][:, None] == labels[None, :]] = np.inf
    np.testing.assert_allclose(best[1], distances.min(axis=1), rtol=1e-12)
    np.testing.assert_allclose(distances[np.arange(len(queries)), best[0]], distances.min(axis=1), rtol=1e-12)


def test_a_block_of_the_same_label_has_no_answer():
    rows, distances = nearest_outside(np.zeros((1, 2)), np.zeros(1, int), np.ones((4, 2)), np.zeros(4, int), 0)
    assert rows.tolist() == [-1]
    assert np.isinf(distances).all()


def test_rounds_of_bridges_are_the_minimum_spanning_tree_of_the_components():
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(12), 8)
    points = rng.normal(size=(96, 2)) + 8 * rng.normal(size=(12, 2))[labels]
    between = np.full((12, 12), np.inf)
    distances = cdist(points, points)
    for i in range(12):
        for j in range(12):
            if i != j:
                between[i, j] = distances[np.ix_(labels == i, labels == j)].min()
    total, current, rounds = 0.0, labels, 0
    while current.max() > 0:
        queries = bridge_queries(current)
        found = nearest_outside(points[queries], current[queries], points, current, 0)
        bridges, merged = boruvka_round(current, queries, *found)
        total += bridges.distances.sum()
        assert len(merged.sizes) == current.max() + 1 - len(bridges.rows)
        current, rounds = merged.labels, rounds + 1
    expected = minimum_spanning_tree(np.where(np.isinf(between), 0, between)).sum()
    np.testing.assert_allclose(total, expected, rtol=1e-12)
    assert rounds <= 4
