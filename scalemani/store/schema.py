"""How an array of a run is described and created; the format version stands here too."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import zarr
from numcodecs import Blosc
from zarr.abc.store import Store
from zarr.codecs import BloscCodec

FORMAT = "scalemani-run"
FORMAT_VERSION = 2
CODEC: Final = "lz4"
CODEC_LEVEL = 5


@dataclass(frozen=True)
class RowArray:
    """An array with one row a point, cut along its rows by the blocks of the run.

    `columns` are the dimensions after the rows; the names of all dimensions are `dimensions`.
    """

    name: str
    dtype: str
    columns: tuple[int, ...]
    dimensions: tuple[str, ...]
    meaning: str


def fill_value(dtype: np.dtype) -> float | int:
    """Return what an unwritten entry reads as, where anything reads it: NaN, -1 or the largest unsigned value."""
    if dtype.kind == "f":
        return float("nan")
    return -1 if dtype.kind == "i" else int(np.iinfo(dtype).max) if dtype.kind == "u" else 0


def compressor(dtype: np.dtype) -> BloscCodec:
    """Return the codec of an array: lz4 decodes at memory speed, and wider types gain from a byte shuffle."""
    return BloscCodec(
        cname=CODEC,
        clevel=CODEC_LEVEL,
        shuffle="shuffle" if dtype.itemsize > 1 else "noshuffle",
        typesize=dtype.itemsize,
    )


def encoded_bytes(values: np.ndarray) -> int:
    """Return the bytes that values take in a chunk of their own."""
    shuffle = Blosc.SHUFFLE if values.dtype.itemsize > 1 else Blosc.NOSHUFFLE
    return len(Blosc(CODEC, CODEC_LEVEL, shuffle).encode(np.ascontiguousarray(values)))


def create_array(
    store: Store, path: str, shape: tuple[int, ...], dtype: Any, chunks: tuple[int, ...], attributes: Mapping[str, Any]
) -> zarr.Array:
    """Create one zarr v3 array whose empty chunks are written like any other."""
    dtype = np.dtype(dtype)
    attributes = dict(attributes)
    return zarr.create_array(
        store,
        name=path,
        shape=shape,
        dtype=dtype,
        chunks=chunks,
        compressors=compressor(dtype),
        fill_value=fill_value(dtype),
        dimension_names=attributes.pop("dimensions", None),
        attributes=attributes,
        config={"write_empty_chunks": True},
    )
