"""Arrays of which rows are computed as they are read: lazy ones, those of Dask, and the cache of computed rows."""

import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from dask.delayed import Delayed
from scipy import sparse

from scalemani.config.validation import check_exact_columns, unmasked, with_nan
from scalemani.errors import DataError, StoreError
from scalemani.io.sources.base import Source, SourceOfPieces, native_rows
from scalemani.io.sources.sliced import INDEX_BYTES, compressed_rows, sparse_matrix, sparse_rows
from scalemani.io.sources.tables import with_numbers
from scalemani.store.places import open_objects


@dataclass(frozen=True)
class LazyRows:
    """An array of which `reader(start, stop)` gives rows: nothing is read before it is requested.

    Slices of rows, `rows[...]` and `numpy.asarray(rows)` read them.
    """

    shape: tuple[Any, ...]
    dtype: np.dtype
    reader: Callable[[int, int], np.ndarray]
    description: str
    preferred_rows: int | None = None
    sequential: bool = True
    remote: bool = False

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop)."""
        return np.ascontiguousarray(self.reader(start, stop), self.dtype)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, requested: slice | EllipsisType) -> np.ndarray:
        rows = slice(None) if requested is Ellipsis else requested
        if not isinstance(rows, slice) or (rows.step or 1) < 1:
            raise TypeError(f"{self.description} is read by slices of rows, such as [0:1000], got {requested!r}")
        start, stop, step = rows.indices(len(self))
        return self.read(start, max(start, stop))[::step]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        rows = self.read(0, len(self))
        return rows if dtype is None else rows.astype(dtype)


def lazy_rows(array: Any, description: str) -> LazyRows:
    """Return an array of NumPy or zarr, or a lazy one, to be read by rows."""
    if isinstance(array, LazyRows):
        return array
    chunks = getattr(array, "chunks", None)

    def read(start: int, stop: int) -> np.ndarray:
        return np.asarray(array[start:stop])

    return LazyRows(array.shape, np.dtype(array.dtype), read, description, chunks[0] if chunks else None, False)


if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from distributed import Client


def open_dask_frame(frame: Any, gaps: bool = False) -> "DaskPoints":
    """Open a frame of Dask, whose partitions are computed for their lengths; see `with_numbers`."""
    names = list(getattr(frame, "columns", ()))
    if names:
        meta = with_numbers(frame._meta, "the Dask frame", gaps)
        if meta is not frame._meta:
            frame = frame.map_partitions(with_numbers, "a partition of the Dask frame", gaps, meta=meta)
    if len(set(getattr(frame, "dtypes", ()))) > 1:
        frame = frame.map_partitions(exact_part, meta=frame._meta)
    points = DaskPoints(frame.to_dask_array(lengths=True))
    points.column_names = names
    return points


def exact_part(part: Any) -> Any:
    """Return a part of a frame; refuse integers that lose digits beside its other columns."""
    check_exact_columns(part, np.asarray(part), "a partition of the Dask frame")
    return part


def is_dask_array(points: Any) -> "TypeGuard[DaskArray]":
    """Return whether points are a Dask array, without loading the library."""
    library = sys.modules.get("dask.array")
    return library is not None and isinstance(points, library.Array)


class DaskPoints(Source):
    """A Dask array of dense or sparse chunks; each is computed once a pass, by the client that holds it if one does.

    Where it says that its chunks are sparse, the first is computed at once: `nonzeros` is what all would have like it.
    """

    sequential = True
    nonzeros: int | None = None

    def __init__(self, array: "DaskArray") -> None:
        if any(np.isnan(length) for length in array.shape):
            raise DataError("a Dask array of unknown shape was given: call array.compute_chunk_sizes() first")
        super().__init__(array.shape, array.dtype, "dask array")
        self.array = array
        self.starts = np.cumsum([0, *(length for length in array.chunks[0] if length)]).tolist()
        self.preferred_rows = max(array.chunks[0])
        self.held_bytes = self.preferred_rows * self.shape[1] * self.dtype.itemsize
        self._lock = threading.Lock()
        self._chunks: tuple[int, Any] | None = None  # the first row of those computed last, and their rows
        if sparse.issparse(array._meta) and self.shape[0]:
            first = sparse_matrix(self._computed(0, self.starts[1]), self.description)
            if first.nonzeros is not None:
                self.nonzeros = -(-first.nonzeros * self.shape[0] // self.starts[1])
                self.held_bytes = self.preferred_rows * sparse_row_bytes(self)

    def give_gaps(self) -> None:
        """Give gaps as NaN, in a type that has it where chunks are masked arrays."""
        super().give_gaps()
        if np.ma.isMaskedArray(self.array._meta):
            self.dtype = with_nan(self.dtype)

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

    def rows(self, start: int, stop: int) -> Any:
        """Return rows [start, stop), as sparse as their chunks."""
        parts = [np.empty((0, self.shape[1]), self.array.dtype)]
        with self._lock:
            while start < stop:
                first, chunks = self._chunks_with(start, stop)
                part = unmasked(chunks[start - first : stop - first], self.description, self.gaps, start)
                parts.append(part)
                start += part.shape[0]
        if len(parts) <= 2:
            return parts[-1]
        return sparse.vstack(parts[1:], "csr") if any(map(sparse.issparse, parts)) else np.concatenate(parts)

    def read_sparse(self, start: int, stop: int) -> sparse.csr_matrix:
        """Return rows [start, stop) as sparse rows."""
        self.check_range(start, stop)
        return sparse_rows(self.rows(start, stop), start, stop, self)

    def _chunks_with(self, start: int, stop: int) -> tuple[int, Any]:
        """Return chunks of which the first has row `start`: one, or as many as rows [start, stop) fill."""
        if self._chunks is None or not self._chunks[0] <= start < self._chunks[0] + self._chunks[1].shape[0]:
            self._chunks = None  # so that they are not held while others are computed
            chunk = bisect_right(self.starts, start) - 1
            last = max(bisect_right(self.starts, self.starts[chunk] + stop - start) - 1, chunk + 1)
            self._chunks = self.starts[chunk], self._computed(self.starts[chunk], self.starts[last])
        chunks = self._chunks
        if stop == self.shape[0] == chunks[0] + chunks[1].shape[0]:  # the end of a pass
            self._chunks = None
        return chunks

    def _computed(self, start: int, stop: int) -> Any:
        holder, rows = self.holder, self.array[start:stop]
        computed = rows.compute(scheduler="threads") if holder is None else holder.compute(rows, sync=True)
        return compressed_rows(computed, self.description) if sparse.issparse(computed) else computed


def sparse_row_bytes(points: "DaskPoints | KeptRows") -> int:
    """Return the bytes of the nonzeros of a row and of their columns, on average."""
    return -(-(points.nonzeros or 0) * (points.dtype.itemsize + INDEX_BYTES) // points.shape[0])


@dataclass(frozen=True)
class KeptRows:
    """The cache of rows (N, D), in pieces that end at multiples of `piece_rows` and where chunks end."""

    root: Path | str
    piece_rows: int
    shape: tuple[int, int]
    dtype: np.dtype
    description: str
    gaps: bool = False
    nonzeros: int | None = None  # about so many in all, of rows that are kept as sparse ones

    def keep(self, start: int, stop: int, given: Any) -> None:
        """Write computed rows [start, stop); refuse rows of another shape, and masked ones where these are no gaps."""
        read: Any = (native_rows if self.nonzeros is None else sparse_rows)(given, start, stop, self)
        objects = open_objects(self.root)
        for first in cuts([start, stop], self.piece_rows)[:-1]:
            last = min(stop, (first // self.piece_rows + 1) * self.piece_rows)
            rows = read[first - start : last - start]
            parts = (
                (rows,) if self.nonzeros is None else (rows.indptr.astype("i8"), rows.data, rows.indices.astype("i4"))
            )
            objects.set(str(first), b"".join(part.tobytes() for part in parts))

    @property
    def held_bytes(self) -> int:
        """The bytes of the largest piece."""
        row = self.shape[1] * self.dtype.itemsize
        return min(self.piece_rows, self.shape[0]) * (row if self.nonzeros is None else sparse_row_bytes(self))

    def dense_piece(self, content: bytes, n_rows: int) -> np.ndarray | None:
        """Return the rows that were written; None where bytes are missing."""
        whole = len(content) == n_rows * self.shape[1] * self.dtype.itemsize
        return np.frombuffer(content, self.dtype).reshape(n_rows, -1) if whole else None

    def sparse_piece(self, content: bytes, n_rows: int) -> sparse.csr_matrix | None:
        """Return the sparse rows that were written; None where bytes are missing."""
        values = 8 * (n_rows + 1)
        if len(content) < values:
            return None
        indptr = np.frombuffer(content, np.int64, n_rows + 1)
        columns = values + int(indptr[-1]) * self.dtype.itemsize
        if len(content) != columns + int(indptr[-1]) * INDEX_BYTES:
            return None
        data, indices = np.frombuffer(content[values:columns], self.dtype), np.frombuffer(content[columns:], np.int32)
        return sparse.csr_matrix((data, indices, indptr), (n_rows, self.shape[1]))


class ComputedPoints(SourceOfPieces):
    """Cached points, in pieces that begin with the rows `starts`; the last of these is N."""

    remote = True

    def __init__(self, kept: KeptRows, chunk_starts: Sequence[int]) -> None:
        super().__init__(kept.shape, kept.dtype, kept.description)
        self.kept = kept
        self.starts = cuts(chunk_starts, kept.piece_rows)
        self.preferred_rows = kept.piece_rows
        self.held_bytes = kept.held_bytes

    @property
    def nonzeros(self) -> int | None:
        """About how many values are not zero, of sparse rows."""
        return self.kept.nonzeros

    def read_sparse(self, start: int, stop: int) -> sparse.csr_matrix:
        """Return rows [start, stop) as sparse rows."""
        self.check_range(start, stop)
        parts = [sparse.csr_matrix((0, self.shape[1]), dtype=self.dtype)]
        parts += [self.piece(piece)[first:last] for piece, first, last in self.parts_of(start, stop)]
        return sparse.csr_matrix(sparse.vstack(parts, "csr")) if len(parts) > 2 else parts[-1]

    def piece_rows(self, piece: int, first: int, last: int) -> np.ndarray:
        """Return rows [first, last) of a piece."""
        rows = self.piece(piece)[first:last]
        return rows if self.nonzeros is None else rows.toarray()

    def piece(self, piece: int) -> Any:
        """Return a piece, which is read as a whole."""
        begin, end = self.starts[piece], self.starts[piece + 1]
        content = open_objects(self.kept.root).get(str(begin))
        read = self.kept.dense_piece if self.nonzeros is None else self.kept.sparse_piece
        rows = None if content is None else read(content, end - begin)
        if rows is None:
            raise StoreError(
                f"rows [{begin}, {end}) of {self.description}, kept in {self.kept.root}, are gone or were cut short: "
                "run the same command again"
            )
        return rows


def cuts(bounds: Sequence[int], every: int) -> list[int]:
    """Return bounds of ascending pieces with the multiples of `every` between the first and the last of them."""
    return sorted({*bounds, *range(-(-bounds[0] // every) * every, bounds[-1], every)})
