"""What the edges into a run of blocks take in memory, however scattered they come."""

import tracemalloc

import numpy as np

from scalemani.config.params import Parameters
from scalemani.engine.sizes import Sizes
from scalemani.engine.task import Dimensions
from scalemani.kernels.graph.symmetric import incoming_edges, join_edges
from scalemani.stages.symmetric_affinities import incoming

N_SOURCES, N_TARGETS, BLOCK_ROWS, K = 2000, 20, 8, 5


def test_edges_that_come_scattered_take_no_more_than_is_planned_for_them():
    draws, gathered = np.random.default_rng(0), [[] for _ in range(N_TARGETS)]
    values = np.ones((BLOCK_ROWS, K), np.float32)
    incoming_edges(np.zeros((BLOCK_ROWS, K), np.int32), values, 0, BLOCK_ROWS, range(N_TARGETS))  # loads its kernels
    tracemalloc.start()
    try:
        for source in range(N_SOURCES):
            indices = draws.integers(0, N_TARGETS * BLOCK_ROWS, (BLOCK_ROWS, K), dtype=np.int32)
            found = incoming_edges(indices, values, BLOCK_ROWS * source, BLOCK_ROWS, range(N_TARGETS))
            for of_block, edges in zip(gathered, found, strict=True):
                of_block.append(edges)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    rows = BLOCK_ROWS * N_SOURCES // N_TARGETS  # a block of the plan has as many edges as end in one here
    params = Parameters().with_values({"neighbors": {"n_neighbors": K}}).resolved("laplacian-eigenmaps")
    planned = incoming(Sizes(Dimensions(N_SOURCES * rows, 3, "float32", rows), params), N_TARGETS)
    assert held <= planned
    assert sum(len(join_edges(of_block).targets) for of_block in gathered) == N_SOURCES * BLOCK_ROWS * K
