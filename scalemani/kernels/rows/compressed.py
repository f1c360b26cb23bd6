"""Points: read by row numbers, or at hand, dense or as sparse rows in CSR form, with what compiled code takes of these.

A distance of sparse rows costs as many products as the row that it goes to has nonzeros: the other row is spread out
over all columns once, and then compared with many. It is |a|^2 + |b|^2 - 2 a.b in float64, summed in the order of the
columns, so that swapping the rows gives the same bits and integers are exact. Where that cancels, differences are
summed instead.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.machine.compile import compiled

Points: TypeAlias = Any  # (n, D), a NumPy array or a sparse matrix in CSR form, whose types SciPy does not declare

# Of the squared lengths that went into it: a squared distance below has lost more than two digits of sixteen.
CANCELLED = 1e-2


class PointsByRow(Protocol):
    """Points (N, D) that are read by row numbers: an array in memory, or what reads a store."""

    def __len__(self) -> int:
        """Return N."""

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        """Return the points (m, D) at rows (m,) int64."""


def tiles(points: PointsByRow) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the first row of each tile, and its points."""
    for tile in slices(len(points), TILE_ROWS):
        yield tile.start, points[np.arange(tile.start, tile.stop)]


class CompressedRows(NamedTuple):
    """Sparse rows as compiled code takes them; each call that compares rows makes new ones, since `spread` is written.

    Columns ascend in each row and none comes twice.
    """

    indptr: np.ndarray  # (n + 1,) int64
    columns: np.ndarray  # (nonzeros,) int32
    values: np.ndarray  # (nonzeros,) of a real dtype
    squares: np.ndarray  # (n,) float64, squared lengths
    spread: np.ndarray  # (D,) float64: one of the rows, zero elsewhere
    spread_row: np.ndarray  # (1,) int64, which one that is, -1 for none


def compressed_rows(rows: sp.csr_matrix, queried: bool = True) -> CompressedRows:
    """Return sparse rows (n, D) as compiled code takes them; only those that are `queried` have room to be spread."""
    indptr, columns = rows.indptr.astype(np.int64, copy=False), rows.indices.astype(np.int32, copy=False)
    spread = np.zeros(rows.shape[1] if queried else 0)
    return CompressedRows(
        indptr, columns, rows.data, squared_lengths(indptr, rows.data), spread, np.full(1, -1, np.int64)
    )


@compiled
def squared_lengths(indptr: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the squared lengths (n,) float64 of sparse rows, summed in the order of the columns."""
    squares = np.zeros(indptr.size - 1)
    for row in range(squares.size):
        for entry in range(indptr[row], indptr[row + 1]):
            squares[row] += np.float64(values[entry]) * np.float64(values[entry])
    return squares


@compiled
def squared_distance_of_compressed(queries: CompressedRows, query: int, rows: CompressedRows, row: int) -> float:
    """Return the squared distance of a row of one table and a row of another; the query is spread out and stays so."""
    if queries.spread_row[0] != query:
        spread_out(queries, query)
    spread, columns, values, product = queries.spread, rows.columns, rows.values, 0.0
    for entry in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + 1])):
        product += spread[np.uint64(columns[entry])] * np.float64(values[entry])
    squares = queries.squares[query] + rows.squares[row]
    distance = squares - 2.0 * product
    return distance if distance >= CANCELLED * squares else _merged_distance(queries, query, rows, row)


@compiled
def set_distance_of_compressed(queries: CompressedRows, query: int, rows: CompressedRows, row: int) -> float:
    """Return the Jaccard distance of a row of one table and a row of another, whose nonzeros are True."""
    if queries.spread_row[0] != query:
        spread_out(queries, query)
    spread, columns, shared = queries.spread, rows.columns, 0.0
    for entry in range(np.uint64(rows.indptr[row]), np.uint64(rows.indptr[row + 1])):
        shared += spread[np.uint64(columns[entry])]
    return set_distance(shared, queries.squares[query] + rows.squares[row])


@compiled
def set_distance(shared: float, sizes: float) -> float:
    """Return the Jaccard distance of two sets with so many `shared` elements, by the sum of their sizes; 0 of empty."""
    return (sizes - 2.0 * shared) / (sizes - shared) if sizes > 0.0 else 0.0


@compiled
def spread_out(rows: CompressedRows, row: int) -> None:
    """Spread a row out over all columns, instead of the one that was there."""
    before = rows.spread_row[0]
    if before >= 0:
        for entry in range(rows.indptr[before], rows.indptr[before + 1]):
            rows.spread[rows.columns[entry]] = 0.0
    for entry in range(rows.indptr[row], rows.indptr[row + 1]):
        rows.spread[rows.columns[entry]] = rows.values[entry]
    rows.spread_row[0] = row


@compiled
def _merged_distance(queries: CompressedRows, query: int, rows: CompressedRows, row: int) -> float:
    """Return a squared distance as the sum of squared differences, column by column."""
    i, last_i = queries.indptr[query], queries.indptr[query + 1]
    j, last_j = rows.indptr[row], rows.indptr[row + 1]
    total = 0.0
    while i < last_i or j < last_j:
        at_i = i < last_i and (j == last_j or queries.columns[i] <= rows.columns[j])
        at_j = j < last_j and (i == last_i or rows.columns[j] <= queries.columns[i])
        one = np.float64(queries.values[i]) if at_i else 0.0
        other = np.float64(rows.values[j]) if at_j else 0.0
        total += (one - other) * (one - other)
        i += np.int64(at_i)
        j += np.int64(at_j)
    return total


@compiled
def projected_rows(
    indptr: np.ndarray, columns: np.ndarray, values: np.ndarray, axes: np.ndarray, origin: np.ndarray, unit: float
) -> np.ndarray:
    """Return (rows @ axes - origin) * unit of sparse rows, (n, s) float32: each row separately, summed in float64."""
    projected, total = np.empty((indptr.size - 1, origin.size), np.float32), np.empty(origin.size)
    for row in range(indptr.size - 1):
        total[:] = -origin
        for entry in range(indptr[row], indptr[row + 1]):
            column, value = np.uint64(columns[entry]), np.float64(values[entry])
            for axis in range(np.uint64(origin.size)):
                total[axis] += value * axes[column, axis]
        for axis in range(np.uint64(origin.size)):
            projected[row, axis] = np.float32(total[axis] * unit)
    return projected


def about_center(points: Points, center: np.ndarray) -> tuple[Points, np.ndarray]:
    """Return points (n, D) in float64, less a centre unless they are sparse, and their squared lengths (n,)."""
    if sp.issparse(points):
        lines = points.astype(np.float64)
        return lines, squared_lengths(lines.indptr, lines.data)
    lines = points - center
    return lines, np.einsum("ij,ij->i", lines, lines)


def dense_rows(rows: Points) -> np.ndarray:
    """Return rows (n, D) dense: an array as it is."""
    return rows.toarray() if sp.issparse(rows) else rows


def jaccard_distances(queries: Points, rows: Points) -> np.ndarray:
    """Return the Jaccard distances (m, n) float64 of sets (m, D) and (n, D) bool; 0 of two empty ones.

    Products in float32 are exact: they count up to 2**24 elements.
    """
    shared = dense_rows(queries.astype(np.float32) @ rows.T.astype(np.float32)).astype(np.float64)
    return _jaccard(shared, np.add.outer(sizes_of_sets(queries), sizes_of_sets(rows)) - shared)


def jaccard_of_pairs(sets: Points, others: Points) -> np.ndarray:
    """Return the Jaccard distance (n,) float64 of each of some sets (n, D) bool to that of others, as above."""
    shared = sizes_of_sets(sets.multiply(others) if sp.issparse(sets) else sets & others).astype(np.float64)
    return _jaccard(shared, sizes_of_sets(sets) + sizes_of_sets(others) - shared)


def sizes_of_sets(sets: Points) -> np.ndarray:
    """Return how many elements sets (n, D) bool have: (n,) int64."""
    return np.asarray(sets.sum(axis=1)).ravel()


def _jaccard(shared: np.ndarray, together: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 - np.divide(shared, together, out=np.ones_like(shared), where=together > 0))


def dense_tiles(rows: Points) -> Iterator[np.ndarray]:
    """Yield rows (n, D) dense: an array in one piece, sparse rows by tiles."""
    if not sp.issparse(rows):
        yield rows
        return
    for tile in slices(rows.shape[0], TILE_ROWS):
        yield rows[tile].toarray()


@compiled
def copy_rows(
    source: tuple[np.ndarray, np.ndarray, np.ndarray],
    rows: np.ndarray,
    target: tuple[np.ndarray, np.ndarray, np.ndarray],
    places: np.ndarray,
) -> None:
    """Copy sparse rows into others of the same lengths.

    Parameters
    ----------
    source, target : (indptr, columns, values) in CSR form; columns and values of the target are written
    rows, places : (m,) int, rows of the source, and where each goes in the target
    """
    for i in range(rows.size):
        start, first = source[0][rows[i]], target[0][places[i]]
        for entry in range(source[0][rows[i] + 1] - start):
            target[1][first + entry] = source[1][start + entry]
            target[2][first + entry] = source[2][start + entry]
