"""Results by rows of the input: a point may be several of them, and a run stores the graph and W in work order.

Arrays are stored by point. Results are without the rows of components that were left out, and have as many rows for a
point as there were equal ones.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import zarr

from scalemani.engine.reading import ArrayReader
from scalemani.io.export.writers import SparseMatrix, row_parts
from scalemani.io.sources.lazy import LazyRows, lazy_rows
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.kernels.neighbors.rerank import Neighbors
from scalemani.kernels.rows.metrics import convert_distances
from scalemani.stages.arrays.affinities import StoredAffinityMatrix
from scalemani.stages.arrays.graph import StoredNeighbors
from scalemani.stages.arrays.points import StoredWorkPoints

PASS_BYTES = 2**26  # of the graph in input order: each pass over the graph in work order returns so many


class RowArray(Protocol):
    """An array of which rows are read when they are requested: one of zarr, or `LazyRows`."""

    @property
    def shape(self) -> tuple[Any, ...]:
        """The number of rows, and what a row has."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""

    def __len__(self) -> int: ...

    def __getitem__(self, requested: Any, /) -> np.ndarray: ...

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> np.ndarray: ...


class StoredRows(zarr.Array):
    """An array of zarr that has a length, and of which a mask of rows can be read, as of NumPy's."""

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, requested: Any) -> Any:
        if getattr(getattr(requested, "dtype", None), "kind", "") == "b" and requested.shape == self.shape[:1]:
            requested = np.flatnonzero(requested)
        return super().__getitem__(requested)


def row_array(stored: ArrayReader) -> RowArray:
    """Return a stored array by rows; of what zarr reads its types say that it may be a number."""
    array: Any = StoredRows(stored.zarr().async_array)
    return array


@dataclass(frozen=True)
class ResultRows:
    """The rows of results (M, ...), in input order, and the stored point that each of them is.

    Of `n_input` rows of the input, results have `input_rows` (M,), ascending, None for all of them; `points` (M,) are
    stored rows in input order, None where each row is a separate point.
    """

    n_input: int
    input_rows: np.ndarray | None = None
    points: np.ndarray | None = None

    def __len__(self) -> int:
        return self.n_input if self.input_rows is None else len(self.input_rows)

    @functools.cached_property
    def of_points(self) -> np.ndarray | None:
        """The first row (N,) of the results of each stored point, ascending; None where each row is a point."""
        return None if self.points is None else np.unique(self.points, return_index=True)[1]

    def numbered(self, points: np.ndarray) -> np.ndarray:
        """Return stored rows as the first rows of the results that they are."""
        return points if self.of_points is None else self.of_points[points]

    def points_at(self, rows: Any) -> Any:
        """Return the stored rows of rows of the results."""
        return rows if self.points is None else self.points[rows]

    def take(self, values: np.ndarray) -> np.ndarray:
        """Return those of values (n_input, ...) that belong to the rows of the results (M, ...)."""
        return values if self.input_rows is None else values[self.input_rows]

    def spread(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Return values (M, ...) of the rows of the results by input rows (n_input, ...), `fill` in rows left out."""
        if self.input_rows is None:
            return values
        filled = np.full((self.n_input, *values.shape[1:]), fill, values.dtype)
        filled[self.input_rows] = values
        return filled

    def by_input_rows(self, stored: RowArray, fill: float, description: str, numbered: bool = False) -> RowArray:
        """Return a stored row array of the rows of the results by input rows, read when they are requested.

        Rows left out are `fill`; where the values are `numbered` rows of the results, they become input rows.
        """
        input_rows, rows_of = self.input_rows, lazy_rows(stored, description)
        if input_rows is None:
            return stored

        def read(start: int, stop: int) -> np.ndarray:
            first, last = np.searchsorted(input_rows, [start, stop])
            values = np.full((stop - start, *stored.shape[1:]), fill, stored.dtype)
            rows = rows_of.read(int(first), int(last))
            values[input_rows[first:last] - start] = input_rows[rows] if numbered else rows
            return values

        return replace(rows_of, shape=(self.n_input, *stored.shape[1:]), reader=read)

    def by_rows(self, stored: ArrayReader, description: str) -> RowArray:
        """Return a stored row array by the rows of the results: a zarr array, or rows read when they are requested."""
        if self.points is None:
            return row_array(stored)
        points, array = self.points, stored.zarr()

        def rows(start: int, stop: int) -> np.ndarray:
            return stored.gather(points[start:stop])

        return LazyRows((len(self), *array.shape[1:]), np.dtype(array.dtype), rows, description, array.chunks[0])


@dataclass(frozen=True)
class InputOrder:
    """The way between input order and work order, and from the rows of results to points."""

    work_points: StoredWorkPoints
    rows: ResultRows

    @functools.cached_property
    def input_rows(self) -> np.ndarray:
        """The input row (N,) int64 of each work row."""
        return self.work_points.input_rows.read()

    @functools.cached_property
    def work_rows(self) -> np.ndarray:
        """The work row (N,) int64 of each input row."""
        return inverse_order(self.input_rows)

    def of_results(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the work rows of rows of the results."""
        return self.work_rows[self.rows.points_at(rows)]


@dataclass(frozen=True)
class Graph:
    """The neighbour graph, rows and neighbours numbered in input order; both arrays read rows when they are requested.

    Where equal rows are one point, neighbours are other points, by the first row of each.

    indices : (N, k) int64, the neighbours of each point, itself excluded
    distances : (N, k) float32 (float64 for float64 points), in the metric of the run, ascending
    """

    indices: RowArray
    distances: RowArray

    def tocsr(self) -> sp.csr_matrix:
        """Return the distances (N, N) in CSR form, in memory; neighbours at distance zero are stored entries."""
        return GraphMatrix(self).rows(0, self.indices.shape[0])

    def __iter__(self) -> Iterator[RowArray]:
        return iter((self.indices, self.distances))

    def __len__(self) -> int:
        """Return the number of points; as a pair, a graph has two arrays."""
        return int(self.indices.shape[0])

    def __getitem__(self, rows: Any) -> Neighbors:
        """Return the neighbours of some points and their distances: by a row, a slice, a mask or row numbers."""
        return Neighbors(np.asarray(self.indices[rows]), np.asarray(self.distances[rows]))


def graph_in_input_order(
    neighbors: StoredNeighbors, order: InputOrder, metric: str, pass_bytes: int = PASS_BYTES
) -> Graph:
    """Return the graph of a run that stores it in work order: each read of rows is a pass over the stored graph."""
    step = neighbors.final_step
    stored = neighbors.indices(step), neighbors.distances(step)
    shape = (len(order.rows), stored[0].zarr().shape[1])
    where = f"the neighbour graph in {neighbors.group.root}"
    kinds = np.dtype(np.int64), np.dtype(stored[1].zarr().dtype)

    def indices(start: int, stop: int) -> np.ndarray:
        return order.rows.numbered(order.input_rows[stored[0].gather(order.of_results(slice(start, stop)))])

    def distances(start: int, stop: int) -> np.ndarray:
        return convert_distances(metric, stored[1].gather(order.of_results(slice(start, stop))))

    rows = max(1, pass_bytes // (shape[1] * kinds[0].itemsize))
    return Graph(LazyRows(shape, kinds[0], indices, where, rows), LazyRows(shape, kinds[1], distances, where, rows))


class RowMatrix(SparseMatrix):
    """A sparse matrix (N, N), rows and columns in input order, read by rows: `rows(start, stop)` in CSR form."""

    @property
    def nnz(self) -> int:
        """The number of nonzeros."""
        return int(self.indptr[-1])

    def tocsr(self) -> sp.csr_matrix:
        """Return all of it (N, N) in CSR form, in memory: 8 bytes a nonzero, 12 from 2^31 on."""
        return sp.vstack([self.rows(*part) for part in row_parts(self.indptr)], format="csr")


class GraphMatrix(RowMatrix):
    """The graph as a sparse matrix (N, N) of distances, the neighbours of a row by ascending distance."""

    def __init__(self, graph: Graph) -> None:
        n_points, self._width = graph.indices.shape
        self._indices, self._distances = (lazy_rows(array, "a neighbour graph") for array in graph)
        self.shape, self.dtype = (n_points, n_points), np.dtype(graph.distances.dtype)

    @functools.cached_property
    def indptr(self) -> np.ndarray:
        """Where each row begins and ends: (N + 1,) int64."""
        return self._width * np.arange(self.shape[0] + 1)

    def rows(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop)."""
        indices, distances = self._indices.read(start, stop), self._distances.read(start, stop)
        known = indices >= 0  # rows left out have no neighbours
        bounds = np.append(0, np.cumsum(known.sum(axis=1)))
        return sp.csr_matrix((distances[known], indices[known], bounds), shape=(stop - start, self.shape[1]))


class AffinityMatrix(RowMatrix):
    """W = (P + P^T) / 2 with its bridges, symmetric (N, N) float32, rows and columns in input order, columns ascending.

    Reading some rows is one pass over the blocks that hold them.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, stored: StoredAffinityMatrix, order: InputOrder, n_points: int, block_rows: int) -> None:
        self._stored, self._order, self._block_rows = stored, order, block_rows
        self.shape = (n_points, n_points)

    @functools.cached_property
    def indptr(self) -> np.ndarray:
        """Where each row begins and ends among the nonzeros: (N + 1,) int64."""
        n_blocks = -(-self.shape[0] // self._block_rows)
        counts = np.concatenate([np.diff(self._stored.indptr(block)) for block in range(n_blocks)])
        return np.append(0, np.cumsum(counts[self._order.work_rows], dtype=np.int64))

    def rows(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop) as a matrix (stop - start, N) in CSR form, columns ascending."""
        wanted, n_points = self._order.work_rows[start:stop], self.shape[0]
        order = np.argsort(wanted, kind="stable")
        blocks, parts = wanted[order] // self._block_rows, [sp.csr_matrix((0, n_points), dtype=self.dtype)]
        for block in np.unique(blocks):
            local = wanted[order][blocks == block] - block * self._block_rows
            parts.append(self._stored.read_matrix(int(block), n_points)[local])
        matrix = sp.vstack(parts, format="csr")[inverse_order(order)]
        columns = self._order.input_rows[matrix.indices]
        rows = sp.csr_matrix((matrix.data, columns, matrix.indptr), shape=(stop - start, n_points))
        rows.sort_indices()
        return rows


class SpreadMatrix(RowMatrix):
    """A sparse matrix (n_rows, n_rows) of which another has rows and columns (M,), ascending; the others are empty."""

    def __init__(self, matrix: RowMatrix, rows: np.ndarray, n_rows: int) -> None:
        self._matrix, self._rows = matrix, rows
        self.shape, self.dtype = (n_rows, n_rows), matrix.dtype

    @functools.cached_property
    def indptr(self) -> np.ndarray:
        """Where each row begins and ends among the nonzeros: (n_rows + 1,) int64."""
        counts = np.zeros(self.shape[0] + 1, np.int64)
        counts[self._rows + 1] = np.diff(self._matrix.indptr)
        return np.cumsum(counts)

    def rows(self, start: int, stop: int) -> sp.csr_matrix:
        """Return rows [start, stop)."""
        first, last = np.searchsorted(self._rows, [start, stop])
        matrix = self._matrix.rows(int(first), int(last))
        bounds = self.indptr[start : stop + 1] - self.indptr[start]
        return sp.csr_matrix((matrix.data, self._rows[matrix.indices], bounds), shape=(stop - start, self.shape[1]))
