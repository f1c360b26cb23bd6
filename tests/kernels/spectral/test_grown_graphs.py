"""Points that join coarse graphs: where they go, and what the graphs are afterwards."""

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.kernels.graph.attraction import AffinityRows
from scalemani.kernels.spectral.coarsening import (
    CROWDED,
    aggregated,
    coarse_graph,
    coarse_part,
    coarser,
    crowded_share,
    join_strongest,
    no_aggregates,
    with_degrees,
)


def affinity_rows(matrix):
    return AffinityRows(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data.astype(np.float32)
    )


def matrix(rows):
    return sp.csr_matrix((rows[2].astype(np.float64), rows[1], rows[0])).toarray()


@pytest.fixture(scope="module")
def levels(knn_affinities, graph_of):
    graph = graph_of(knn_affinities(3000))
    rows = graph.w.indptr.astype(np.int64), graph.w.indices, graph.w.data
    state = aggregated(no_aggregates(3000), rows, 1 / np.sqrt(graph.degrees), 0)
    return list(coarser(coarse_graph(coarse_part(rows, state.labels, 0), state.count)))


def strongest_by_sweeps(w, numbers, inverse_roots, labels):
    """Do what `join_strongest` does, a dense row at a time."""
    labels = labels.copy()
    while (waiting := [n for n in numbers if labels[n] < 0]) and any((w[n] * (labels >= 0)).any() for n in waiting):
        before = labels.copy()
        for n in waiting:
            strengths = np.where(before >= 0, w[n] * inverse_roots, 0.0)
            if strengths.max() > 0:
                labels[n] = before[strengths.argmax()]
    return labels


@pytest.mark.parametrize("seed", range(5))
def test_points_join_the_aggregate_of_their_strongest_neighbour_and_others_follow_them(seed):
    draws = np.random.default_rng(seed)
    w = sp.random_array((40, 40), density=0.06, rng=draws).toarray()
    w = w + w.T
    w[np.arange(39), np.arange(1, 40)] = w[np.arange(1, 40), np.arange(39)] = 0.01 * draws.uniform(1, 2, 39)
    inverse_roots = 1 / np.sqrt(w.sum(axis=1))
    numbers = np.sort(draws.choice(40, 25, replace=False))
    labels = draws.integers(0, 6, 40).astype(np.int32)
    labels[numbers] = -1
    found = labels.copy()
    assert join_strongest(affinity_rows(sp.csr_matrix(w[numbers])), numbers, inverse_roots, found)
    np.testing.assert_array_equal(found, strongest_by_sweeps(w, numbers, inverse_roots, labels))
    assert (found >= 0).all()


def test_points_that_no_path_leads_to_join_nothing_and_that_is_told():
    w = sp.csr_matrix(np.array([[0, 1.0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], np.float32))
    labels = np.array([0, -1, -1, -1], np.int32)
    assert not join_strongest(affinity_rows(w[1:]), np.arange(1, 4), np.ones(4), labels)
    np.testing.assert_array_equal(labels, [0, 0, -1, -1])


def test_points_may_all_join_the_first_aggregate():
    w = sp.csr_matrix(np.ones((4, 4)) - np.eye(4))
    labels = np.array([0, -1, -1, -1], np.int32)
    assert join_strongest(affinity_rows(w[1:]), np.arange(1, 4), np.ones(4), labels)
    np.testing.assert_array_equal(labels, 0)


def test_graphs_of_other_degrees_have_the_laplacian_that_they_had(levels):
    asked = levels[0].degrees * np.random.default_rng(1).uniform(0.9, 1.6, len(levels[0].degrees))
    grown = with_degrees(levels, asked)
    assert len(grown) == len(levels) > 1
    sums = asked
    for before, after in zip(levels, grown, strict=True):
        w, now = matrix(before.rows), matrix(after.rows)
        np.testing.assert_allclose(after.degrees, sums, rtol=1e-6)
        np.testing.assert_allclose(now.sum(axis=1), after.degrees, rtol=1e-5)
        np.testing.assert_array_equal(now - np.diag(np.diag(now)), w - np.diag(np.diag(w)))
        np.testing.assert_array_equal(after.labels, before.labels)
        if len(before.labels):
            sums = np.bincount(before.labels, weights=sums)


def test_a_node_without_weight_inside_gets_some():
    star = sp.csr_matrix(np.array([[0, 1.0, 1], [1, 2, 0], [1, 0, 0]], np.float32))
    (only,) = coarser((star.indptr.astype(np.int64), star.indices, star.data))
    (grown,) = with_degrees([only], np.array([5.0, 3.0, 1.5]))
    np.testing.assert_allclose(matrix(grown.rows), [[3, 1, 1], [1, 2, 0], [1, 0, 0.5]])


def test_points_in_full_aggregates_are_counted():
    labels = np.repeat([0, 1, 2], [CROWDED, CROWDED + 1, 3]).astype(np.int32)
    assert crowded_share(labels, 4) == (CROWDED + 1) / len(labels)
