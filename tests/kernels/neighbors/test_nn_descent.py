import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.arrays.grouping import compact_rows, group_by
from scalemani.kernels.neighbors.cell_index import train_cells
from scalemani.kernels.neighbors.cell_scan import search_cells
from scalemani.kernels.neighbors.cells import nearest_cells
from scalemani.kernels.neighbors.nn_descent import NeighborLists, propose_neighbors
from scalemani.kernels.neighbors.rerank import no_neighbors, refine_neighbors
from scalemani.kernels.rows.comparisons import COMPARISONS
from scalemani.kernels.rows.reduced import COORDINATES, ComparedTable
from scalemani.kernels.rows.sketches import fit_sketch, sketch_points


def random_graph(n_points, k, seed):
    generator = np.random.default_rng(seed)
    indices = np.array([generator.choice(np.delete(np.arange(n_points), i), k, replace=False) for i in range(n_points)])
    return NeighborLists(indices.astype(np.int32), generator.random((n_points, k)) < 0.5)


@pytest.mark.parametrize(
    ("dtype", "n_dims", "limit"), [("float32", 16, 30.0), ("int8", 16, 30e3), ("int8", 256, 480e3)]
)
def test_proposals_are_the_best_unseen_neighbours_of_neighbours(dtype, n_dims, limit):
    n_points, k, n_candidates = 400, 8, 12
    sketches = np.random.default_rng(0).normal(size=(n_points, n_dims)).astype(np.float32)
    if dtype == "int8":
        sketches = (sketches * 31).clip(-127, 127).astype(np.int8)
    graph = random_graph(n_points, k, 1)
    limits = np.full(n_points, limit, dtype=np.float32)
    start, stop = 100, 300
    own = NeighborLists(graph.indices[start:stop], graph.fresh[start:stop])
    got = propose_neighbors(
        ComparedTable(COORDINATES, sketches), start, own.indices, own, graph, limits[start:stop], n_candidates
    )
    squares = cdist(sketches.astype(float), sketches.astype(float)) ** 2
    for i in range(start, stop):
        pairs = [
            (graph.indices[j, m], graph.fresh[i, n] or graph.fresh[j, m])
            for n, j in enumerate(graph.indices[i])
            for m in range(k)
        ]
        seen = {i, *graph.indices[i]}
        expected = sorted({row for row, fresh in pairs if fresh and row not in seen}, key=lambda row: squares[i, row])
        expected = [row for row in expected if squares[i, row] < limits[i]]
        found = got[i - start][got[i - start] >= 0]
        assert len(found) >= min(0.8 * n_candidates, len(expected))
        np.testing.assert_array_equal(np.sort(found), np.sort(expected[: len(found)]))


def test_proposals_of_rows_that_a_function_compares_are_ranked_by_it():
    points, graph = np.random.default_rng(4).normal(size=(300, 9)), random_graph(300, 7, 5)
    graph = graph._replace(fresh=np.ones_like(graph.fresh))
    distance, limits = COMPARISONS["manhattan"].distance, np.full(300, np.inf, dtype=np.float32)
    found = propose_neighbors(ComparedTable(distance, points), 0, graph.indices, graph, graph, limits, 10)
    away = cdist(points, points, "cityblock")
    for i, row in enumerate(found):
        candidates = sorted({*graph.indices[graph.indices[i]].ravel()} - {i, *graph.indices[i]}, key=away[i].item)
        assert len(row[row >= 0]) >= 8
        assert {*row[row >= 0]} == {*candidates[: len(row[row >= 0])]}


def test_proposals_through_gathered_lists_are_the_same():
    sketches = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    graph = random_graph(300, 6, 2)
    limits = np.full(50, np.inf, dtype=np.float32)
    own = NeighborLists(graph.indices[:50], graph.fresh[:50])
    whole = propose_neighbors(ComparedTable(COORDINATES, sketches), 0, own.indices, own, graph, limits, 10)
    rows, places = compact_rows(own.indices)
    gathered, visited = NeighborLists(graph.indices[rows], graph.fresh[rows]), NeighborLists(places, own.fresh)
    np.testing.assert_array_equal(
        propose_neighbors(ComparedTable(COORDINATES, sketches), 0, own.indices, visited, gathered, limits, 10), whole
    )


def test_known_neighbours_that_are_not_visited_are_no_candidates():
    sketches = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    graph, limits = random_graph(300, 12, 2), np.full(300, np.inf, dtype=np.float32)
    heads = NeighborLists(np.ascontiguousarray(graph.indices[:, :4]), np.ones((300, 4), bool))
    found = propose_neighbors(ComparedTable(COORDINATES, sketches), 0, graph.indices, heads, heads, limits, 40)
    assert (found >= 0).any(axis=1).mean() > 0.9
    for row, candidates in enumerate(found):
        assert not {*candidates[candidates >= 0]} & {row, *graph.indices[row]}


def test_the_whole_search_reaches_its_recall():
    generator = np.random.default_rng(0)
    points = (
        (generator.normal(size=(6000, 8)) @ generator.normal(size=(8, 60)) * 20 + 128).clip(0, 255).astype(np.uint8)
    )
    basis = fit_sketch(points, 16)
    sketches = sketch_points(points, basis)
    centroids = train_cells(sketches, 30, np.random.default_rng(1))
    probes = nearest_cells(sketches, centroids, 6)
    order, offsets = group_by(probes[:, 0], len(centroids))
    points, sketches, probes = points[order], sketches[order], probes[order]
    candidates = search_cells(sketches, offsets, probes, 0, 25)
    labels = np.arange(6000)
    neighbors, fresh = refine_neighbors(COORDINATES, points, points, labels, candidates, no_neighbors(6000, 10))
    squares = cdist(points[:500].astype(float), points.astype(float))
    squares[np.arange(500), np.arange(500)] = np.inf
    reached = np.sort(squares, axis=1)[:, 9:10]
    recalls = [np.mean(neighbors.distances[:500] <= reached)]
    for _ in range(2):
        graph = NeighborLists(neighbors.indices, fresh)
        limits = ((neighbors.distances[:, -1] / basis.scale) ** 2).astype(np.float32)
        proposals = propose_neighbors(ComparedTable(COORDINATES, sketches), 0, graph.indices, graph, graph, limits, 20)
        neighbors, fresh = refine_neighbors(COORDINATES, points, points, labels, proposals, neighbors)
        recalls.append(np.mean(neighbors.distances[:500] <= reached))
    assert recalls[0] < recalls[1] <= recalls[2]
    assert recalls[2] > 0.97
    assert neighbors.indices.min() >= 0
    assert not np.any(neighbors.indices == labels[:, None])
    assert all(len(set(row)) == 10 for row in neighbors.indices)
    assert np.all(np.diff(neighbors.distances, axis=1) >= 0)
