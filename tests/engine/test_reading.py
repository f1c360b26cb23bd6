"""Stored arrays in memory are what is stored, read no more often than has to be."""

import gc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalemani.engine.memory.files import MappedArrays, RowsInFile
from scalemani.engine.memory.process import PROCESS
from scalemani.engine.reading import ArrayReader, SketchesOfRows
from scalemani.errors import CorruptChunkError
from scalemani.kernels.rows.sketches import fit_sketch, sketch_points
from scalemani.store.groups import StageGroup
from scalemani.store.schema import ArrayDescription

N_ROWS, BLOCK_ROWS = 5000, 1024
VALUES = ArrayDescription("some", "values", "rows", ("point", "column"), "float32", "1", "some values")


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(0).normal(size=(N_ROWS, 3)).astype(np.float32)


@pytest.fixture
def group(tmp_path_factory, values, monkeypatch):
    made = StageGroup(tmp_path_factory.mktemp("run"), "stages/some/key", BLOCK_ROWS)
    made.create(N_ROWS, [VALUES.sized(3)])
    for block in range(-(-N_ROWS // BLOCK_ROWS)):
        made.write_block(block, {VALUES: values[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS]})
    made.refresh()
    yield made
    PROCESS.free()


@pytest.fixture
def reads(group, spy):
    """The blocks that were read, in order."""
    return spy(group, "read_block", lambda name, block: block)


def test_a_whole_array_is_read_once_and_cannot_be_written_to(group, values):
    found = ArrayReader(group, "values").read_once()
    np.testing.assert_array_equal(found, values)
    assert ArrayReader(group, "values").read_once() is found
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 0


def test_an_array_in_a_file_is_never_taken_for_one_in_memory(group, values):
    read, filed = ArrayReader(group, "values").read_once(), ArrayReader(group, "values").keep_in_file()
    assert isinstance(read, np.ndarray)
    assert isinstance(filed, RowsInFile)
    assert ArrayReader(group, "values").keep_in_file() is filed
    np.testing.assert_array_equal(filed[:], values)


UNCHECKED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def test_a_large_array_lies_where_it_was_asked_to(group, values, tmp_path):
    np.testing.assert_array_equal(ArrayReader(group, "values").read(np.empty), values)
    found = ArrayReader(group, "values").read(MappedArrays(tmp_path).empty)
    np.testing.assert_array_equal(found, values)
    del found
    gc.collect()


@given(st.lists(st.integers(0, N_ROWS - 1), min_size=1, max_size=300), st.booleans())
@settings(deadline=None, max_examples=25, suppress_health_check=UNCHECKED)
def test_gathered_rows_are_the_rows_asked_for_in_their_order(group, values, rows, ascending):
    rows = np.array(sorted(rows) if ascending else rows)
    np.testing.assert_array_equal(ArrayReader(group, "values").gather(rows, 0), values[rows])


def test_gathering_reads_each_block_once_and_a_cache_spares_the_next_call(group, values, reads):
    rows = np.random.default_rng(1).permutation(N_ROWS)
    gathered = np.empty_like(values)
    ArrayReader(group, "values").gather_into(gathered, rows, values.nbytes)
    np.testing.assert_array_equal(gathered, values[rows])
    assert sorted(reads) == list(range(5))
    ArrayReader(group, "values").gather(rows, values.nbytes)
    assert len(reads) == 5
    ArrayReader(group, "values").gather(rows, 0)


@pytest.mark.parametrize("row", [-1, N_ROWS])
def test_a_row_that_is_none_is_refused_before_it_is_looked_up(group, row):
    with pytest.raises(CorruptChunkError, match=f"row {row} of {N_ROWS} is requested"):
        ArrayReader(group, "values").gather(np.array([3, row]), 0)


def test_a_cache_of_one_block_drops_the_block_used_least_recently(group, values, reads):
    block_bytes = values[:BLOCK_ROWS].nbytes
    for row in (0, 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2):
        np.testing.assert_array_equal(ArrayReader(group, "values").gather(np.array([row]), block_bytes)[0], values[row])
    assert reads == [0, 1, 0]


def test_sketches_that_are_made_when_looked_up_are_those_of_all_rows_to_the_bit():
    points = np.random.default_rng(3).integers(-128, 128, (5000, 40)).astype(np.int8)
    basis = fit_sketch(points, 32)
    expected, made = sketch_points(points, basis), SketchesOfRows(lambda rows: points[rows], 5000, basis, 2048)
    assert (len(made), made.shape) == (5000, (5000, 32))
    np.testing.assert_array_equal(made.read(), expected)
    np.testing.assert_array_equal(np.concatenate([made.read_block(block) for block in range(3)]), expected)
    for rows in (slice(0, 1), slice(1000, 1100), slice(3, 4999), slice(4096, 5000), slice(7, 7)):
        np.testing.assert_array_equal(made[rows], expected[rows])
    rows = np.array([4999, 0, 2047, 2048, 0, 3000])
    np.testing.assert_array_equal(made[rows], expected[rows])
    assert made[rows[:0]].shape == (0, 32)
