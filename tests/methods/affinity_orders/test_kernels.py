import numpy as np
import pytest

from scalemani.kernels.affinities.entropic import NO_PARENT, tile_order
from scalemani.methods.affinity_orders.kernels import spanning_path
from tests.kernels.oracles import tile


def test_random_depends_on_seed_and_tile():
    squared, _ = tile()
    drawn = {
        (seed, number): tuple(tile_order(squared, 4.0, "random", None, seed, number)[0])
        for seed in (0, 1)
        for number in (0, 1)
    }
    assert len(set(drawn.values())) == 4


def forest_of(n_rows, edges):
    """Return the edges of the minimum spanning forest by Kruskal's algorithm: ascending ones that close no circle."""
    labels, kept = list(range(n_rows)), []
    for _, one, other in sorted(edges):
        if labels[one] != labels[other]:
            kept.append({one, other})
            labels = [labels[one] if label == labels[other] else label for label in labels]
    return kept, len(set(labels))


def test_rows_start_from_the_other_end_of_an_edge_of_the_minimum_spanning_forest_or_from_an_earlier_root():
    squared, indices = tile()
    sequence, parents = tile_order(squared, 4.0, "mst", indices, seed=0, tile=0)
    inside = zip(*np.nonzero((indices >= 0) & (indices < 200)), strict=True)
    edges = [(squared[row, place], row, indices[row, place]) for row, place in inside]
    forest, n_components = forest_of(200, edges)
    used = [{row, parent} for row, parent in enumerate(parents) if {row, parent} in forest]
    assert len(used) == len(forest) == 200 - n_components
    assert sorted(sequence) == list(range(200))
    places = np.argsort(sequence)
    assert all(places[parent] < places[row] for row, parent in enumerate(parents) if parent != NO_PARENT)
    assert np.count_nonzero(parents == NO_PARENT) == 1


def test_duplicates_at_distance_zero_are_edges():
    squared = np.zeros((4, 3))
    indices = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
    sequence, parents = tile_order(squared, 2.0, "mst", indices, seed=0, tile=0)
    assert sequence[0] == 0
    assert np.array_equal(parents, [NO_PARENT, 0, 0, 0])


def test_path_takes_the_nearest_row_left_and_then_a_draw():
    indices = np.array([[1, 2], [0, 2], [0, 1], [9, -1], [3, 9]])
    assert list(spanning_path(indices, np.array([2, 4, 0, 1, 3]))) == [2, 0, 1, 4, 3]


def test_rows_are_visited_level_by_level_and_components_by_their_least_row():
    indices = np.array([[5, 9], [6, 9], [4, 9], [1, 5], [9, 9], [9, 9], [9, 9]])
    sequence, parents = tile_order(np.ones((7, 2)), 2.0, "mst", indices, seed=0, tile=0)
    assert parents.tolist() == [NO_PARENT, 3, 0, 5, 2, 0, 1]
    assert sequence.tolist() == [0, 2, 5, 4, 3, 1, 6]


@pytest.mark.parametrize("order", ["random", "path"])
def test_drawn_orders_follow_the_seed_and_the_tile(order):
    draws = np.random.default_rng(0)
    squares = np.sort(draws.random((200, 5)), axis=1)
    indices = draws.integers(-50, 250, (200, 5))
    found = {key: tuple(tile_order(squares, 3.0, order, indices, *key)[0].tolist()) for key in ((0, 0), (1, 0), (0, 1))}
    assert len(set(found.values())) == 3
    assert all(sorted(sequence) == list(range(200)) for sequence in found.values())
    assert found[0, 0] == tuple(tile_order(squares, 3.0, order, indices, 0, 0)[0].tolist())
