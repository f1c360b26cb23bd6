import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from scalemani.kernels.affinities.entropic import NO_PARENT, tile_order
from scalemani.methods.affinity_orders.kernels import breadth_first, kruskal_edges, spanning_path


def tile(n_rows=200, k=8, seed=0):
    """Neighbours of random points in the plane; every second index points outside of the tile."""
    points = np.random.default_rng(seed).normal(size=(n_rows, 2))
    squared = np.square(points[:, None] - points[None]).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    indices = np.argsort(squared, axis=1)[:, :k]
    nearest = np.take_along_axis(squared, indices, axis=1)
    indices[:, 1::2] += np.where(np.arange(n_rows) % 2, n_rows, -n_rows)[:, None]
    return nearest, indices


def test_random_depends_on_seed_and_tile():
    squared, _ = tile()
    drawn = {
        (seed, number): tuple(tile_order(squared, 4.0, "random", None, seed, number)[0])
        for seed in (0, 1)
        for number in (0, 1)
    }
    assert len(set(drawn.values())) == 4


def test_forest_is_as_short_as_the_minimum_spanning_forest_of_scipy():
    squared, indices = tile()
    _, parents = tile_order(squared, 4.0, "mst", indices, seed=0, tile=0)
    inside = (indices >= 0) & (indices < 200)
    heads = np.repeat(np.arange(200), 8)[inside.ravel()]
    graph = coo_array((squared[inside], (heads, indices[inside])), shape=(200, 200)).tocsr()
    graph = graph.maximum(graph.T)
    lengths = graph.toarray()
    along = lengths[parents[parents >= 0], np.flatnonzero(parents >= 0)]
    assert along.sum() == pytest.approx(minimum_spanning_tree(graph).sum())
    assert np.sum(along == 0.0) == connected_components(graph)[0] - 1


def test_duplicates_at_distance_zero_are_edges():
    squared = np.zeros((4, 3))
    indices = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
    sequence, parents = tile_order(squared, 2.0, "mst", indices, seed=0, tile=0)
    assert sequence[0] == 0
    assert np.array_equal(parents, [NO_PARENT, 0, 0, 0])


def test_path_takes_the_nearest_row_left_and_then_a_draw():
    indices = np.array([[1, 2], [0, 2], [0, 1], [9, -1], [3, 9]])
    assert list(spanning_path(indices, np.array([2, 4, 0, 1, 3]))) == [2, 0, 1, 4, 3]


def test_kruskal_takes_the_shortest_edges_that_close_no_circle():
    heads, tails = np.array([0, 1, 0, 3, 2, 4]), np.array([1, 2, 2, 4, 3, 0])
    np.testing.assert_array_equal(kruskal_edges(heads, tails, 6), [[0, 1], [1, 2], [3, 4], [2, 3]])


def test_breadth_first_visits_level_by_level_and_components_by_their_least_row():
    tree = np.array([[3, 1], [3, 5], [5, 0], [1, 6], [4, 2]])
    sequence, parents = breadth_first(tree, 7)
    assert sequence.tolist() == [0, 5, 3, 1, 6, 2, 4]
    assert parents.tolist() == [NO_PARENT, 3, 6, 5, 2, 0, 1]


def test_neighbors_are_visited_in_the_order_of_their_edges():
    sequence, _ = breadth_first(np.array([[0, 3], [2, 0], [0, 1]]), 4)
    assert sequence.tolist() == [0, 3, 2, 1]


@pytest.mark.parametrize("order", ["random", "path"])
def test_drawn_orders_follow_the_seed_and_the_tile(order):
    draws = np.random.default_rng(0)
    squares = np.sort(draws.random((200, 5)), axis=1)
    indices = draws.integers(-50, 250, (200, 5))
    found = {key: tuple(tile_order(squares, 3.0, order, indices, *key)[0].tolist()) for key in ((0, 0), (1, 0), (0, 1))}
    assert len(set(found.values())) == 3
    assert all(sorted(sequence) == list(range(200)) for sequence in found.values())
    assert found[0, 0] == tuple(tile_order(squares, 3.0, order, indices, 0, 0)[0].tolist())
