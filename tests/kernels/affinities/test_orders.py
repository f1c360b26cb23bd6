import numpy as np
import pytest

from scalemani.kernels.affinities.entropic import (
    NO_PARENT,
    ORDERS,
    in_sequence,
    oracle_sequence,
    tile_order,
)
from tests.kernels.oracles import tile


@pytest.mark.parametrize("order", [order for order in ORDERS if order != "oracle"])
def test_a_sequence_visits_every_row_once_and_parents_first(order):
    squared, indices = tile()
    sequence, parents = tile_order(squared, 4.0, order, indices, seed=0, tile=3)
    assert np.array_equal(np.sort(sequence), np.arange(200))
    position = np.argsort(sequence)
    started = parents != NO_PARENT
    assert np.all(position[parents[started]] < position[started])
    assert started.sum() == (0 if order == "bounds" else 199)


def test_density_follows_the_kth_neighbor():
    squared, _ = tile()
    sequence, parents = tile_order(squared, 4.0, "density", None, seed=0, tile=0)
    kth = squared[sequence, 3]
    assert np.all(np.diff(kth) >= -1e-12 * kth[1:])
    assert parents[sequence[10]] == sequence[9]


def test_density_breaks_ties_by_row():
    sequence, _ = tile_order(np.ones((1024, 3), dtype=np.float32), 2.0, "density", None, seed=0, tile=0)
    assert np.array_equal(sequence, np.arange(1024))


def test_rows_in_sequence_start_from_the_one_before():
    sequence, parents = in_sequence(np.array([2, 0, 1]))
    assert sequence.tolist() == [2, 0, 1]
    assert parents.tolist() == [2, 0, NO_PARENT]


def test_the_oracle_sorts_by_beta_times_the_difference_of_its_column():
    squared = np.array([[1.0, 2.0, 5.0], [0.0, 4.0, 8.0], [2.0, 3.0, 4.0]])
    assert oracle_sequence(squared, np.array([3.0, 1.0, 5.0]), 2).tolist() == [1, 2, 0]
