"""Points in Dask arrays."""

import sys
import threading
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from dask.delayed import Delayed
from scipy import sparse

from scalemani.config.validation import check_exact_columns
from scalemani.errors import DataError
from scalemani.io.sources.base import Source

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from distributed import Client


def open_dask_frame(frame: Any) -> "DaskPoints":
    """Open a frame of Dask, whose partitions are computed for their lengths."""
    if len(set(getattr(frame, "dtypes", ()))) > 1:
        frame = frame.map_partitions(exact_part, meta=frame._meta)
    return DaskPoints(frame.to_dask_array(lengths=True))


def exact_part(part: Any) -> Any:
    """Return a part of a frame; refuse integers that lose digits beside its other columns."""
    check_exact_columns(part, np.asarray(part), "a partition of the Dask frame")
    return part


def is_dask_array(points: Any) -> "TypeGuard[DaskArray]":
    """Return whether points are a Dask array, without loading the library."""
    library = sys.modules.get("dask.array")
    return library is not None and isinstance(points, library.Array)


class DaskPoints(Source):
    """A Dask array of dense or sparse chunks; each is computed once a pass, by the client that holds it if one does."""

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
        """The client of a persisted array, None of others."""
        from distributed import futures_of

        held = futures_of(self.array)
        return held[0].client if held else None

    def lazy_chunks(self) -> list[Delayed]:
        """Return delayed chunks of whole rows, which begin at `starts`."""
        chunks = tuple(np.diff(self.starts).tolist())
        return list(self.array.rechunk((chunks, -1)).to_delayed().ravel())

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
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
        chunks = self._chunks
        if stop == self.shape[0] == chunks[0] + len(chunks[1]):  # the end of a pass
            self._chunks = None
        return chunks

    def _computed(self, start: int, stop: int) -> np.ndarray:
        holder, rows = self.holder, self.array[start:stop]
        computed = rows.compute(scheduler="threads") if holder is None else holder.compute(rows, sync=True)
        return computed.toarray() if sparse.issparse(computed) else computed
