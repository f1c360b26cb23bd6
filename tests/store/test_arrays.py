"""Arrays that are made from metadata alone are those that zarr makes and opens, to the byte, and cost few requests."""

import json
from collections import Counter

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec
from zarr.storage import LocalStore

from scalemani.errors import CorruptChunkError, StoreError, UnsafeStoreError
from scalemani.store.arrays import VerifiedStore, check_size, create_array, open_array, write_rows
from scalemani.store.objects import LocalObjects

FILL = {"f": float("nan"), "i": -1, "b": False}
DTYPES = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


class Counted(LocalObjects):
    """Objects that count what is asked of them."""

    def __init__(self, root):
        super().__init__(root)
        self.asked = Counter()

    def get(self, key, *most):
        self.asked["get"] += 1
        return super().get(key, *most)

    def set(self, key, content):
        self.asked["set"] += 1
        return super().set(key, content)


def store_in(folder):
    return VerifiedStore(Counted(folder), {})


def made_by_zarr(folder, path, shape, dtype, chunks, dimensions):
    """The array as zarr itself makes it."""
    dtype = np.dtype(dtype)
    fill = FILL.get(dtype.kind, np.iinfo(dtype).max if dtype.kind == "u" else 0)
    shuffle = "shuffle" if dtype.itemsize > 1 else "noshuffle"
    codec = BloscCodec(cname="lz4", clevel=5, shuffle=shuffle, typesize=dtype.itemsize)
    return zarr.create_array(
        LocalStore(folder),
        name=path,
        shape=shape,
        dtype=dtype,
        chunks=chunks,
        compressors=codec,
        fill_value=fill,
        dimension_names=dimensions,
        attributes={"meaning": "numbers"},
        config={"write_empty_chunks": True},
    )


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("path", "shape", "chunks", "dimensions"),
    [
        ("x", (7, 3), (4, 3), ("point", "axis")),
        ("block-000001/x", (5,), (5,), ("point",)),
        ("a/b/x", (), (), ()),
        ("x", (0, 3), (1, 3), None),
    ],
)
def test_every_file_is_that_of_zarr(tmp_path, dtype, path, shape, chunks, dimensions):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    attributes = {"meaning": "numbers"} | ({} if dimensions is None else {"dimensions": dimensions})
    array, _ = create_array(store_in(tmp_path / "ours"), path, shape, dtype, chunks, attributes)
    write_rows(array, values)
    made_by_zarr(tmp_path / "zarr", path, shape, dtype, chunks, dimensions)[...] = values
    assert files(tmp_path / "ours") == files(tmp_path / "zarr")
    found = zarr.open_array(tmp_path / "ours", path=path, mode="r", zarr_format=3)
    np.testing.assert_array_equal(found[...], values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "chunks"), [((7, 3), (4, 3)), ((4096,), (1024,)), ((5,), (8,)), ((6, 2, 3), (2, 2, 3))]
)
def test_every_chunk_that_is_written_by_itself_is_that_of_zarr(tmp_path, dtype, shape, chunks):
    values = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    array, _ = create_array(store_in(tmp_path / "ours"), "x", shape, dtype, chunks, {"meaning": "numbers"})
    for number, start in enumerate(range(0, shape[0], chunks[0])):
        write_rows(array, values[start : start + chunks[0]], number)
    made_by_zarr(tmp_path / "zarr", "x", shape, dtype, chunks, None)[...] = values
    assert files(tmp_path / "ours") == files(tmp_path / "zarr")


def test_what_is_opened_is_what_was_made(tmp_path):
    store = store_in(tmp_path)
    made, entry = create_array(store, "x", (7, 3), "float32", (4, 3), {"dimensions": ("point", "axis")})
    store.expected |= entry | write_rows(made, np.arange(21, dtype=np.float32).reshape(7, 3))
    found = open_array(store, "x")
    assert json.dumps(found.metadata.to_dict()) == json.dumps(made.metadata.to_dict())
    np.testing.assert_array_equal(found[...], made[...])


def test_chunks_of_fill_values_are_written(tmp_path):
    store = store_in(tmp_path)
    array, _ = create_array(store, "x", (8,), "int32", (4,), {})
    assert {"x/c/0", "x/c/1"} == set(write_rows(array, np.full(8, -1, np.int32)))


def test_an_array_is_made_anew_in_the_place_of_one_that_is_there(tmp_path):
    store = store_in(tmp_path)
    create_array(store, "x", (8,), "int32", (4,), {})
    create_array(store, "x", (6, 2), "float64", (3, 2), {})
    assert json.loads((tmp_path / "x" / "zarr.json").read_text())["shape"] == [6, 2]


def test_an_array_costs_one_write_and_a_folder_above_it_a_look_and_a_write_once(tmp_path):
    store = store_in(tmp_path)
    for number in range(10):
        create_array(store, f"part/x{number}", (4,), "int32", (4,), {})
    assert store.objects.asked == {"set": 10 + 2, "get": 2}
    other = store_in(tmp_path)  # of another process
    create_array(other, "part/y", (4,), "int32", (4,), {})
    assert other.objects.asked == {"set": 1, "get": 2}
    open_array(other, "part/y")
    assert other.objects.asked == {"set": 1, "get": 3}


def test_what_is_no_array_is_an_error(tmp_path):
    store = store_in(tmp_path)
    with pytest.raises(StoreError, match="no array 'x'"):
        open_array(store, "x")
    create_array(store, "part/x", (4,), "int32", (4,), {})
    with pytest.raises(CorruptChunkError, match="node"):
        open_array(store, "part")
    create_array(store, "cut", (4, 4), "int32", (4, 2), {})
    with pytest.raises(UnsafeStoreError, match="chunks of whole rows"):
        open_array(store, "cut")


def test_an_array_that_says_it_has_more_than_was_committed_is_refused(tmp_path):
    array, entry = create_array(store_in(tmp_path), "x", (12, 2), "float32", (4, 2), {})
    values = np.random.default_rng(0).random((12, 2), np.float32)
    check_size(array, entry | write_rows(array, values))
    with pytest.raises(CorruptChunkError, match="more than was written"):
        check_size(array, entry | write_rows(array, values[:8]))
    large, entry = create_array(store_in(tmp_path), "y", (10**6,), "float64", (10**6,), {})
    with pytest.raises(CorruptChunkError, match="more than was written"):
        check_size(large, entry | {"y/c/0": (20_000, "", "")})
