"""Points in arrays that are read by slices of rows: zarr, HDF5, memory maps, labelled arrays, other libraries' own.

Libraries read chunks that are missing as a fill value without a warning; `missing_chunks` finds them.
"""

import math
import re
from typing import Any, NamedTuple

import numpy as np
import zarr
from zarr.core.sync import sync

from scalemani.errors import DataError
from scalemani.io.sources.base import Source, as_store_errors

CHUNK_KEY = re.compile(r"(c[/.])?\d+([/.]\d+)*")  # below an array of zarr, of formats 2 and 3
LOOK = "look whether it was copied whole, if these rows should hold anything else"


class Chunks(NamedTuple):
    """Rows of the largest chunk, rows of a stored object (a shard or chunk; None: they differ), and stored objects."""

    most_rows: int
    stored_rows: int | None
    n_stored: int


def missing_chunks(array: Any, description: str) -> str:
    """Return a warning about missing chunks of an array of zarr or h5py; empty where there are none, and of others."""
    if isinstance(array, zarr.Array):
        return missing_in_zarr(array, description)
    if hasattr(array, "id") and hasattr(array.id, "get_num_chunks"):
        return missing_in_hdf5(array, description)
    return ""


def chunks_of(array: zarr.Array) -> Chunks:
    """Return the chunks of an array, of one shape or of several."""
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
    """Return a warning about missing chunks; these may be left out on purpose, as chunks of nothing but fill values."""

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
    """Return a warning about chunks that were never written; refuse them where no fill value was declared.

    HDF5 writes chunks of zeros like any others. A contiguous dataset was written as a whole, or not at all.
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
    """Return whether a fill value of a dataset was declared by its writer."""
    from h5py import h5d

    return bool(dataset.id.get_create_plist().fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED)


class SlicedPoints(Source):
    """An object with a shape and a dtype whose slices of rows become arrays; no more is read than is requested."""

    def __init__(self, array: Any, description: str | None = None) -> None:
        super().__init__(tuple(array.shape), array.dtype, description or f"{type(array).__name__} in memory")
        self.array, self.remark = array, missing_chunks(array, self.description)
        most_rows, self.preferred_rows = chunk_rows(array)
        self.held_bytes = most_rows * self.shape[1] * self.dtype.itemsize

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        with as_store_errors(self.description, start, stop):
            return np.asarray(self.array[start:stop])


def chunk_rows(array: Any) -> tuple[int, int | None]:
    """Return the rows of the largest chunk and the preferred rows of an array; 0 and None where it has no chunks."""
    if isinstance(array, zarr.Array):
        return chunks_of(array)[:2]
    chunks = getattr(array, "chunks", None)
    if isinstance(chunks, tuple) and chunks and isinstance(chunks[0], int):
        return chunks[0], chunks[0]
    return 0, None


def is_sliced(points: Any) -> bool:
    """Return whether an object is a table (N, D) of numbers to be read by slices: not an array that is in memory."""
    if isinstance(points, np.memmap):
        return points.ndim == 2
    if isinstance(points, np.ndarray | np.generic) or not hasattr(points, "__getitem__"):
        return False
    shape, dtype = getattr(points, "shape", None), getattr(points, "dtype", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or dtype is None or not hasattr(points, "__array__"):
        return False
    try:
        np.dtype(dtype)
    except TypeError:  # of another library, which NumPy does not know: NumPy asks the object for all of it
        return False
    return all(isinstance(length, int | np.integer) for length in shape)
