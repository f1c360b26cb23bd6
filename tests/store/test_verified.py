"""What zarr reads of a group is what was committed there, or an error that says what to do; never a fill value."""

import asyncio

import numpy as np
import pytest
import zarr
from zarr.core.buffer import default_buffer_prototype

from scalemani.errors import CorruptChunkError, MissingChunkError
from scalemani.store.arrays import VerifiedStore, create_array, is_chunk, open_array, write_rows
from scalemani.store.objects import LocalObjects, digest
from scalemani.store.schema import ArrayDescription

ROWS, CHUNK = 40, 16
VALUES = ArrayDescription("demo", "values", "rows", ("point",), "uint8", "1", "demo")


@pytest.fixture
def store(tmp_path):
    """A store with an array `x` of three chunks, all of them committed."""
    made = VerifiedStore(LocalObjects(tmp_path), {})
    array, entry = create_array(made, "x", (ROWS, 2), np.float32, (CHUNK, 2), {"dimensions": ("row", "column")})
    made.expected |= entry | write_rows(array, np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2))
    return made


def read(store, path="x"):
    return zarr.open_array(store, path=path, mode="r", zarr_format=3)[...]


def got(store, key):
    return asyncio.run(store.get(key, default_buffer_prototype()))


def test_what_was_committed_is_read(store):
    np.testing.assert_array_equal(read(store), np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2))


def test_lengths_and_digests_of_what_is_written_wait_for_the_commit(tmp_path):
    store = VerifiedStore(LocalObjects(tmp_path), {})
    array, entry = create_array(store, "y", (ROWS,), np.int32, (CHUNK,), {})
    entry |= write_rows(array, np.arange(ROWS, dtype=np.int32))
    assert store.expected == {}
    assert {f"y/c/{chunk}" for chunk in range(3)} | {"y/zarr.json"} == set(entry)
    for key, (length, found, _) in entry.items():
        content = (tmp_path / key).read_bytes()
        assert (length, found) == (len(content), digest(content))


def test_a_chunk_that_nobody_committed_is_no_fill_value(store):
    del store.expected["x/c/1/0"]
    with pytest.raises(MissingChunkError, match=r"x/c/1/0 was never committed: run the stage that writes it"):
        read(store)


def test_a_chunk_that_is_gone_is_no_fill_value(store, tmp_path):
    (tmp_path / "x" / "c" / "2" / "0").unlink()
    with pytest.raises(MissingChunkError, match=r"x/c/2/0 is gone: run the same command again"):
        read(store)


@pytest.mark.parametrize("change", [lambda c: c + b"\0", lambda c: c[:-1], lambda c: bytes([c[0] ^ 1]) + c[1:]])
@pytest.mark.parametrize("key", ["x/c/0/0", "x/zarr.json"])
def test_an_object_that_is_not_what_was_committed_is_refused(store, tmp_path, key, change):
    path = tmp_path / key
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(CorruptChunkError, match=rf"{key} holds \d+ bytes(, at most| with digest \w+, committed were)"):
        got(store, key)


def test_metadata_that_is_not_there_is_none_and_not_an_error(store):
    assert got(store, "z/zarr.json") is None
    assert not asyncio.run(store.exists("z/zarr.json"))
    assert asyncio.run(store.exists("x/zarr.json"))


def test_what_is_written_again_is_expected_once_it_is_committed(store):
    """Until then a reader is told of the difference: what was committed is what counts."""
    entry = write_rows(open_array(store, "x"), np.full((CHUNK, 2), 7, np.float32))
    with pytest.raises(CorruptChunkError):
        read(store)
    store.expected |= entry
    assert (read(store)[:CHUNK] == 7).all()


def test_zarr_writes_and_removes_nothing(store):
    before = dict(store.expected)
    with pytest.raises(ValueError, match="read-only"):
        open_array(store, "x")[:CHUNK] = 7
    with pytest.raises(ValueError, match="read-only"):
        asyncio.run(store.delete("x/c/0/0"))
    assert store.objects.damaged(before, 1) == set()


def test_only_what_was_committed_is_listed(store):
    async def listed(prefix):
        return [key async for key in store.list_prefix(prefix)]

    assert asyncio.run(listed("x/c/")) == ["x/c/0/0", "x/c/1/0", "x/c/2/0"]
    assert asyncio.run(listed("y")) == []


@pytest.mark.parametrize(
    ("key", "chunk"), [("x/c/0", True), ("block-000001/x/c/0/0", True), ("x/c", True), ("x/zarr.json", False)]
)
def test_chunks_are_told_from_metadata_by_their_key(key, chunk):
    assert is_chunk(key) is chunk


def test_an_object_far_longer_than_what_was_committed_is_refused_unread(store, tmp_path):
    with (tmp_path / "x" / "c" / "1" / "0").open("r+b") as file:
        file.truncate(2**43)  # no memory holds it
    with pytest.raises(CorruptChunkError, match=rf"x/c/1/0 holds {2**43} bytes, at most \d+ are written there"):
        read(store)
    assert store.objects.damaged(store.expected, 1) == {"x/c/1/0"}


@pytest.mark.parametrize("name", ["plan.json", "complete.json"])
def test_a_description_of_any_length_is_refused_unread(tmp_path, name):
    (tmp_path / name).touch()
    with (tmp_path / name).open("r+b") as file:
        file.truncate(2**43)
    objects = LocalObjects(tmp_path)
    assert objects.intact(name) is None
    with pytest.raises(CorruptChunkError, match=rf"{name} holds {2**43} bytes, at most 16777216 are written there"):
        objects.get_json(name)
