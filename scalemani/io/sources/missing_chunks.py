"""Chunks of stored arrays that are not there, in whose place libraries read a fill value without a word."""

import math
import re
from typing import Any, NamedTuple

import zarr
from zarr.core.sync import sync

from scalemani.errors import DataError

CHUNK_KEY = re.compile(r"(c[/.])?\d+([/.]\d+)*")  # below an array of zarr, of formats 2 and 3
LOOK = "look whether it was copied whole, if these rows should hold anything else"


class Chunks(NamedTuple):
    """How an array is cut: rows of the largest piece that is read whole, of an object (None: they differ), and objects.

    An object is a shard, or a chunk where there are no shards.
    """

    most_rows: int
    stored_rows: int | None
    n_stored: int


def missing_chunks(array: Any, description: str) -> str:
    """Return words on chunks of a stored array that are not there; nothing where all are, and of arrays in memory.

    Parameters
    ----------
    array : of zarr or h5py, or any other

    Raises
    ------
    DataError
        For chunks that HDF5 reads as zeros although nobody has said that they are: they were never written.
    """
    if isinstance(array, zarr.Array):
        return missing_in_zarr(array, description)
    if hasattr(array, "id") and hasattr(array.id, "get_num_chunks"):
        return missing_in_hdf5(array, description)
    return ""


def chunks_of(array: zarr.Array) -> Chunks:
    """Return how an array is cut, into chunks of one shape or of several."""
    try:
        read, stored = array.chunks, array.shards or array.chunks
    except NotImplementedError:
        uneven: Any = array  # what zarr says of these from 3.2 on
        n_stored = math.prod(map(len, uneven.write_chunk_sizes))
        return Chunks(max(uneven.read_chunk_sizes[0], default=0), None, n_stored)
    pieces = zip((*array.shape, *array.shape), (*stored, *read), strict=True)
    if any(length > 0 and piece < 1 for length, piece in pieces):
        raise DataError(
            f"{array.store_path} of shape {array.shape} has chunks of shape {read}, which hold no value: write it again"
        )
    n_stored = math.prod(-(-length // piece) for length, piece in zip(array.shape, stored, strict=True))
    return Chunks(int(read[0]), int(stored[0]), n_stored)


def missing_in_zarr(array: zarr.Array, description: str) -> str:
    """Return words on chunks that are not there, which zarr reads as the fill value; nothing where all are, or no list.

    Chunks that hold nothing but the fill value may be left out by zarr's rules: what is missing may be as it was meant.
    """

    if not array.store.supports_listing:
        return ""

    async def count() -> int:
        place = array.store_path
        start = len(place.path) + 1 if place.path else 0
        return sum([CHUNK_KEY.fullmatch(key[start:]) is not None async for key in place.store.list_prefix(place.path)])

    try:
        there = sync(count())
    except Exception:  # servers that list nothing say so in many ways, and none of them keeps rows from being read
        return ""
    if there >= (wanted := chunks_of(array).n_stored):
        return ""
    return f"{wanted - there} of {wanted} chunks of {description} are missing and read as {array.fill_value}: {LOOK}"


def missing_in_hdf5(dataset: Any, description: str) -> str:
    """Return words on chunks that were never written, where whoever made the dataset has said what they read as.

    HDF5 writes chunks of zeros as any others. A dataset in one piece has no chunks: all of it was written, or nothing.
    """
    if dataset.chunks:
        wanted = math.prod(-(-length // piece) for length, piece in zip(dataset.shape, dataset.chunks, strict=True))
        missing = wanted - dataset.id.get_num_chunks()
        what = f"{missing} of {wanted} chunks of {description}"
    else:
        missing, what = int(bool(dataset.size) and not dataset.id.get_storage_size()), f"the values of {description}"
    if missing <= 0:
        return ""
    if is_fill_declared(dataset):
        return f"{what} are missing and read as {dataset.fillvalue}: {LOOK}"
    raise DataError(
        f"{what} were never written, and HDF5 reads them as {dataset.fillvalue!r}: the program that wrote the file did "
        "not finish; write it again, or declare a fill value where it is meant"
    )


def is_fill_declared(dataset: Any) -> bool:
    """Return whether whoever made a dataset of HDF5 gave it a fill value."""
    from h5py import h5d

    return bool(dataset.id.get_create_plist().fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED)
