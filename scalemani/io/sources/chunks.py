"""Chunks of arrays of zarr and h5py: their shape, and which of them were never written.

Libraries read chunks that are missing as a fill value without a warning. In zarr, what counts is objects whose keys are
those of the grid, and in a shard the chunks that its index names.
"""

import contextlib
import math
import re
from typing import Any, NamedTuple

import numpy as np
import zarr
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.codecs import ShardingCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.common import concurrent_map
from zarr.core.sync import sync

from scalemani.errors import DataError
from scalemani.io.sources.base import as_store_errors

FILL_DECLARED = 2  # H5D_FILL_VALUE_USER_DEFINED: by the writer of a dataset
LOOK = "look whether it was copied whole, if these rows should hold anything else"
CHECKSUM_BYTES = 4  # of crc32c, behind the index of a shard
ABSENT = 2**64 - 1  # the offset and the length, in the index of a shard, of a chunk that it lacks

Place = tuple[int, ...]  # of a chunk or shard in the grid of an array


class Chunks(NamedTuple):
    """Rows of the largest chunk, rows of a stored object (a shard or chunk; None: they differ), objects by axis.

    `in_shard` are the chunks by axis in a shard; none where objects are chunks.
    """

    most_rows: int = 0
    stored_rows: int | None = None
    grid: Place = ()
    in_shard: Place = ()


def chunks_of(array: Any, description: str) -> Chunks:
    """Return the chunks of an array, of one shape or, in zarr, of several; none of an array without them."""
    try:
        read = getattr(array, "chunks", None)
    except NotImplementedError:  # of zarr, which from 3.2 on has other names for those of several shapes
        return Chunks(max(array.read_chunk_sizes[0], default=0), None, tuple(map(len, array.write_chunk_sizes)))
    if not isinstance(read, tuple) or not read or not isinstance(read[0], int):
        return Chunks()
    stored = getattr(array, "shards", None) or read
    if any(piece < 1 <= length for length, piece in zip(array.shape * 2, (*stored, *read), strict=True)):
        raise DataError(
            f"{description} of shape {array.shape} has chunks of shape {read}, which hold no value: write it again"
        )
    return Chunks(read[0], stored[0], pieces(array.shape, stored), pieces(stored, read) if stored != read else ())


def pieces(lengths: Place, piece: Place) -> Place:
    """Return how many pieces of a shape cover an array along each axis."""
    return tuple(-(-length // size) for length, size in zip(lengths, piece, strict=True))


def is_dataset(array: Any) -> bool:
    """Return whether an array is an h5py dataset, by its methods: the library need not be installed."""
    return hasattr(getattr(array, "id", None), "get_num_chunks")


def missing_chunks(array: Any, description: str) -> str:
    """Return a warning about missing chunks of an array of zarr or h5py; empty where there are none, and of others.

    zarr may leave out chunks of nothing but fill values on purpose. HDF5 writes chunks of zeros like any others: where
    no fill value was declared, those that were never written are refused. A contiguous dataset is one chunk.
    """
    in_hdf5 = is_dataset(array)
    if isinstance(array, zarr.Array):
        expected, there = chunks_in_zarr(array, description)
    elif not in_hdf5:
        return ""
    elif array.chunks:
        expected, there = math.prod(chunks_of(array, description).grid), array.id.get_num_chunks()
    else:
        expected, there = 1, int(not array.size or array.id.get_storage_size() > 0)
    fill = array.fillvalue if in_hdf5 else array.fill_value
    read_as = f"read as {0 if fill is None else fill}: {LOOK}"
    if there >= expected:
        uncounted = not in_hdf5 and has_shards_within(array)
        lacked = f"chunks that nested or encoded shards of {description} lack are not counted, and"
        return f"{lacked} {read_as}" if uncounted else ""
    what = f"{expected - there} of {expected} chunks of {description}"
    if not in_hdf5 or array.id.get_create_plist().fill_value_defined() == FILL_DECLARED:
        return f"{what} are missing and {read_as}"
    raise DataError(
        f"{what} were never written, and HDF5 reads them as {array.fillvalue!r}: the program that wrote the file did "
        "not finish; write it again, or declare a fill value where it is meant"
    )


def chunks_in_zarr(array: zarr.Array, description: str) -> tuple[int, int]:
    """Return how many chunks an array has, and how many are there: all of them where its store does not list them.

    Of arrays whose chunks differ in shape, or whose shards are encoded further, objects are counted.
    """
    _, _, grid, in_shard = chunks_of(array, description)
    objects, places = math.prod(grid), stored_places(array, grid)
    if places is None or not in_shard:
        return objects, objects if places is None else len(places)
    with as_store_errors(description, 0, array.shape[0]):
        limit = zarr.config.get("async.concurrency")
        counts = sync(concurrent_map([(array, place) for place in places], chunks_in_shard, limit))
    return math.prod(pieces(array.shape, array.chunks)), sum(counts)


def has_shards_within(array: zarr.Array) -> bool:
    """Return whether shards of an array lie in others, or are encoded further: no index of its objects lists these."""
    codecs = tuple(getattr(array.metadata, "codecs", ()))  # of format 3
    if len(codecs) == 1 and isinstance(codecs[0], ShardingCodec):
        codecs = codecs[0].codecs
    return any(isinstance(codec, ShardingCodec) for codec in codecs)


def stored_places(array: zarr.Array, grid: Place) -> list[Place] | None:
    """Return the places in the grid of all chunks or shards that are stored; None where the store lists none."""
    root, encoded = array.store_path, array.metadata.encode_chunk_key

    async def listed_places() -> list[Place]:
        below, places = f"{root.path}/" if root.path else "", []
        async for key in root.store.list_prefix(root.path):
            name = key.removeprefix(below)
            place = tuple(map(int, re.findall(r"\d+", name)))
            inside = len(place) == len(grid) and all(at < end for at, end in zip(place, grid, strict=True))
            if inside and key == below + encoded(place):
                places.append(place)
        return places

    if array.store.supports_listing:
        with contextlib.suppress(
            Exception
        ):  # servers that list nothing say so in many ways, and rows are read all the same
            return sync(listed_places())
    return None


async def chunks_in_shard(array: Any, place: Place) -> int:
    """Return how many chunks of an array are in a shard; all that belong there where its index cannot be read.

    Reading rows reports a damaged index.
    """
    (sharding,) = array.metadata.to_dict()["codecs"]
    configuration, inner = sharding["configuration"], pieces(array.shards, array.chunks)
    codecs = {codec["name"]: codec.get("configuration", {}) for codec in configuration["index_codecs"]}
    size = 2 * 8 * math.prod(inner)
    with_checksum = size + CHECKSUM_BYTES * ("crc32c" in codecs)
    at_start = configuration["index_location"] == "start"
    part = RangeByteRequest(0, with_checksum) if at_start else SuffixByteRequest(with_checksum)
    root = array.store_path / array.metadata.encode_chunk_key(place)
    content = await root.store.get(root.path, default_buffer_prototype(), byte_range=part)
    starts = (at * length for at, length in zip(place, array.shards, strict=True))
    rest = tuple(length - start for length, start in zip(array.shape, starts, strict=True))
    within = tuple(map(min, pieces(rest, array.chunks), inner))
    if content is None or len(content) != with_checksum or not codecs.keys() <= {"bytes", "crc32c"}:
        return math.prod(within)
    order = ">" if codecs["bytes"].get("endian") == "big" else "<"
    index = np.frombuffer(content.to_bytes()[:size], f"{order}u8").reshape(*inner, 2)
    return int((index != ABSENT).any(axis=-1)[tuple(map(slice, within))].sum())
