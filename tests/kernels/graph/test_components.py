import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from scalemani.kernels.arrays.grouping import separate_items
from scalemani.kernels.graph.components import (
    LEAST_ENTRY,
    add_degrees,
    chosen_rows,
    edges_leaving,
    join_inside,
    joining,
    labels_of_pieces,
    labels_of_roots,
    pass_labels,
    sizes_of,
    spanning_forest,
    sums_of_parts,
)


def streamed(indices, values, size, width, roots=None):
    """Return the label of each row and the rows of each component, joined in ranges of `width`, by blocks of `size`."""
    n, pieces, offsets, pairs = len(indices), [], [0], []
    for first in range(0, n, width):
        last = min(n, first + width)
        parents, of_range = separate_items(last - first), None if roots is None else roots[first:last]
        for start in range(first, last, size):
            rows = slice(start, min(last, start + size))
            join_inside(parents, first, indices[rows], values[rows], start, of_range)
        pieces.append(labels_of_roots(parents))
        offsets.append(offsets[-1] + pieces[-1].max() + 1)
    numbers = np.concatenate([part + offset for part, offset in zip(pieces, offsets, strict=False)])
    for first in range(0, n, width):
        last = min(n, first + width)
        leaving = edges_leaving(indices[first:last], values[first:last], first, first, last)
        ends = np.column_stack([numbers[leaving.sources], numbers[leaving.targets]])
        joins = slice(None) if roots is None else joining(leaving, roots[leaving.sources], roots[leaving.targets])
        pairs.append(spanning_forest(ends[joins]))
        assert len(pairs[-1]) < max(1, offsets[-1])
    labels = labels_of_pieces(offsets[-1], spanning_forest(np.concatenate(pairs)))
    return labels[numbers], sums_of_parts(labels, np.concatenate([sizes_of(part) for part in pieces]))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(20, 80), st.integers(1, 2), st.integers(1, 50), st.integers(1, 20), st.integers(0, 99))
def test_equals_scipy_for_any_blocks_and_ranges(n, k, size, width, seed):
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, n, (n, k)).astype(np.int32)
    values = (rng.random((n, k)) < rng.random()).astype(np.float32)
    used = values > 0
    rows = np.repeat(np.arange(n), k).reshape(n, k)
    graph = sp.csr_matrix((np.ones(used.sum()), (rows[used], indices[used])), shape=(n, n))
    count, labels = connected_components(graph, directed=False)
    found, sizes = streamed(indices, values, size, width)
    np.testing.assert_array_equal(found, labels)
    np.testing.assert_array_equal(sizes, np.bincount(labels))
    assert len(sizes) == count


@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.integers(0, 60), st.integers(1, 40), st.integers(0, 99))
def test_a_forest_joins_each_piece_to_the_first_that_scipy_joins_it_to(n_pairs, n_pieces, seed):
    pairs = np.random.default_rng(seed).integers(0, n_pieces, (n_pairs, 2))
    forest = spanning_forest(pairs)
    graph = sp.csr_matrix((np.ones(n_pairs), pairs.T), shape=(n_pieces, n_pieces))
    _, sets = connected_components(graph, directed=False)
    first = np.unique(sets, return_index=True)[1][sets]
    later = np.flatnonzero(first < np.arange(n_pieces))
    np.testing.assert_array_equal(forest, np.column_stack([later, first[later]]))
    np.testing.assert_array_equal(labels_of_pieces(n_pieces, forest), sets)


@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.integers(1, 300), st.integers(1, 7), st.integers(1, 20), st.integers(1, 300), st.integers(0, 99))
def test_rows_that_look_for_a_bridge_are_spread_over_their_component_for_any_blocks(n, n_labels, each, size, seed):
    labels = np.sort(np.unique(np.random.default_rng(seed).integers(0, n_labels, n), return_inverse=True)[1])
    labels = np.random.default_rng(seed).permutation(labels)
    sizes = np.bincount(labels)
    chosen = chosen_rows(sizes, each)
    for start in range(0, n, size):
        pass_labels(chosen, labels[start : start + size], start)
    expected = []
    for label in np.delete(np.arange(len(sizes)), np.argmax(sizes)):
        rows = np.flatnonzero(labels == label)
        expected.append(rows[np.linspace(0, len(rows) - 1, min(len(rows), each)).round().astype(int)])
    np.testing.assert_array_equal(chosen.ends.rows, np.sort(np.concatenate([np.empty(0, int), *expected])))
    np.testing.assert_array_equal(chosen.ends.labels, labels[chosen.ends.rows])


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
    sums = summed_degrees(indices, values, size, n)
    np.testing.assert_allclose(sums, degrees, rtol=1e-12)
    found, sizes = streamed(indices, values, size, 1 + seed % n, np.sqrt(sums))
    np.testing.assert_array_equal(found, labels)
    assert len(sizes) == count


def summed_degrees(indices, values, size, width):
    """Return the degrees of all rows, in ranges of `width`, by blocks of `size`."""
    sums = np.zeros(len(indices))
    for first in range(0, len(sums), width):
        for start in range(0, len(sums), size):
            rows = slice(start, start + size)
            add_degrees(sums[first : first + width], first, indices[rows], values[rows], start)
    return sums


def test_degrees_are_the_same_bits_for_any_blocks_and_ranges():
    rng = np.random.default_rng(0)
    indices, values = rng.integers(0, 500, (500, 7)), rng.random((500, 7)).astype(np.float32)
    sums = [summed_degrees(indices, values, size, width) for size, width in ((1, 500), (64, 70), (500, 1))]
    assert sums[0].tobytes() == sums[1].tobytes() == sums[2].tobytes()
