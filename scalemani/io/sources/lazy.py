"""Arrays of which rows are computed as they are read: lazy ones, those of Dask, and the cache of computed rows."""

import io
import sys
import zipfile
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from dask.delayed import Delayed
from scipy import sparse

from scalemani.config.validation import check_exact_columns, unmasked, with_nan
from scalemani.errors import DataError, StoreError
from scalemani.io.sources.base import PointsSource, SourceOfPieces, native_rows
from scalemani.io.sources.sliced import INDEX_BYTES, SparseSource, compressed_rows, sparse_matrix, sparse_rows
from scalemani.io.sources.tables import check_distinct_names, with_numbers
from scalemani.kernels.machine.forks import new_lock
from scalemani.store.places import open_objects

GAP_ROWS = 1024  # that are read with those on either side of them


@dataclass(frozen=True, repr=False)
class LazyRows(PointsSource):
    """An array of which `reader(start, stop)` gives rows: nothing is read before it is requested.

    NumPy's indexing and `numpy.asarray(rows)` read them: rows by a number, a slice, numbers or a mask, then columns.
    """

    shape: tuple[Any, ...]  # that of labels and of matrices too
    dtype: np.dtype
    reader: Callable[[int, int], np.ndarray]
    description: str
    preferred_rows: int | None = None
    sequential: bool = True
    remote: bool = False

    @property
    def ndim(self) -> int:
        """The number of dimensions: 1 of labels, 2 of points."""
        return len(self.shape)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return rows [start, stop), C-contiguous, of `dtype`; what the reader gives is converted."""
        return np.ascontiguousarray(self.reader(start, stop), self.dtype)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.shape} {self.dtype}: {self.description}>"

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, requested: Any) -> np.ndarray:
        rows, *columns = requested if isinstance(requested, tuple) else (requested,)
        if rows is Ellipsis and not columns:
            rows = slice(None)
        if isinstance(rows, slice) and (rows.step or 1) >= 1:
            start, stop, step = rows.indices(len(self))
            return self.read(start, max(start, stop))[(slice(None, None, step), *columns)]
        if rows is None or rows is Ellipsis:
            raise TypeError(f"{self.description} is read by rows first, such as [0:1000] or [7, :3], got {requested!r}")
        numbers = np.arange(len(self))[rows]  # NumPy says what is no index, and what is out of bounds
        wanted, places = np.unique(numbers, return_inverse=True)
        parts = np.split(wanted, np.flatnonzero(np.diff(wanted) > GAP_ROWS) + 1) if len(wanted) else []
        near = [self.read(int(part[0]), int(part[-1]) + 1)[part - part[0]] for part in parts]
        read = np.concatenate(near) if near else self.read(0, 0)
        return read[(places.reshape(numbers.shape) if np.ndim(numbers) else 0, *columns)]

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
        check_distinct_names(names, "the Dask frame")
        meta = with_numbers(frame._meta, "the Dask frame", gaps)
        if meta is not frame._meta:
            frame = frame.map_partitions(with_numbers, "a partition of the Dask frame", gaps, meta=meta)
    if len(set(getattr(frame, "dtypes", ()))) > 1:
        frame = frame.map_partitions(exact_part, meta=frame._meta)
    points = DaskPoints(frame.to_dask_array(lengths=True))
    points.column_names = names
    return points


def exact_part(part: Any) -> Any:
    """Return a part of a frame; refuse integers that lose digits next to its other columns."""
    check_exact_columns(part, np.asarray(part), "a partition of the Dask frame")
    return part


def is_dask_array(points: Any) -> "TypeGuard[DaskArray]":
    """Return whether points are a Dask array; dask.array is not imported for it."""
    library = sys.modules.get("dask.array")
    return library is not None and isinstance(points, library.Array)


class DaskPoints(SparseSource):
    """A Dask array of dense or sparse chunks; each is computed once a pass, by the client that holds it if one does.

    Where it says that its chunks are sparse, the first is computed at once: `nonzeros` is what all would have like it.
    """

    sequential = True

    def __init__(self, array: "DaskArray") -> None:
        if any(np.isnan(length) for length in array.shape):
            raise DataError("the Dask array has an unknown shape: call array.compute_chunk_sizes() first")
        super().__init__(array.shape, array.dtype, "dask array")
        self.array = array
        self.starts = np.cumsum([0, *(length for length in array.chunks[0] if length)]).tolist()
        self.preferred_rows = max(array.chunks[0])
        self.held_bytes = self.preferred_rows * self.shape[1] * self.dtype.itemsize
        self._lock = new_lock()
        self._chunks: tuple[int, Any] | None = None  # the first row of those computed last, and their rows
        if sparse.issparse(array._meta) and self.shape[0]:
            first = sparse_matrix(self._computed(0, self.starts[1]), self.description)
            if first.nonzeros is not None:
                self.nonzeros = -(-first.nonzeros * self.shape[0] // self.starts[1])
                self.held_bytes = self.preferred_rows * sparse_row_bytes(self)

    def accept_gaps(self) -> None:
        """Give gaps as NaN, in a type that has it where chunks are masked arrays."""
        super().accept_gaps()
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
                if not part.shape[0]:  # fewer rows than the array says, which is refused where all are there
                    break
                start += part.shape[0]
        if len(parts) <= 2:
            return parts[-1]
        return sparse.vstack(parts[1:], "csr") if any(map(sparse.issparse, parts)) else np.concatenate(parts)

    def _chunks_with(self, start: int, stop: int) -> tuple[int, Any]:
        """Return chunks of which the first has row `start`: one, or as many as rows [start, stop) fill."""
        if self._chunks is None or not self._chunks[0] <= start < self._chunks[0] + self._chunks[1].shape[0]:
            self._chunks = None  # so that they are not held while others are computed
            chunk = bisect_right(self.starts, start) - 1
            first = self.starts[chunk]
            last = max(bisect_right(self.starts, first + stop - start) - 1, chunk + 1)
            self._chunks = first, self._computed(first, self.starts[last])
        chunks = self._chunks
        if stop == self.shape[0] == chunks[0] + chunks[1].shape[0]:  # the end of a pass
            self._chunks = None
        return chunks

    def _computed(self, start: int, stop: int) -> Any:
        holder, rows = self.holder, self.array[start:stop]
        computed = rows.compute(scheduler="threads") if holder is None else holder.compute(rows, sync=True)
        return compressed_rows(computed, self.description) if sparse.issparse(computed) else computed


def sparse_row_bytes(points: "DaskPoints") -> int:
    """Return the bytes of an average sparse row: its nonzeros and their column numbers."""
    return -(-(points.nonzeros or 0) * (points.dtype.itemsize + INDEX_BYTES) // points.shape[0])


class ComputedPoints(SourceOfPieces):
    """The cache of rows that Dask computes, in pieces that end at multiples of `piece_rows` and where chunks end."""

    remote = True

    def __init__(self, root: Path | str, piece_rows: int, points: DaskPoints) -> None:
        super().__init__(points.shape, points.dtype, points.description)
        self.root, self.preferred_rows, self.starts = root, piece_rows, cuts(points.starts, piece_rows)
        self.gaps, self.column_names, self.nonzeros = points.gaps, points.column_names, points.nonzeros
        row = self.shape[1] * self.dtype.itemsize if self.nonzeros is None else sparse_row_bytes(points)
        self.held_bytes = min(piece_rows, self.shape[0]) * row

    def keep(self, start: int, stop: int, computed: Any) -> None:
        """Write computed rows [start, stop); refuse rows of another shape, and masked ones where these are no gaps."""
        read: Any = (native_rows if self.nonzeros is None else sparse_rows)(computed, start, stop, self)
        objects = open_objects(self.root)
        for piece, _, length in self.parts_of(start, stop):
            first = self.starts[piece]
            rows, content = read[first - start : first - start + length], io.BytesIO()
            if self.nonzeros is not None:
                sparse.save_npz(content, rows, compressed=False)
            objects.set(str(first), rows.tobytes() if self.nonzeros is None else content.getvalue())

    def piece(self, piece: int) -> Any:
        """Return the rows of a piece as `keep` wrote them; StoreError where they are gone or were cut short."""
        first, last = self.starts[piece : piece + 2]
        content = open_objects(self.root).get(str(first)) or b""
        try:
            if self.nonzeros is not None:
                return sparse.load_npz(io.BytesIO(content))
            return np.frombuffer(content, self.dtype).reshape(last - first, self.shape[1])
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise StoreError(
                f"rows [{first}, {last}) of {self.description}, stored in {self.root}, are gone or were cut short: run "
                "the same command again"
            ) from error

    def read_sparse(self, start: int, stop: int) -> sparse.csr_matrix:
        """Return rows [start, stop) of pieces in CSR form, of `dtype`; DataError for rows that are not there."""
        self.check_range(start, stop)
        parts = [sparse.csr_matrix((0, self.shape[1]), dtype=self.dtype)]
        parts += [self.piece(piece)[first:last] for piece, first, last in self.parts_of(start, stop)]
        return sparse.csr_matrix(sparse.vstack(parts, "csr")) if len(parts) > 2 else parts[-1]

    def piece_rows(self, piece: int, first: int, last: int) -> np.ndarray:
        """Return rows [first, last) of a piece, dense, counted from its first row."""
        rows = self.piece(piece)[first:last]
        return rows if self.nonzeros is None else rows.toarray()


def cuts(bounds: Sequence[int], every: int) -> list[int]:
    """Return bounds of ascending pieces with the multiples of `every` between the first and the last of them."""
    return sorted({*bounds, *range(-(-bounds[0] // every) * every, bounds[-1], every)})
