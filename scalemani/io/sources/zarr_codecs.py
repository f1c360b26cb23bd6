"""Codecs that zarr arrays may use: none that runs code."""

import json
from pathlib import Path
from typing import Any

from scalemani.errors import CorruptChunkError, StoreError, UnsafeStoreError
from scalemani.store.objects import read_file

COMPRESSION_CODECS = {"blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"}
LAYOUT_CODECS = {"bytes", "transpose", "sharding_indexed", "crc32c", "crc32", "adler32", "fletcher32"}
NUMBER_CODECS = {"shuffle", "delta", "bitround", "quantize", "fixedscaleoffset", "packbits", "astype"}
TEXT_CODECS = {"vlen-utf8"}  # of strings, which format 2 calls objects
SAFE_CODECS = LAYOUT_CODECS | COMPRESSION_CODECS | NUMBER_CODECS


def check_declared_codecs(folder: Path, description: str, texts: bool) -> None:
    """Refuse a local array by its metadata, before zarr imports any codec for it."""
    for name in ("zarr.json", ".zarray"):
        try:
            metadata = json.loads(read_file(folder / name))
        except (OSError, ValueError):  # not there, or for zarr to complain about
            continue
        except CorruptChunkError as error:
            raise StoreError(f"{description} describes no array: {error}") from error
        if isinstance(metadata, dict):
            check_codecs(metadata, description, texts)


def check_codecs(metadata: dict[str, Any], description: str, texts: bool = False) -> None:
    """Refuse an array whose codecs could run code: pickled objects, unknown codecs."""
    allowed = SAFE_CODECS | TEXT_CODECS if texts else SAFE_CODECS
    held = False
    listed: list[Any] = [metadata.get("codecs"), metadata.get("filters"), metadata.get("compressor")]
    while listed:
        codec = listed.pop()
        if isinstance(codec, list | tuple):
            listed.extend(codec)
        if isinstance(codec, str):
            codec = {"name": codec}
        if not isinstance(codec, dict):
            continue
        name = str(codec.get("name") or codec.get("id")).removeprefix("numcodecs.")
        if name not in allowed:
            raise UnsafeStoreError(f"{description} uses the codec {name!r}; allowed: {', '.join(sorted(allowed))}")
        held |= name in TEXT_CODECS
        configuration = codec.get("configuration") or {}
        if not isinstance(configuration, dict):
            raise UnsafeStoreError(f"{description}: the configuration of its codec {name!r} is no table")
        listed.append(configuration.get("codecs"))
    if metadata.get("dtype") == "|O" and not held:
        raise UnsafeStoreError(f"{description} holds Python objects (dtype |O): store numbers")
