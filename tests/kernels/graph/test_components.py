import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from scalemani.kernels.arrays.union_find import separate_items
from scalemani.kernels.graph.components import components, join_neighbors


def streamed(indices, values, size):
    parents = separate_items(len(indices))
    for start in range(0, len(indices), size):
        join_neighbors(parents, indices[start : start + size], values[start : start + size], start)
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


def test_edges_are_added_in_place_and_sets_stay_the_same_when_they_are_numbered():
    parents = separate_items(4)
    join_neighbors(parents, np.array([[1]], np.int32), np.ones((1, 1)), 0)
    assert components(parents).labels.tolist() == components(parents).labels.tolist() == [0, 0, 1, 2]
    join_neighbors(parents, np.array([[3]], np.int32), np.ones((1, 1)), 1)
    assert components(parents).labels.tolist() == [0, 0, 1, 0]
