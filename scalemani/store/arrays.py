"""Arrays of a group as zarr v3 describes them: made and opened from their metadata alone, one object each.

zarr itself asks a store what is there before it makes or opens an array, several times an array and for every folder
above it: more than all else that small runs write.
"""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec
from zarr.storage import StorePath

from scalemani.store.decoding import bounded
from scalemani.store.schema import CODEC, CODEC_LEVEL
from scalemani.store.verified import VerifiedStore

METADATA = "zarr.json"
FOLDER = {"attributes": {}, "zarr_format": 3, "node_type": "group"}


def create_array(
    store: VerifiedStore,
    path: str,
    shape: tuple[int, ...],
    dtype: Any,
    chunks: tuple[int, ...],
    attributes: Mapping[str, Any],
) -> zarr.Array:
    """Create an array whose empty chunks are written like any other, in the place of one that is there.

    Parameters
    ----------
    store, path : where it is made.
    shape, chunks : of the array, and of what is compressed at once.
    dtype : of its values.
    attributes : stored with it; "dimensions" are the names of its dimensions.
    """
    array = opened(store, path, metadata_of(shape, np.dtype(dtype), chunks, dict(attributes)))
    store.write(f"{path}/{METADATA}", encoded(array.metadata.to_dict()))
    for folder in PurePosixPath(path).parents:
        store.write_if_new(str(folder / METADATA), encoded(FOLDER))
    return array


def open_array(store: VerifiedStore, path: str) -> zarr.Array:
    """Return the array at a path.

    Raises
    ------
    FileNotFoundError
        Where there is none.
    MissingChunkError, CorruptChunkError
        Where its metadata is not what was committed.
    Exception
        Of any kind, from zarr, for metadata that describes no array.
    """
    content = store.read(f"{path}/{METADATA}")
    if content is None:
        raise FileNotFoundError(path)
    return bounded(opened(store, path, json.loads(content)), f"{store}/{path}")


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
