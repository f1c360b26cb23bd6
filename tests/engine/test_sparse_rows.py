import numpy as np
import pytest
from scipy import sparse

from scalemani.engine.memory.process import PROCESS
from scalemani.engine.reading import SparseRowsReader, table_of
from scalemani.stages.arrays.points import FEATURES, StoredPoints
from scalemani.store.groups import StageGroup

N, BLOCK_ROWS = 2500, 1024


@pytest.fixture(scope="module", params=[300, 70_000])
def rows(request):
    rng = np.random.default_rng(1)
    numbers, columns = rng.integers(0, N, 20_000), rng.integers(0, request.param, 20_000)
    filled = (numbers < 1030) | (numbers >= 1040)  # some rows are empty
    values = rng.random(filled.sum(), np.float32)
    return sparse.csr_matrix((values, (numbers[filled], columns[filled])), shape=(N, request.param))


@pytest.fixture(scope="module")
def reader(rows, tmp_path_factory):
    group = StageGroup(tmp_path_factory.mktemp("store"), "stages/points/key", BLOCK_ROWS)
    group.write_whole(StoredPoints.SPARSE.features(rows.shape[1]), FEATURES)
    for block in range(3):
        part = rows[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS]
        group.write_block(block, StoredPoints.SPARSE.parts(part))
    found = StoredPoints(group).points
    assert isinstance(found, SparseRowsReader)
    return found


def assert_same(found, expected):
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.data, expected.data)


def test_blocks_and_all_rows_are_those_that_were_written(reader, rows):
    assert reader.blocks == range(3)
    assert_same(reader.read_block(2), rows[2048:])
    assert_same(reader.read(), rows)


@pytest.mark.parametrize("cache_bytes", [0, 2**24])
def test_rows_are_gathered_in_any_order(reader, rows, cache_bytes):
    numbers = np.random.default_rng(0).permutation(N)[:700]
    assert_same(reader.gather(numbers, cache_bytes), rows[numbers])
    assert_same(reader.gather(numbers, cache_bytes), rows[numbers])  # of blocks that are kept
    assert_same(reader.gather(numbers[:0]), rows[numbers[:0]])
    assert reader.count(numbers) == rows[numbers].nnz
    PROCESS.free()


@pytest.mark.parametrize("mapped", [False, True])
def test_a_table_gives_slices_and_ascending_rows(reader, rows, tmp_path, mapped):
    table = table_of(reader, tmp_path if mapped else None)
    assert len(table) == N
    numbers = np.sort(np.random.default_rng(1).permutation(N)[:900])
    assert_same(table[numbers], rows[numbers])
    assert_same(table[numbers[:0]], rows[numbers[:0]])
    assert_same(table[1000:1100], rows[1000:1100])
