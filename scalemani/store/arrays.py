"""Arrays of a group as zarr v3 describes them: made and opened from their metadata, and read and written by chunks.

Their store knows the digest of everything committed: zarr reads a lost chunk as its fill value, silently. zarr itself
asks a store what is there before it makes or opens an array, several times an array and for every folder above it: more
than all else that small runs write. It codes a chunk by way of its event loop and copies it there, which takes longer
than the coding. So zarr describes arrays, and reads them for whoever indexes one; chunks are written here alone.
"""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import zarr
from numcodecs import blosc
from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.registry import get_buffer_class, get_codec_class, get_ndbuffer_class, get_pipeline_class
from zarr.storage import StorePath

from scalemani.errors import ConfigError, CorruptChunkError, MissingChunkError, StoreError, UnsafeStoreError
from scalemani.kernels.arrays.workspace import Empty
from scalemani.store.objects import Committed, Objects, damaged_object, digest, side_by_side
from scalemani.store.schema import CODEC, CODEC_LEVEL

Digests = dict[str, Committed]  # by key below the arrays of a group
METADATA = "zarr.json"
BLOSC_SIZE = slice(4, 8)  # where blosc writes how many bytes it decodes to
CODECS = {"bytes", "blosc"}
MOST_EXPANSION = 300  # of a chunk when it is decoded: a byte of lz4 stands for at most 255
FOLDER = {"attributes": {}, "zarr_format": 3, "node_type": "group"}


class VerifiedStore(Store):
    """Objects as a zarr store, for reading: it gives nothing but what was committed, by the digests in `expected`."""

    supports_writes = False
    supports_deletes = False
    supports_partial_writes = False
    supports_listing = True

    def __init__(self, objects: Objects, expected: Digests) -> None:
        super().__init__(read_only=True)
        self.objects, self.expected = objects, expected
        self._folders: set[str] = set()  # metadata of these are there
        self._is_open = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VerifiedStore) and self.objects is other.objects

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return str(self.objects.root)

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return the object under `key` if it is what was committed there."""
        content = await asyncio.to_thread(self.read, key)
        return None if content is None else prototype.buffer.from_bytes(content)

    async def set(self, key: str, value: Buffer) -> None:
        """Refuse to write: ValueError."""
        self._check_writable()

    async def delete(self, key: str) -> None:
        """Refuse to remove anything: ValueError."""
        self._check_writable()

    async def exists(self, key: str) -> bool:
        """Return whether there is an object under `key`, committed or not; its digest is not compared."""
        return await asyncio.to_thread(self.objects.get, key) is not None

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return several objects; parts of one cannot be checked and are not returned."""
        return [await self.get(key, prototype) for key, _ in key_ranges]

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names of objects and folders directly below `prefix`, committed or not."""
        for name in await asyncio.to_thread(self.objects.names, prefix.strip("/")):
            yield name

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield the committed keys that start with `prefix`, sorted."""
        for key in sorted(self.expected):
            if key.startswith(prefix):
                yield key

    async def list(self) -> AsyncIterator[str]:
        """Yield all committed keys, sorted."""
        async for key in self.list_prefix(""):
            yield key

    # Without zarr's event loop. What takes a thread above takes it once an object: the way there and back costs more
    # than small objects do.

    def read(self, key: str) -> bytes | None:
        """Return the content of `key` if it is what was committed; None for metadata that is not there."""
        expected, where = self.expected.get(key), f"{self}/{key}"
        if expected is None and is_chunk(key):
            raise MissingChunkError(f"{where} was never committed: run the stage that writes it")
        if expected is None:
            return self.objects.get(key)
        content = self.objects.get_committed(key, expected)
        if content is None:
            raise MissingChunkError(f"{where} is gone: run the same command again to compute it anew")
        length, content_digest = len(content), digest(content)
        if (length, content_digest) != expected[:2]:
            raise CorruptChunkError(
                f"{where} holds {length} bytes with digest {content_digest}, committed were {expected[0]} bytes with "
                f"digest {expected[1]}: run the same command again to compute it anew"
            )
        return content

    def write(self, key: str, content: bytes) -> Digests:
        """Write a content under `key`; return its length, digest and tag by the key, as a manifest entry holds them."""
        tag = self.objects.set(key, content)
        return {key: (len(content), digest(content), tag)}

    def write_folder(self, key: str) -> None:
        """Write the metadata of a folder, which stay as they are and belong to no commit, where they are not there."""
        if key not in self._folders and self.objects.get(key) is None:
            self.objects.set(key, encoded(FOLDER))
        self._folders.add(key)


def is_count(value: Any) -> bool:
    """Return whether a setting of zarr is an int of at least 1."""
    return isinstance(value, int) and value >= 1


COUNT = "a whole number from 1 on"
SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {  # which zarr looks at in the middle of its work
    "async.concurrency": (is_count, COUNT),
    "async.timeout": (
        lambda value: value is None or (isinstance(value, int | float) and value > 0),
        "seconds above zero, or None",
    ),
    "threading.max_workers": (lambda value: value is None or is_count(value), f"{COUNT}, or None"),
    "codec_pipeline.batch_size": (is_count, COUNT),
    "array.order": (lambda value: value in ("C", "F"), "C or F"),
    "array.write_empty_chunks": (lambda value: isinstance(value, bool), "True or False"),
}


def is_chunk(key: str) -> bool:
    """Return whether `key` names a chunk of an array, not its metadata."""
    return "/c/" in f"{key}/"


def check_settings() -> None:
    """Refuse settings of zarr, which are in the environment and in its files, by which it reads and writes nothing."""
    for name, (is_allowed, allowed) in SETTINGS.items():
        value = zarr.config.get(name, ...)  # versions differ in what they have
        if value is not ... and not is_allowed(value):
            variable = f"ZARR_{name.upper().replace('.', '__')}"
            raise setting_refused(f"{name}, {variable} in the environment, must be {allowed}, got {value!r}.")
    try:
        get_pipeline_class(), get_buffer_class(), get_ndbuffer_class()
        for name in CODECS:
            get_codec_class(name)
    except Exception as error:  # of several kinds, which differ by version
        raise setting_refused(" ".join(str(error).split())) from error


def setting_refused(what: str) -> ConfigError:
    """Return the error of a setting of zarr; `what` is a whole sentence that names it and says what is wrong."""
    return ConfigError(
        f"zarr cannot be used as it is set up: {what} Correct or remove the setting, a variable ZARR_... of the "
        "environment or a file in ~/.config/zarr"
    )


def create_array(
    store: VerifiedStore,
    path: str,
    shape: tuple[int, ...],
    dtype: Any,
    chunks: tuple[int, ...],
    attributes: Mapping[str, Any],
) -> tuple[zarr.Array, Digests]:
    """Create or replace an array, and return it with what commits its metadata; `attributes` hold "dimensions"."""
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
    array = zarr.Array.from_dict(StorePath(store, path), metadata)
    entry = store.write(f"{path}/{METADATA}", encoded(array.metadata.to_dict()))
    for folder in PurePosixPath(path).parents:
        store.write_folder(str(folder / METADATA))
    return array, entry


def open_array(store: VerifiedStore, path: str) -> zarr.Array:
    """Return the array at a path.

    Raises StoreError where there is none, UnsafeStoreError and CorruptChunkError for metadata of no array of a run.
    """
    content, where = store.read(f"{path}/{METADATA}"), f"{store}/{path}/{METADATA}"
    if content is None:
        raise StoreError(f"no array {path!r} in {store}: it has none of this name")
    try:
        array: zarr.Array = zarr.Array.from_dict(StorePath(store, path), json.loads(content))
        codecs = {codec.to_dict()["name"] for codec in getattr(array.metadata, "codecs", ())}
    except Exception as error:  # those of zarr are of many kinds, and all mean the same here
        raise damaged_object(where, str(error)) from error
    if codecs != CODECS or (array.size and array.chunks[1:] != array.shape[1:]):
        raise UnsafeStoreError(
            f"{where} asks for codecs {sorted(codecs)} and chunks {array.chunks} of {array.shape}, arrays of a run "
            f"have {sorted(CODECS)} and chunks of whole rows: it is no run of this library, or was changed; run the "
            "same command in another folder"
        )
    return array


def check_size(array: zarr.Array, committed: Digests) -> None:
    """Refuse a finished array that says it is larger than its committed chunks can be."""
    lengths = [length for key, (length, *_) in committed.items() if key.startswith(f"{array.path}/c")]
    chunk_bytes = math.prod(array.chunks) * array.dtype.itemsize
    too_many = math.prod(array.cdata_shape) > len(lengths)
    if array.size and (too_many or chunk_bytes > MOST_EXPANSION * max(lengths, default=0)):
        raise damaged_object(
            f"{array.store}/{array.path}/{METADATA}",
            f"shape {array.shape} in chunks {array.chunks} is more than was written",
        )


def read_rows(array: zarr.Array, start: int = 0, stop: int | None = None, empty: Empty = np.empty) -> np.ndarray:
    """Return rows [start, stop), by default all, in an array of `empty`: chunks are decoded in parallel and into it."""
    if array.ndim == 0:
        return decode_chunk(array, 0, np.empty((), array.dtype))
    stop = array.shape[0] if stop is None else min(stop, array.shape[0])
    rows, length = empty((max(stop - start, 0), *array.shape[1:]), array.dtype), array.chunks[0]

    def place(number: int) -> None:
        first = number * length - start  # its place among the requested rows
        inside = rows[max(first, 0) : first + length]
        if len(inside) == length:
            decode_chunk(array, number, inside)
        else:
            chunk = decode_chunk(array, number, np.empty(array.chunks, array.dtype))
            inside[...] = chunk[max(-first, 0) :][: len(inside)]

    side_by_side(place, range(start // length, -(-stop // length)) if rows.size else ())
    return rows


def decode_chunk(array: zarr.Array, number: int, out: np.ndarray) -> np.ndarray:
    """Decode a chunk into `out`, contiguous, of the shape and dtype of a chunk, and return that."""
    store: Any = array.store
    key = chunk_key(array, number)
    content = store.read(key)
    if int.from_bytes(content[BLOSC_SIZE], "little") != out.nbytes:
        raise damaged_object(f"{store}/{key}", f"it does not decode to the {out.nbytes} bytes of its shape")
    try:
        blosc.decompress(content, out)
    except (RuntimeError, ValueError) as error:
        raise damaged_object(f"{store}/{key}", str(error)) from error
    return out


def write_rows(array: zarr.Array, values: np.ndarray, first: int = 0) -> Digests:
    """Write values of the dtype of the array from chunk `first` on, as zarr would, and return what commits them."""
    store: Any = array.store
    entry: Digests = {}
    rows, chunks = np.atleast_1d(values), array.chunks or (1,)
    for start in range(0, len(rows) if rows.size else 0, chunks[0]):
        chunk = rows[start : start + chunks[0]]
        if len(chunk) < chunks[0]:
            chunk = np.full(chunks, array.fill_value, array.dtype)
            chunk[: len(rows) - start] = rows[start:]
        entry |= store.write(chunk_key(array, first + start // chunks[0]), compressed(chunk))
    return entry


def compressed(chunk: np.ndarray) -> bytes:
    """Return the stored bytes of a chunk in C order: one blosc frame, shuffled where items have several bytes."""
    shuffle = blosc.SHUFFLE if chunk.itemsize > 1 else blosc.NOSHUFFLE
    return bytes(blosc.compress(np.ascontiguousarray(chunk), CODEC.encode(), CODEC_LEVEL, shuffle))


def encoded_bytes(values: np.ndarray) -> int:
    """Return the bytes that values take as one chunk."""
    return len(compressed(values))


def chunk_key(array: zarr.Array, number: int) -> str:
    """Return the key of a chunk of an array that is cut along its rows alone."""
    place = (number, *(0 for _ in array.shape))[: array.ndim]
    return f"{array.path}/{array.metadata.encode_chunk_key(place)}"


def encoded(metadata: Mapping[str, Any]) -> bytes:
    """Return metadata as JSON indented by two, as zarr writes `zarr.json`."""
    return json.dumps(metadata, indent=2).encode()


def fill_value(dtype: np.dtype) -> str | int | bool:
    """Return what an unwritten entry reads as, where anything reads it: NaN, -1 or the largest unsigned value."""
    if dtype.kind == "f":
        return "NaN"
    return -1 if dtype.kind == "i" else int(np.iinfo(dtype).max) if dtype.kind == "u" else False
