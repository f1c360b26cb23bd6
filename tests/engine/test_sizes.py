"""How large W and the coarse graphs become, beside graphs that are made."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from scalemani.config.params import Parameters
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.kernels.neighbors.exact import SketchedRows, nearest_among
from scalemani.kernels.neighbors.rerank import no_neighbors
from scalemani.kernels.spectral.coarsening import aggregated, coarse_graph, coarse_part, coarser, no_aggregates
from scalemani.stages.table import STAGES

STEPS = ("parts", "first graph", "next graph")


def sizes_of(n_points, n_features, n_neighbors, counted=None, graphs=None):
    params = Parameters().with_values({"neighbors": {"n_neighbors": n_neighbors}}).resolved("laplacian-eigenmaps")
    return Sizes(Dimensions(n_points, n_features, "float32", 1024), params, counted, counted_graphs=graphs)


def symmetric(indices, decay=0.0):
    """Return W of a neighbour graph (N, k) whose edges weigh the same, or less from the nearest to the farthest."""
    n_points, k = indices.shape
    values = np.tile(np.arange(1.0, k + 1) ** -decay, n_points)
    edges = sp.csr_matrix((values, indices.ravel(), np.arange(0, indices.size + 1, k)), (n_points,) * 2)
    found = sp.csr_matrix(edges + edges.T)
    found.sort_indices()
    return found


def nearest(points, n_neighbors):
    rows = SketchedRows(points, points.astype(np.float32), 1.0)
    labels, limits = np.arange(len(points)), np.full(len(points), np.inf)
    return nearest_among(rows, labels, rows, 0, no_neighbors(len(points), n_neighbors), limits).indices


@given(st.integers(4, 60), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_no_neighbour_graph_has_more_nonzeros_than_is_said_for_the_disk(n_points, n_neighbors, seed):
    rng = np.random.default_rng(seed)
    indices = np.stack([rng.choice(np.delete(np.arange(n_points), i), n_neighbors, False) for i in range(n_points)])
    found = symmetric(indices)
    n_bridges = sp.csgraph.connected_components(found)[0] - 1
    assert found.nnz + 2 * n_bridges <= sizes_of(n_points, 3, n_neighbors).most_nonzeros


@pytest.mark.parametrize("n_features", [1, 2, 3, 5, 10])
def test_points_of_few_features_have_fewer_nonzeros_than_expected_but_not_by_half(n_features):
    points = np.random.default_rng(n_features).standard_t(2, size=(3000, n_features))
    found, expected = symmetric(nearest(points, 20)).nnz, sizes_of(3000, n_features, 20).nonzeros
    assert found <= 1.03 * expected
    assert expected <= 1.5 * found


def test_what_was_counted_is_taken_for_what_was_expected():
    counted = sizes_of(5000, 784, 15, counted=90_000)
    assert counted.nonzeros == 90_000
    assert counted.block_nonzeros == pytest.approx(90_000 * 1024 / 5000, abs=1)
    assert counted.one_way_share == pytest.approx(90_000 / 75_000 - 1)
    assert counted.coarse_nonzeros < sizes_of(5000, 784, 15).coarse_nonzeros


def test_graphs_that_were_counted_are_taken_for_those_expected():
    counted = sizes_of(5000, 784, 15, 90_000, ((2000, 40_000), (600, 9000)))
    assert (counted.coarse_nonzeros, counted.coarse_nodes, counted.first_coarse_nodes) == (49_000, 2600, 2000)


@pytest.mark.parametrize("structured", [True, False])
def test_what_sums_of_rows_take_is_projected_and_not_by_half_too_much(structured):
    """Of points in the order of their cells, as W is; the sums are counted, the memory is their bytes."""
    rng = np.random.default_rng(0)
    points = np.sin(rng.random((6000, 2)) @ rng.normal(size=(2, 30))) if structured else rng.normal(size=(6000, 50))
    points = points[np.lexsort(np.round(2 * points[:, :2]).T)]
    found = symmetric(nearest(points, 15), decay=1.0)
    rows = found.indptr.astype(np.int64), found.indices.astype(np.int32), found.data.astype(np.float32)
    aggregates = aggregated(no_aggregates(6000), rows, 1 / np.sqrt(found.sum(axis=1).A1), 0)
    parts = coarse_part(rows, aggregates.labels, 0)
    sums, first = len(parts.indices), coarse_graph(parts, aggregates.count)
    following = len(list(itertools.islice(coarser(first), 2))[1].rows[1])
    held = STAGES["coarse_graphs"].memory(sizes_of(6000, 50, 15, found.nnz))
    projected = {step: sum(held.steps[step].points.values()) for step in STEPS}
    taken = {"parts": 2 * 12 * sums, "first graph": 12 * sums + 2 * 8 * len(first[1]) + 8 * 6000 + 16 * 3000}
    taken["next graph"] = 8 * len(first[1]) + max(2 * 12 * following, 12 * following + 2 * 8 * following)
    assert all(taken[step] <= projected[step] for step in STEPS)
    assert max(projected.values()) <= 1.5 * max(taken.values())


@pytest.mark.parametrize(("n_features", "structured"), [(2, True), (10, True), (10, False), (40, False)])
def test_coarse_graphs_have_no_more_nodes_and_nonzeros_than_expected_of_the_w_that_was_counted(n_features, structured):
    rng = np.random.default_rng(n_features)
    points = rng.normal(size=(6000, n_features))
    if structured:  # a surface of two dimensions
        points = np.sin(rng.random((6000, 2)) @ rng.normal(size=(2, n_features)))
    found = symmetric(nearest(points, 15))
    rows = found.indptr.astype(np.int64), found.indices.astype(np.int32), found.data.astype(np.float32)
    inverse_roots = 1 / np.sqrt(found.sum(axis=1).A1)
    aggregates = aggregated(no_aggregates(6000), rows, inverse_roots, 0)
    first = coarse_graph(coarse_part(rows, aggregates.labels, 0), aggregates.count)
    levels = list(coarser(first))
    expected = sizes_of(6000, n_features, 15, found.nnz)
    n_nonzeros = sum(len(level.rows[1]) for level in levels)
    assert n_nonzeros <= expected.coarse_nonzeros <= 3 * n_nonzeros
    assert len(levels[0].degrees) <= expected.first_coarse_nodes
    assert sum(len(level.degrees) for level in levels) <= expected.coarse_nodes
