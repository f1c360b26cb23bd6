"""Zarr in a bucket: all that zarr asks of its store is answered, and never by a thread that is not Python's."""

import asyncio

import numpy as np
import pytest
import zarr
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype

from scalemani.errors import StoreError
from scalemani.io.sources.stores import UrlStore

VALUES = np.arange(600, dtype=np.float32).reshape(100, 6)


@pytest.fixture(autouse=True)
def no_asynchronous_requests(monkeypatch):
    """Obstore answers these from threads of its own, which abort an interpreter that ends meanwhile."""
    obstore = pytest.importorskip("obstore")

    def refused(*_, **__):
        raise AssertionError("an asynchronous request")

    for name in [name for name in dir(obstore) if name.endswith("_async")]:
        monkeypatch.setattr(obstore, name, refused)


@pytest.fixture
def store(bucket):
    return UrlStore(f"{bucket}/points.zarr", read_only=False)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_groups_are_written_listed_overwritten_and_read(store, zarr_format):
    for values in (VALUES[::-1], VALUES):
        group = zarr.create_group(store, overwrite=True, zarr_format=zarr_format)
        for name in ("one", "other"):
            group.create_array(name, shape=values.shape, chunks=(30, 6), dtype="f4")[:] = values
    found = zarr.open_group(UrlStore(store.location), mode="r")
    assert sorted(found) == ["one", "other"]
    np.testing.assert_array_equal(found["other"][25:95], VALUES[25:95])
    with pytest.raises(ValueError, match="read-only"):
        found["one"][:] = 0


def test_parts_of_shards_are_read(store):
    zarr.create_array(store, shape=VALUES.shape, chunks=(10, 6), shards=(50, 6), dtype="f4")[:] = VALUES
    np.testing.assert_array_equal(zarr.open_array(UrlStore(store.location), mode="r")[43:58], VALUES[43:58])


def test_objects_and_parts_of_them_are_given_counted_and_removed(store):
    kind = default_buffer_prototype()

    async def ask():
        await store.set("a/b", kind.buffer.from_bytes(b"0123456789"))
        await store.set_if_not_exists("a/b", kind.buffer.from_bytes(b"other"))
        await store.set_if_not_exists("c", kind.buffer.from_bytes(b"c"))
        with pytest.raises(ValueError, match="read-only"):
            await UrlStore(store.location).set_if_not_exists("a/b", kind.buffer.from_bytes(b"other"))
        parts = [None, RangeByteRequest(2, 5), OffsetByteRequest(7), SuffixByteRequest(2)]
        found = await store.get_partial_values(kind, [("a/b", part) for part in parts])
        assert [part.to_bytes() for part in found] == [b"0123456789", b"234", b"789", b"89"]
        assert await store.get("a/nothing", kind) is None
        assert [await store.exists(key) for key in ("a/b", "a", "nothing")] == [True, False, False]
        assert (await store.getsize("a/b"), await store.getsize_prefix("")) == (10, 11)
        with pytest.raises(FileNotFoundError):
            await store.getsize("nothing")
        assert sorted([name async for name in store.list_dir("")]) == ["a", "c"]
        assert [name async for name in store.list_dir("a/")] == ["b"]
        assert sorted([path async for path in store.list()]) == ["a/b", "c"]
        await store.delete("c")
        await store.delete("c")
        await store.delete_dir("a")
        await store.delete_dir("a")
        assert [path async for path in store.list()] == []

    asyncio.run(ask())


def test_a_bucket_that_is_not_there_is_said(bucket):
    with pytest.raises(StoreError, match="NoSuchBucket"):
        zarr.create_array(UrlStore("s3://no-such-bucket-of-ours/points.zarr", False), shape=(2, 2), dtype="f4")
