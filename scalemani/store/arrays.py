"""Arrays of a group as zarr v3 describes them: made and opened from their metadata, and read and written by chunks.

zarr itself asks a store what is there before it makes or opens an array, several times an array and for every folder
above it: more than all else that small runs write. It codes a chunk by way of its event loop and copies it there, which
takes longer than the coding. Most reads and writes are of one chunk, that of a block, the largest of an array.
"""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import zarr
from numcodecs import blosc
from zarr.codecs import BloscCodec, BytesCodec
from zarr.storage import StorePath

from scalemani.store.objects import READS_AT_ONCE, damaged_object
from scalemani.store.schema import CODEC, CODEC_LEVEL
from scalemani.store.verified import VerifiedStore

METADATA = "zarr.json"
BLOSC_SIZE = slice(4, 8)  # where blosc writes how many bytes it decodes to
FOLDER = {"attributes": {}, "zarr_format": 3, "node_type": "group"}


def create_array(
    store: VerifiedStore,
    path: str,
    shape: tuple[int, ...],
    dtype: Any,
    chunks: tuple[int, ...],
    attributes: Mapping[str, Any],
) -> zarr.Array:
    """Create or replace an array whose empty chunks are written like any other; its `attributes` hold "dimensions"."""
    array = opened(store, path, metadata_of(shape, np.dtype(dtype), chunks, dict(attributes)))
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

    numbers = range(start // length, -(-stop // length))
    if len(numbers) == 1:
        place(numbers[0])
        return rows
    with ThreadPoolExecutor(min(len(numbers), READS_AT_ONCE)) as pool:
        for _ in pool.map(place, numbers):
            pass
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
    shuffle = blosc.SHUFFLE if chunk.itemsize > 1 else blosc.NOSHUFFLE
    store.write(chunk_key(path, array, number), blosc.compress(chunk, CODEC.encode(), CODEC_LEVEL, shuffle))


def chunk_key(path: str, array: zarr.Array, number: int) -> str:
    """Return the key of a chunk of an array that is cut along its rows alone."""
    return f"{path}/c/{number}" + "/0" * (array.ndim - 1)


def opened(store: VerifiedStore, path: str, metadata: dict[str, Any]) -> zarr.Array:
    """Return the array that metadata describe."""
    return zarr.Array.from_dict(StorePath(store, path), metadata).with_config({"write_empty_chunks": True})


def metadata_of(
    shape: tuple[int, ...], dtype: np.dtype, chunks: tuple[int, ...], attributes: dict[str, Any]
) -> dict[str, Any]:
    """Return the metadata of an array; `attributes` are those of `create_array`, and are changed."""
    dimensions = attributes.pop("dimensions", None) or None  # a number has none, and says nothing of them
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value(dtype),
        "codecs": [codec.to_dict() for codec in (serializer(dtype), compressor(dtype))],
        "attributes": attributes,
        "dimension_names": dimensions,
    }


def encoded(metadata: Mapping[str, Any]) -> bytes:
    """Return metadata as they are stored."""
    return json.dumps(metadata, indent=2).encode()


def fill_value(dtype: np.dtype) -> str | int | bool:
    """Return what an unwritten entry reads as, where anything reads it: NaN, -1 or the largest unsigned value."""
    if dtype.kind == "f":
        return "NaN"
    return -1 if dtype.kind == "i" else int(np.iinfo(dtype).max) if dtype.kind == "u" else False


def serializer(dtype: np.dtype) -> BytesCodec:
    """Return how values become bytes: the order of those of one byte is none."""
    return BytesCodec(endian="little" if dtype.itemsize > 1 else None)


def compressor(dtype: np.dtype) -> BloscCodec:
    """Return the codec of an array: lz4 decodes at memory speed, and wider types gain from a byte shuffle."""
    return BloscCodec(
        cname=CODEC,
        clevel=CODEC_LEVEL,
        shuffle="shuffle" if dtype.itemsize > 1 else "noshuffle",
        typesize=dtype.itemsize,
    )
