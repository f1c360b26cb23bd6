"""Decoded blocks: each is read once while it is kept, no more are kept than a limit, and none is another's."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

from scalemani.engine.memory.process import BlockCache, bytes_of
from scalemani.stages.arrays.points import StoredPoints
from scalemani.store.groups import StageGroup

BLOCK_ROWS, N_BLOCKS = 1024, 4
BLOCK_BYTES = BLOCK_ROWS * 2 * 4


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """A group of four blocks, each of which holds its number."""
    made = StageGroup(tmp_path_factory.mktemp("blocks"), "stages/points/key", BLOCK_ROWS)
    made.create(BLOCK_ROWS * N_BLOCKS, [StoredPoints.dense_points.sized(2, dtype="float32")])
    for block in range(N_BLOCKS):
        made.write_block(block, {StoredPoints.dense_points: np.full((BLOCK_ROWS, 2), block, np.float32)})
    return made


class Loaded:
    """Returns blocks of a size, and counts how often each is asked for."""

    def __init__(self, n_bytes):
        self.n_bytes, self.asked = n_bytes, []

    def __call__(self, block):
        self.asked.append(block)
        return np.full(self.n_bytes, block, np.uint8)


def test_a_block_is_what_is_stored_and_the_same_object_while_it_is_kept(group):
    cache = BlockCache()
    first = cache.read(group, "points", 2, 2 * BLOCK_BYTES)
    np.testing.assert_array_equal(first, np.full((BLOCK_ROWS, 2), 2, np.float32))
    assert cache.read(group, "points", 2, 2 * BLOCK_BYTES) is first


def test_blocks_used_last_are_kept_and_no_more_than_the_limit(group):
    cache, load = BlockCache(), Loaded(100)
    for block in (0, 1, 2, 0, 3):  # 0 was used again when 3 comes, so that 1 goes
        cache.read(group, "x", block, 300, load)
    assert load.asked == [0, 1, 2, 3]
    for block in (3, 0, 2):
        cache.read(group, "x", block, 300, load)
    assert load.asked == [0, 1, 2, 3]
    cache.read(group, "x", 1, 300, load)
    assert load.asked == [0, 1, 2, 3, 1]
    assert cache._bytes == sum(map(bytes_of, cache._blocks.values())) <= 300


def test_a_block_larger_than_the_limit_is_given_and_displaces_nothing(group):
    cache, small, large = BlockCache(), Loaded(100), Loaded(301)
    cache.read(group, "small", 0, 300, small)
    for _ in range(2):
        assert len(cache.read(group, "large", 0, 300, large)) == 301
    cache.read(group, "small", 0, 300, small)
    assert (small.asked, large.asked) == ([0], [0, 0])


def test_a_lower_limit_drops_what_is_above_it(group):
    cache, load = BlockCache(), Loaded(100)
    for block in range(5):
        cache.read(group, "x", block, 500, load)
    cache.read(group, "x", 9, 200, load)
    assert [key[-1] for key in cache._blocks] == [4, 9]


def test_arrays_and_runs_have_blocks_of_their_own(group, tmp_path):
    cache = BlockCache()
    other = StageGroup(tmp_path, "stages/points/key", BLOCK_ROWS)
    blocks = [cache.read(one, name, 0, 10**6, Loaded(100)) for one in (group, other) for name in ("a", "b")]
    assert len(set(map(id, blocks))) == 4


def test_what_is_cleared_is_read_anew(group):
    cache, load = BlockCache(), Loaded(100)
    cache.read(group, "x", 0, 300, load)
    cache.clear()
    cache.read(group, "x", 0, 300, load)
    assert load.asked == [0, 0]
    assert cache._bytes == 100


def test_sparse_rows_count_all_of_their_arrays():
    rows = sp.random(50, 20, density=0.2, format="csr", random_state=0)
    assert bytes_of(rows) == rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes


def test_threads_that_read_the_same_blocks_leave_the_count_of_bytes_right(group):
    cache, start = BlockCache(), threading.Barrier(8)

    def read_all(seed):
        start.wait()
        for block in np.random.default_rng(seed).integers(0, 12, 300):
            assert cache.read(group, "x", int(block), 1000, Loaded(100))[0] == block

    threads = [threading.Thread(target=read_all, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache._bytes == 100 * len(cache._blocks) <= 1000
