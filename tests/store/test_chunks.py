"""Chunks decoded into place give what zarr reads of the same array, and nothing that was not committed."""

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.errors import CorruptChunkError, MissingChunkError
from scalemani.store.arrays import VerifiedStore, create_array, has_whole_rows, open_array, read_chunks
from scalemani.store.places import open_objects

DTYPES = ("uint8", "bool", "int32", "float32", "float64", "int64")


def stored(folder, values, rows):
    """Return a store with an array of such values in chunks of so many rows, all of it committed, and the array."""
    written = VerifiedStore(open_objects(folder), {}, {})
    array = create_array(written, "a", values.shape, values.dtype, (rows, *values.shape[1:]), {})
    for start in range(0, len(values), rows):
        array[start : start + rows] = values[start : start + rows]
    store = VerifiedStore(open_objects(folder), written.written, {})
    return store, open_array(store, "a")


@settings(max_examples=30, deadline=None)
@given(
    n_rows=st.integers(1, 25),
    columns=st.sampled_from([(), (1,), (3,), (2, 3)]),
    rows=st.integers(1, 12),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 99),
)
def test_every_chunk_is_what_zarr_reads(tmp_path_factory, n_rows, columns, rows, dtype, seed):
    values = np.random.default_rng(seed).integers(0, 2, (n_rows, *columns)).astype(dtype)
    store, array = stored(tmp_path_factory.mktemp("store"), values, rows)
    for number in range(-(-n_rows // rows)):
        found = read_chunks(store, "a", array, number * rows, min((number + 1) * rows, n_rows))
        assert np.array_equal(found, values[number * rows : (number + 1) * rows])
        assert found.dtype == values.dtype
        assert found.flags.writeable


@settings(max_examples=30, deadline=None)
@given(data=st.data(), n_rows=st.integers(1, 25), columns=st.sampled_from([(), (3,)]), rows=st.integers(1, 12))
def test_rows_of_several_chunks_are_what_zarr_reads(tmp_path_factory, data, n_rows, columns, rows):
    start = data.draw(st.integers(0, n_rows - 1))
    stop = data.draw(st.integers(start + 1, n_rows))
    values = np.random.default_rng(n_rows).normal(size=(n_rows, *columns))
    store, array = stored(tmp_path_factory.mktemp("store"), values, rows)
    found = read_chunks(store, "a", array, start, stop)
    np.testing.assert_array_equal(found, array[start:stop])
    np.testing.assert_array_equal(found, values[start:stop])
    assert found.flags.writeable


def test_columns_that_are_cut_and_numbers_have_no_whole_rows():
    for shape, chunks in (((10, 2), (10, 1)), ((), ()), ((0, 2), (1, 2))):
        assert not has_whole_rows(zarr.create_array({}, shape=shape, chunks=chunks, dtype="f4"))
    assert has_whole_rows(zarr.create_array({}, shape=(10,), chunks=(4,), dtype="f4"))


def test_what_was_not_committed_or_is_changed_is_not_read(tmp_path):
    store, array = stored(tmp_path, np.arange(12.0).reshape(6, 2), 4)
    with pytest.raises(MissingChunkError, match="never committed"):
        read_chunks(store, "a", array, 8, 12)
    chunk = tmp_path / "a" / "c" / "1" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    with pytest.raises(CorruptChunkError):
        read_chunks(store, "a", array, 4, 6)
    with pytest.raises(CorruptChunkError):
        read_chunks(store, "a", array, 1, 6)
    np.testing.assert_array_equal(read_chunks(store, "a", array, 1, 4), np.arange(12.0).reshape(6, 2)[1:4])
    chunk.unlink()
    with pytest.raises(MissingChunkError, match="is gone"):
        read_chunks(store, "a", array, 1, 6)


@pytest.mark.parametrize("content", [b"", b"\x02\x01\x13\x08", bytes(40), b"\x02\x01\x13\x08" + b"\x40\0\0\0" * 20])
def test_what_is_committed_but_decodes_to_something_else_is_damaged(tmp_path, content):
    store, array = stored(tmp_path, np.arange(8.0).reshape(4, 2), 4)
    store.write("a/c/0/0", content)
    store.expected.update(store.written)
    with pytest.raises(CorruptChunkError, match="was damaged after it was written"):
        read_chunks(store, "a", array, 0, 4)
