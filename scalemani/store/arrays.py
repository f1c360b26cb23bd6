"""Arrays of a group as zarr v3 describes them: made and opened from their metadata, and read and written by chunks.

Their store knows the digest of everything committed: zarr reads a lost chunk as its fill value, silently. zarr itself
asks a store what is there before it makes or opens an array, several times an array and for every folder above it: more
than all else that small runs write. It codes a chunk by way of its event loop and copies it there, which takes longer
than the coding. Most reads and writes are of one chunk, that of a block, the largest of an array.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import zarr
from numcodecs import blosc
from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import StorePath

from scalemani.errors import CorruptChunkError, MissingChunkError
from scalemani.store.objects import Committed, Objects, damaged_object, digest, side_by_side
from scalemani.store.schema import CODEC, CODEC_LEVEL

Digests = dict[str, Committed]  # by key below the arrays of a group
METADATA = "zarr.json"
BLOSC_SIZE = slice(4, 8)  # where blosc writes how many bytes it decodes to
FOLDER = {"attributes": {}, "zarr_format": 3, "node_type": "group"}


class VerifiedStore(Store):
    """A zarr store over objects that records what it writes and refuses to read anything but what was committed.

    `expected` holds the digests of committed objects and grows as blocks are committed; `written` holds those of
    objects that were written and not committed yet.
    """

    supports_writes = True
    supports_deletes = True
    supports_listing = True
    supports_partial_writes = False

    def __init__(self, objects: Objects, expected: Digests, written: Digests) -> None:
        super().__init__()
        self.objects = objects
        self._folders: set[str] = set()  # metadata of these are there
        self.expected = expected
        self.written = written
        self._is_open = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VerifiedStore) and self.objects is other.objects

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return str(self.objects.root)

    def with_read_only(self, read_only: bool = False) -> "VerifiedStore":
        """Return the same store, for reading only if requested."""
        store = VerifiedStore(self.objects, self.expected, self.written)
        store._read_only = read_only
        return store

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return the object under `key` if it is what was committed there."""
        content = await asyncio.to_thread(self.read, key)
        return None if content is None else prototype.buffer.from_bytes(content)

    async def set(self, key: str, value: Buffer, *arguments: Any) -> None:
        """Write `value` under `key` and remember its digest for the commit."""
        await asyncio.to_thread(self.write, key, value.to_bytes())

    async def delete(self, key: str) -> None:
        """Remove `key` if it is there."""
        await asyncio.to_thread(self.objects.delete, key)

    async def exists(self, key: str) -> bool:
        """Return whether there is an object under `key`."""
        return await asyncio.to_thread(self.objects.get, key) is not None

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return several objects; parts of one cannot be checked and are not given."""
        return [await self.get(key, prototype) for key, _ in key_ranges]

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names directly below `prefix`."""
        for name in await asyncio.to_thread(self.objects.names, prefix.strip("/")):
            yield name

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield the committed keys that start with `prefix`."""
        for key in sorted(self.expected):
            if key.startswith(prefix):
                yield key

    async def list(self) -> AsyncIterator[str]:
        """Yield all committed keys."""
        async for key in self.list_prefix(""):
            yield key

    # The same without zarr's event loop. What takes a thread above takes it once an object: the way there and back
    # costs more than small objects do.

    def read(self, key: str) -> bytes | None:
        """Return the content of `key` if it is what was committed; None for metadata that is not there."""
        expected, where = self.expected.get(key), f"{self.objects.root}/{key}"
        if expected is None and is_chunk(key):
            raise MissingChunkError(f"{where} was never committed: run the stage that writes it")
        if expected is None:
            return self.objects.get(key)
        content = self.objects.get(key, expected[0])
        if content is None:
            raise MissingChunkError(f"{where} is gone: run the same command again to compute it anew")
        length, content_digest = len(content), digest(content)
        if (length, content_digest) != expected[:2]:
            raise CorruptChunkError(
                f"{where} holds {length} bytes with digest {content_digest}, committed were {expected[0]} bytes with "
                f"digest {expected[1]}: run the same command again to compute it anew"
            )
        return content

    def write(self, key: str, content: bytes) -> None:
        """Write a content and remember its digest for the commit."""
        tag = self.objects.set(key, content)
        self.written[key] = (len(content), digest(content), tag)

    def write_if_new(self, key: str, content: bytes) -> None:
        """Write what stays as it is from then on, and belongs to no commit, where it is not there."""
        if key not in self._folders and self.objects.get(key) is None:
            self.objects.set(key, content)
        self._folders.add(key)


def is_chunk(key: str) -> bool:
    """Return whether `key` names a chunk of an array, not its metadata."""
    return "/c/" in key


def create_array(
    store: VerifiedStore,
    path: str,
    shape: tuple[int, ...],
    dtype: Any,
    chunks: tuple[int, ...],
    attributes: Mapping[str, Any],
) -> zarr.Array:
    """Create or replace an array whose empty chunks are written like any other; its `attributes` hold "dimensions"."""
    kind, further = np.dtype(dtype), dict(attributes)
    wide = kind.itemsize > 1
    # lz4 decodes at memory speed, and wider types gain from a byte shuffle.
    blosc_codec = {"cname": CODEC, "clevel": CODEC_LEVEL, "shuffle": "shuffle" if wide else "noshuffle", "blocksize": 0}
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": kind.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value(kind),
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}} if wide else {"name": "bytes"},
            {"name": "blosc", "configuration": {**blosc_codec, "typesize": kind.itemsize}},
        ],
        "dimension_names": further.pop("dimensions", None) or None,  # a number has none, and says nothing of them
        "attributes": further,
    }
    array = opened(store, path, metadata)
    store.write(f"{path}/{METADATA}", encoded(array.metadata.to_dict()))
    for folder in PurePosixPath(path).parents:
        store.write_if_new(str(folder / METADATA), encoded(FOLDER))
    return array


def open_array(store: VerifiedStore, path: str) -> zarr.Array:
    """Return the array at a path; FileNotFoundError where there is none, any error of zarr for metadata of none."""
    content = store.read(f"{path}/{METADATA}")
    if content is None:
        raise FileNotFoundError(path)
    return opened(store, path, json.loads(content))


def has_whole_rows(array: zarr.Array) -> bool:
    """Return whether an array is cut along its rows alone."""
    return bool(array.ndim) and array.chunks[1:] == array.shape[1:] and array.size > 0


def read_chunks(store: VerifiedStore, path: str, array: zarr.Array, start: int, stop: int) -> np.ndarray:
    """Return rows [start, stop), at least one, as a new array: chunks are decoded in parallel and into place."""
    rows, length = np.empty((stop - start, *array.shape[1:]), array.dtype), array.chunks[0]

    def place(number: int) -> None:
        first = number * length - start  # its place among the requested rows
        if first >= 0 and first + length <= len(rows):
            decode_chunk(store, path, array, number, rows[first : first + length])
            return
        chunk = np.empty(array.chunks, array.dtype)
        decode_chunk(store, path, array, number, chunk)
        inside = chunk[max(-first, 0) : len(rows) - first]
        rows[max(first, 0) : max(first, 0) + len(inside)] = inside

    side_by_side(place, range(start // length, -(-stop // length)))
    return rows


def decode_chunk(store: VerifiedStore, path: str, array: zarr.Array, number: int, out: np.ndarray) -> None:
    """Decode a chunk into `out`, contiguous, of the shape and dtype of a chunk."""
    key = chunk_key(path, array, number)
    content = store.read(key)
    if content is None or int.from_bytes(content[BLOSC_SIZE], "little") != out.nbytes:
        raise damaged_object(f"{store}/{key}", f"it does not decode to the {out.nbytes} bytes of its shape")
    try:
        blosc.decompress(content, out)
    except (RuntimeError, ValueError) as error:
        raise damaged_object(f"{store}/{key}", str(error)) from error


def write_chunk(store: VerifiedStore, path: str, array: zarr.Array, number: int, rows: np.ndarray) -> None:
    """Write a chunk of rows of the dtype of the array, with the bytes that zarr would write."""
    chunk = np.ascontiguousarray(rows)
    if len(rows) < array.chunks[0]:
        chunk = np.full(array.chunks, array.fill_value, array.dtype)
        chunk[: len(rows)] = rows
    store.write(chunk_key(path, array, number), compressed(chunk))


def compressed(chunk: np.ndarray) -> bytes:
    """Return a contiguous chunk as it is stored."""
    shuffle = blosc.SHUFFLE if chunk.itemsize > 1 else blosc.NOSHUFFLE
    return bytes(blosc.compress(chunk, CODEC.encode(), CODEC_LEVEL, shuffle))


def encoded_bytes(values: np.ndarray) -> int:
    """Return the bytes that values take in a chunk of their own."""
    return len(compressed(np.ascontiguousarray(values)))


def chunk_key(path: str, array: zarr.Array, number: int) -> str:
    """Return the key of a chunk of an array that is cut along its rows alone."""
    return f"{path}/c/{number}" + "/0" * (array.ndim - 1)


def opened(store: VerifiedStore, path: str, metadata: dict[str, Any]) -> zarr.Array:
    """Return the array that metadata describe."""
    return zarr.Array.from_dict(StorePath(store, path), metadata).with_config({"write_empty_chunks": True})


def encoded(metadata: Mapping[str, Any]) -> bytes:
    """Return metadata as they are stored."""
    return json.dumps(metadata, indent=2).encode()


def fill_value(dtype: np.dtype) -> str | int | bool:
    """Return what an unwritten entry reads as, where anything reads it: NaN, -1 or the largest unsigned value."""
    if dtype.kind == "f":
        return "NaN"
    return -1 if dtype.kind == "i" else int(np.iinfo(dtype).max) if dtype.kind == "u" else False
