import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from scalemani.kernels.arrays.grouping import find_root, separate_items, unite


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(0, 80))
def test_roots_are_the_smallest_items_of_the_sets_in_any_order_of_unions(seed, n_items, n_unions):
    generator = np.random.default_rng(seed)
    pairs = generator.integers(0, n_items, (n_unions, 2))
    graph = coo_matrix((np.ones(n_unions), pairs.T), shape=(n_items, n_items))
    n_sets, labels = connected_components(graph, directed=False)
    expected = [int(np.flatnonzero(labels == label)[0]) for label in labels]
    for order in (np.arange(n_unions), generator.permutation(n_unions)):
        parents = separate_items(n_items)
        joined = sum(unite(parents, one, other) for one, other in pairs[order])
        assert joined == n_items - n_sets
        assert [find_root(parents, item) for item in range(n_items)] == expected


def test_finding_a_root_shortens_the_path():
    parents = np.array([0, 0, 1, 2, 3, 4], np.int32)
    assert find_root(parents, 5) == 0
    np.testing.assert_array_equal(parents, [0, 0, 1, 1, 3, 3])
