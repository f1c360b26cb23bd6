"""What the edges into a run of blocks take in memory, however scattered they come."""

import tracemalloc

import numpy as np

from scalemani.engine.needs import CACHE
from scalemani.kernels.graph.symmetric import incoming_edges, join_edges
from scalemani.stages.symmetric_affinities import incoming, sets_of_incoming

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
    planned = [*incoming(N_SOURCES * BLOCK_ROWS, K, CACHE), sets_of_incoming(N_SOURCES, N_TARGETS, CACHE)]
    assert held <= sum(one.bytes for one in planned)
    assert sum(len(join_edges(of_block).targets) for of_block in gathered) == N_SOURCES * BLOCK_ROWS * K
