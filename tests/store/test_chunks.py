"""Chunks decoded into place give what zarr reads of the same array, and nothing that was not committed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalemani.errors import CorruptChunkError, MissingChunkError
from scalemani.store.arrays import VerifiedStore, create_array, open_array, read_rows, write_rows
from scalemani.store.places import open_objects

DTYPES = ("uint8", "bool", "int32", "float32", "float64", "int64")


def stored(folder, values, rows):
    """Return a store with an array of such values in chunks of so many rows, all of it committed, and the array."""
    written = VerifiedStore(open_objects(folder), {})
    array, entry = create_array(written, "a", values.shape, values.dtype, (rows, *values.shape[1:]), {})
    store = VerifiedStore(open_objects(folder), entry | write_rows(array, values))
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
    _, array = stored(tmp_path_factory.mktemp("store"), values, rows)
    for number in range(-(-n_rows // rows)):
        found = read_rows(array, number * rows, min((number + 1) * rows, n_rows))
        assert np.array_equal(found, values[number * rows : (number + 1) * rows])
        assert found.dtype == values.dtype
        assert found.flags.writeable


@settings(max_examples=30, deadline=None)
@given(data=st.data(), n_rows=st.integers(1, 25), columns=st.sampled_from([(), (3,)]), rows=st.integers(1, 12))
def test_rows_of_several_chunks_are_what_zarr_reads(tmp_path_factory, data, n_rows, columns, rows):
    start = data.draw(st.integers(0, n_rows - 1))
    stop = data.draw(st.integers(start + 1, n_rows))
    values = np.random.default_rng(n_rows).normal(size=(n_rows, *columns))
    _, array = stored(tmp_path_factory.mktemp("store"), values, rows)
    found = read_rows(array, start, stop)
    np.testing.assert_array_equal(found, array[start:stop])
    np.testing.assert_array_equal(found, values[start:stop])
    assert found.flags.writeable


@pytest.mark.parametrize("values", [np.array(2.5), np.zeros((0, 3)), np.zeros((2, 0)), np.array(True)])
def test_numbers_and_arrays_without_values_are_what_zarr_reads(tmp_path, values):
    chunks = tuple(max(length, 1) for length in values.shape)
    store = VerifiedStore(open_objects(tmp_path), {})
    array, entry = create_array(store, "a", values.shape, values.dtype, chunks, {})
    store.expected |= entry | write_rows(array, values)
    found = read_rows(open_array(store, "a"))
    for expected in (values, np.asarray(array[...])):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(found, expected)


def test_a_number_that_was_not_committed_is_not_read(tmp_path):
    array, _ = create_array(VerifiedStore(open_objects(tmp_path), {}), "a", (), "float64", (), {})
    with pytest.raises(MissingChunkError, match="never committed"):
        read_rows(array)


def test_what_was_not_committed_or_is_changed_is_not_read(tmp_path):
    store, array = stored(tmp_path, np.arange(12.0).reshape(6, 2), 4)
    committed = store.expected.pop("a/c/1/0")
    with pytest.raises(MissingChunkError, match="never committed"):
        read_rows(array, 3, 6)
    store.expected["a/c/1/0"] = committed
    chunk = tmp_path / "a" / "c" / "1" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    with pytest.raises(CorruptChunkError):
        read_rows(array, 4, 6)
    with pytest.raises(CorruptChunkError):
        read_rows(array, 1, 6)
    np.testing.assert_array_equal(read_rows(array, 1, 4), np.arange(12.0).reshape(6, 2)[1:4])
    chunk.unlink()
    with pytest.raises(MissingChunkError, match="is gone"):
        read_rows(array, 1, 6)


@pytest.mark.parametrize("content", [b"", b"\x02\x01\x13\x08", bytes(40), b"\x02\x01\x13\x08" + b"\x40\0\0\0" * 20])
def test_what_is_committed_but_decodes_to_something_else_is_damaged(tmp_path, content):
    store, array = stored(tmp_path, np.arange(8.0).reshape(4, 2), 4)
    store.expected |= store.write("a/c/0/0", content)
    with pytest.raises(CorruptChunkError, match="was damaged after it was written"):
        read_rows(array, 0, 4)
