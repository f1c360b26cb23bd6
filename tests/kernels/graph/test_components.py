import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from scalemani.kernels.arrays.grouping import separate_items
from scalemani.kernels.graph.components import LEAST_ENTRY, add_degrees, components, join_neighbors


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


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(2, 60), st.integers(1, 4), st.integers(1, 50), st.integers(-60, 60), st.integers(0, 99))
def test_edges_below_rounding_in_the_normalised_matrix_join_nothing_for_any_blocks_and_scale(n, k, size, power, seed):
    rng = np.random.default_rng(seed)
    k = min(k, n - 1)
    indices = np.array([rng.choice(np.delete(np.arange(n), row), k, replace=False) for row in range(n)])
    values = np.ldexp(10.0 ** rng.uniform(-14, 0, (n, k)), power)
    directed = np.zeros((n, n))
    np.put_along_axis(directed, indices, values, axis=1)
    degrees = (directed + directed.T).sum(axis=1)
    joined = directed >= LEAST_ENTRY * np.sqrt(np.outer(degrees, degrees))
    count, labels = connected_components(sp.csr_matrix(joined & (directed > 0)), directed=False)
    found, sums = separate_items(n), np.zeros(n)
    for start in range(0, n, size):
        add_degrees(sums, indices[start : start + size], values[start : start + size], start)
    np.testing.assert_allclose(sums, degrees, rtol=1e-12)
    for start in range(0, n, size):
        join_neighbors(found, indices[start : start + size], values[start : start + size], start, np.sqrt(sums))
    np.testing.assert_array_equal(components(found).labels, labels)
    assert len(components(found).sizes) == count


def test_degrees_are_the_same_bits_for_any_blocks():
    rng = np.random.default_rng(0)
    indices, values = rng.integers(0, 500, (500, 7)), rng.random((500, 7)).astype(np.float32)
    sums = []
    for size in (1, 64, 500):
        sums.append(np.zeros(500))
        for start in range(0, 500, size):
            add_degrees(sums[-1], indices[start : start + size], values[start : start + size], start)
    assert sums[0].tobytes() == sums[1].tobytes() == sums[2].tobytes()
