"""Arrays whose chunks are decoded within bounds: a few kilobytes of compressed data may stand for gigabytes.

What comes out of a chunk is known from its shape. Where a codec writes down how much that is, it is compared before
anything is decoded; where none does, no more than that is decoded.
"""

import asyncio
import bz2
import gzip
import io
import lzma
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import zarr
from numcodecs.abc import Codec as Numcodec
from zarr import AsyncArray
from zarr.abc.codec import BytesBytesCodec, Codec
from zarr.codecs import ShardingCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer

from scalemani.errors import StoreError
from scalemani.store.zstd_frames import frames_bytes

MOST_VALUE_BYTES = 16  # of the widest number, which filters may have made of narrower ones
BESIDE_BYTES = 2**20  # of checksums and indices of shards, and of blocks of zstd that are not full
DICTIONARY_BYTES = 2**28  # that lzma may keep; its own highest level takes 64 MiB

# What bytes say of the size that they decode to.
SIZES: dict[str, Callable[[bytes], int]] = {
    "blosc": lambda content: int.from_bytes(content[4:8], "little"),
    "lz4": lambda content: int.from_bytes(content[:4], "little"),
    "zstd": frames_bytes,
}
# What decodes no more than so many bytes, of data that do not say how much they hold.
STREAMS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": lambda content, most: gzip.GzipFile(fileobj=io.BytesIO(content)).read(most),
    "zlib": lambda content, most: zlib.decompressobj().decompress(content, most),
    "bz2": lambda content, most: bz2.BZ2File(io.BytesIO(content)).read(most),
    "lzma": lambda content, most: lzma.LZMADecompressor(memlimit=DICTIONARY_BYTES).decompress(content, most),
}
COMPRESSION_CODECS = frozenset({*SIZES, *STREAMS})


def bounded(array: zarr.Array, where: str, value_bytes: int = MOST_VALUE_BYTES) -> zarr.Array:
    """Return an array whose chunks are refused before they take more memory than their shape asks for.

    Parameters
    ----------
    array : of either format of zarr
    where : the place that errors name
    value_bytes : that a value takes at most, on average over a chunk
    """
    metadata: Any = array.metadata
    if metadata.zarr_format == 2:
        most = most_bytes(metadata.chunks, value_bytes)
        compressor, *filters = (bounded_numcodec(codec, most, where) for codec in codecs_of_format_2(metadata))
        changed = replace(metadata, compressor=compressor, filters=filters or None)
    else:
        changed = replace(metadata, codecs=[bounded_codec(codec, where, value_bytes) for codec in metadata.codecs])
    inner = array.async_array
    return zarr.Array(AsyncArray(changed, inner.store_path, inner.config))


def codecs_of_format_2(metadata: Any) -> list[Numcodec | None]:
    """Return the compressor of an array, which may be none, and its filters."""
    return [metadata.compressor, *(metadata.filters or ())]


def most_bytes(shape: tuple[int, ...], value_bytes: int) -> int:
    """Return the bytes that a chunk of a shape takes at most, at any step of its decoding."""
    return value_bytes * math.prod(shape) + BESIDE_BYTES


def codec_name(codec: Any) -> str:
    """Return the name of a codec of either format."""
    name = codec.to_dict()["name"] if isinstance(codec, Codec) else codec.codec_id
    return str(name).removeprefix("numcodecs.")


def bounded_codec(codec: Codec, where: str, value_bytes: int) -> Codec:
    """Return a codec of format 3 that decodes within bounds; what does not compress is as it was."""
    if isinstance(codec, ShardingCodec):
        return replace(codec, codecs=tuple(bounded_codec(part, where, value_bytes) for part in codec.codecs))
    compresses = isinstance(codec, BytesBytesCodec) and codec_name(codec) in COMPRESSION_CODECS
    return BoundedCodec(codec, where, value_bytes) if compresses and not isinstance(codec, BoundedCodec) else codec


def bounded_numcodec(codec: Numcodec | None, most: int, where: str) -> Numcodec | None:
    """Return a codec of format 2 that decodes within bounds; what does not compress is as it was."""
    if codec is None or isinstance(codec, BoundedNumcodec) or codec_name(codec) not in COMPRESSION_CODECS:
        return codec
    return BoundedNumcodec(codec, most, where)


@dataclass(frozen=True)
class BoundedCodec(BytesBytesCodec):
    """A codec of format 3 that decodes within the bounds of the chunk it is given."""

    codec: Any
    where: str
    value_bytes: int

    is_fixed_size = False

    @property
    def _sync_capable(self) -> bool:
        return hasattr(self.codec, "_decode_sync")  # else it runs in zarr's event loop alone

    def to_dict(self) -> dict[str, Any]:
        """Return the description of the codec itself."""
        return dict(self.codec.to_dict())

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> "BoundedCodec":
        """Return the codec for the arrays of a description."""
        return replace(self, codec=self.codec.evolve_from_array_spec(array_spec))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Return what the codec itself makes of so many bytes."""
        return int(self.codec.compute_encoded_size(input_byte_length, chunk_spec))

    def _decoded(self, content: Buffer, spec: ArraySpec) -> Buffer | None:
        """Return what was decoded within bounds, or None where the codec itself can be trusted to."""
        found = decoded_within(
            codec_name(self.codec), content.to_bytes(), most_bytes(spec.shape, self.value_bytes), self.where
        )
        return None if found is None else spec.prototype.buffer.from_bytes(found)

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        found = self._decoded(chunk_bytes, chunk_spec)
        return self.codec._decode_sync(chunk_bytes, chunk_spec) if found is None else found

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> Buffer:
        found = await asyncio.to_thread(self._decoded, chunk_data, chunk_spec)
        return await self.codec._decode_single(chunk_data, chunk_spec) if found is None else found

    def _encode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer | None:
        encoded: Buffer | None = self.codec._encode_sync(chunk_bytes, chunk_spec)
        return encoded

    async def _encode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> Buffer | None:
        encoded: Buffer | None = await self.codec._encode_single(chunk_data, chunk_spec)
        return encoded


class BoundedNumcodec(Numcodec):
    """A codec of format 2 that decodes within bounds."""

    codec_id = "bounded"  # which nothing stores: descriptions are those of the codec itself

    def __init__(self, codec: Numcodec, most: int, where: str) -> None:
        self.codec, self.most, self.where = codec, most, where

    def get_config(self) -> dict[str, Any]:
        """Return the description of the codec itself."""
        return dict(self.codec.get_config())

    def encode(self, buf: Any) -> Any:
        """Return what the codec itself makes of bytes."""
        return self.codec.encode(buf)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Return what was encoded, if that is no more than a chunk takes."""
        found = decoded_within(codec_name(self.codec), bytes(buf), self.most, self.where)
        return self.codec.decode(buf, out) if found is None else found


def decoded_within(name: str, content: bytes, most: int, where: str) -> bytes | None:
    """Return what a codec made of at most so many bytes, or None where the bytes say that they are no more.

    Parameters
    ----------
    name, content : of the codec, and what it is to decode
    most : the bytes that may come out
    where : the place that an error names

    Raises
    ------
    StoreError
        Where they are more.
    """
    decoded = None if name in SIZES else STREAMS[name](content, most + 1)
    if (SIZES[name](content) if decoded is None else len(decoded)) > most:
        raise StoreError(
            f"a chunk of {where} decodes by {name} to more than the {most} bytes that its shape can take: it was "
            "damaged, or made to use up memory; copy or write the array again"
        )
    return decoded
