"""Points in Dask arrays."""

import sys
import threading
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from dask.delayed import Delayed

from scalemani.config.validation import check_exact_columns
from scalemani.errors import DataError
from scalemani.io.sources.base import Source

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from distributed import Client


def open_dask_frame(frame: Any) -> "DaskPoints":
    """Open a frame of Dask, whose parts are computed for their lengths: its columns become one type in each part."""
    if len(set(getattr(frame, "dtypes", ()))) > 1:
        frame = frame.map_partitions(exact_part, meta=frame._meta)
    return DaskPoints(frame.to_dask_array(lengths=True))


def exact_part(part: Any) -> Any:
    """Return a part of a frame; refuse integers that lose digits beside its other columns."""
    check_exact_columns(part, np.asarray(part), "a partition of the Dask frame")
    return part


def is_dask_array(points: Any) -> "TypeGuard[DaskArray]":
    """Return whether points are a Dask array; who has one has loaded the library, which no worker needs to."""
    library = sys.modules.get("dask.array")
    return library is not None and isinstance(points, library.Array)


class DaskPoints(Source):
    """A Dask array; each chunk is computed once a pass over the rows, by the client that holds it if one does."""

    sequential = True

    def __init__(self, array: "DaskArray") -> None:
        if any(np.isnan(length) for length in array.shape):
            raise DataError("a Dask array of unknown shape was given: call array.compute_chunk_sizes() first")
        super().__init__(array.shape, array.dtype, "dask array")
        self.array = array
        self.starts = np.cumsum([0, *(length for length in array.chunks[0] if length)]).tolist()
        self.preferred_rows = max(array.chunks[0])
        self.held_bytes = self.preferred_rows * self.shape[1] * self.dtype.itemsize
        self._lock = threading.Lock()
        self._chunks: tuple[int, np.ndarray] | None = None  # the first row of those computed last, and their rows

    @property
    def holder(self) -> "Client | None":
        """The client of an array that was persisted: only it can reach what it holds; None for others."""
        from distributed import futures_of

        held = futures_of(self.array)
        return held[0].client if held else None

    def lazy_chunks(self) -> list[Delayed]:
        """Return the rows from one of `starts` to the next, to be computed: chunks of whole rows."""
        chunks = tuple(np.diff(self.starts).tolist())
        return list(self.array.rechunk((chunks, -1)).to_delayed().ravel())

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), which are cut from chunks."""
        parts = [np.empty((0, self.shape[1]), self.array.dtype)]
        with self._lock:
            while start < stop:
                first, chunks = self._chunks_with(start, stop)
                part = chunks[start - first : stop - first]
                parts.append(part)
                start += len(part)
        return np.concatenate(parts) if len(parts) > 2 else parts[-1]

    def _chunks_with(self, start: int, stop: int) -> tuple[int, np.ndarray]:
        """Return chunks of which the first has row `start`: one, or as many as rows [start, stop) fill."""
        if self._chunks is None or not self._chunks[0] <= start < self._chunks[0] + len(self._chunks[1]):
            self._chunks = None  # so that they are not held while others are computed
            chunk = bisect_right(self.starts, start) - 1
            last = max(bisect_right(self.starts, self.starts[chunk] + stop - start) - 1, chunk + 1)
            self._chunks = self.starts[chunk], self._computed(self.starts[chunk], self.starts[last])
        found = self._chunks
        if stop == self.shape[0] == found[0] + len(found[1]):  # the end of a pass
            self._chunks = None
        return found

    def _computed(self, start: int, stop: int) -> np.ndarray:
        holder = self.holder
        if holder is not None:
            return holder.compute(self.array[start:stop], sync=True)
        return self.array[start:stop].compute(scheduler="threads")
