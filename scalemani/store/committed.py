"""Whether values may be committed, and whether what a store says was committed can be true."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import zarr

from scalemani.errors import StoreError, UnsafeStoreError
from scalemani.store.objects import checked_key, damaged_object
from scalemani.store.verified import Digests

CODECS = {"bytes", "blosc"}
MOST_EXPANSION = 300  # of a chunk when it is decoded: a byte of lz4 stands for at most 255


def check_size(array: zarr.Array, lengths: Sequence[int], where: str) -> None:
    """Refuse a finished array that says it is larger than its committed chunks, of so many bytes each, can be."""
    codecs = {codec.to_dict()["name"] for codec in getattr(array.metadata, "codecs", ())}
    if codecs != CODECS:
        raise UnsafeStoreError(
            f"{where} asks for codecs {sorted(codecs)}, arrays of a run have {sorted(CODECS)}: it is no run of this "
            "library, or was changed; run the same command in another folder"
        )
    if math.prod(array.shape) == 0:
        return
    chunk_bytes = math.prod(array.chunks) * array.dtype.itemsize
    if math.prod(array.cdata_shape) > len(lengths) or chunk_bytes > MOST_EXPANSION * max(lengths, default=0):
        raise damaged_object(where, f"shape {array.shape} in chunks {array.chunks} is more than was written")


def marks_of(units: Any) -> dict[str, Digests] | None:
    """Return the digests of marks read back from JSON by their units; None where that is not what they are."""
    try:
        return {
            unit: {
                checked_key(key): (int(length), str(content), str(tag)) for key, (length, content, tag) in mark.items()
            }
            for unit, mark in units.items()
        }
    except (AttributeError, TypeError, ValueError, OverflowError, UnsafeStoreError):
        return None


def refuse_non_finite(values: np.ndarray, where: str) -> None:
    """Raise where a value to be stored is NaN or infinite: a sum is enough to tell, and reads at memory speed."""
    if values.dtype.kind != "f" or values.size == 0:
        return
    with np.errstate(over="ignore", invalid="ignore"):  # finite values may have a sum that is not
        total = values.sum(dtype=np.float64)
    if not np.isfinite(total):
        finite = np.isfinite(values)
        if not finite.all():
            raise StoreError(
                f"{where}: {finite.size - np.count_nonzero(finite)} values are not finite; nothing was stored"
            )
