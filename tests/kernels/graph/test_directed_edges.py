import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.kernels.graph.symmetric import (
    incoming_edges,
    loop_edges,
)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 12), st.integers(0, 25), st.data())
def test_incoming_edges_are_those_that_end_in_each_block_asked_for(seed, block_rows, source_start, data):
    rng = np.random.default_rng(seed)
    n_blocks = -(-40 // block_rows)
    blocks = data.draw(st.lists(st.integers(0, n_blocks - 1), min_size=1, unique=True))
    indices = rng.integers(0, 40, (15, 6)).astype(np.int32)
    values = rng.random((15, 6)).astype(np.float32) * (rng.random((15, 6)) < 0.7)
    indices[values == 0] = rng.choice([-1, 3])
    for block, found in zip(blocks, incoming_edges(indices, values, source_start, block_rows, blocks), strict=True):
        rows, columns = np.nonzero((values > 0) & (indices // block_rows == block))
        np.testing.assert_array_equal(found.targets, indices[rows, columns])
        np.testing.assert_array_equal(found.sources, rows + source_start)
        np.testing.assert_array_equal(found.values, values[rows, columns])
        assert all(array.base is None for array in found)


def test_loops_are_edges_of_rows_to_themselves():
    found = loop_edges(np.array([0.5, 0.0, 2.0], np.float32), 10)
    np.testing.assert_array_equal(found.targets, [10, 12])
    np.testing.assert_array_equal(found.sources, found.targets)
    np.testing.assert_array_equal(found.values, np.array([0.5, 2.0], np.float32))
