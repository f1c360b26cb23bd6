"""Squared Euclidean distances of two rows, by direct difference, and Jaccard distances of sets of bits.

The expansion |a|^2 - 2ab + |b|^2 is never used here: at an offset of 1e8 it returns noise and negative squares. There
are four functions, which round differently:

squared_row_distance: points; float64 (exact for bytes), in blocks, abandoned beyond a limit.
set_row_distance: sets of bits; exact but for one division. It is a square of a distance too.
squared_distance_in_one_sum: points; float64, one sum over all coordinates.
sketch_distance: sketches; float32 (exact for int8).
"""

from typing import Any

import numba
import numpy as np
from numba.extending import overload

from scalemani.kernels.machine.compile import INLINED, INLINED_SUMS, inlined_sums
from scalemani.kernels.machine.instructions import count_bits, prefetch_row
from scalemani.kernels.rows.compressed import CompressedRows, set_distance_of_compressed, squared_distance_of_compressed

# Dimensions between two looks at the limit. Loops of a fixed length are half again as quick as others.
BYTE_BLOCK = np.uint64(256)
FLOAT_BLOCK = np.uint64(128)

BYTE_TYPES = ("uint8", "int8")
PREFETCH_BYTES = 4096  # the hardware prefetcher keeps up with longer rows by itself
Rows = np.ndarray | CompressedRows


def comparable(points: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two tables whose rows the functions of this file can compare.

    Parameters
    ----------
    points, others : (n, D) and (m, D) real

    Returns
    -------
    Both tables C-contiguous and of one dtype: theirs where it is the same, else float64
    """
    dtype = points.dtype if points.dtype == others.dtype else np.dtype(np.float64)
    return np.ascontiguousarray(points, dtype=dtype), np.ascontiguousarray(others, dtype=dtype)


def squared_row_distance(queries: Rows, query: int, rows: Rows, row: int, limit: float) -> float:
    """Return the squared distance of a row of one table and a row of another, or a partial sum above a limit.

    For compiled code. One-byte integers are summed in integers, exactly; all else is differenced and summed in
    float64. The order of summation does not depend on `limit`, and swapping the two rows gives the same bits. Tables
    and row numbers are taken because a slice costs more than the distance of two rows of 784 bytes: its references
    are counted.

    Parameters
    ----------
    queries, rows : (n, D) and (u, D) of one real dtype, both dense or both sparse
    limit : float64; a result above it only says that the distance is above it too

    Returns
    -------
    float64
    """
    distance: Any = _squared_row_distance(queries, query, rows, row, limit)
    return float(distance(queries, query, rows, row, limit))


def set_row_distance(queries: Rows, query: int, rows: Rows, row: int, limit: float) -> float:
    """Return the Jaccard distance of a row of one table and a row of another, with any limit.

    For compiled code; the tables hold sets as `metrics.compared_rows` returns them, both dense or both sparse.
    """
    distance: Any = _set_row_distance(queries, query, rows, row, limit)
    return float(distance(queries, query, rows, row, limit))


def prefetch_for_distance(rows: Rows, row: int) -> None:
    """Ask for a row that will be compared, where that helps: rows that are dense and short. For compiled code."""


def sketch_distance(sketches: np.ndarray, row_a: int, row_b: int) -> np.float32:
    """Return the squared distance of two rows of `sketches` (N, s): float32, exact for int8 and s <= 256.

    For compiled code; `sketches` are float32 or int8.
    """
    distance = _byte_sketch_distance if sketches.dtype == np.int8 else _float_sketch_distance
    return distance(sketches, row_a, row_b)


@inlined_sums
def squared_distance_in_one_sum(a: np.ndarray, b: np.ndarray) -> float:
    """Return the squared distance of two rows (D,) of real dtypes, differenced and summed in float64."""
    total = 0.0
    for column in range(a.shape[0]):
        difference = np.float64(a[column]) - np.float64(b[column])
        total += difference * difference
    return total


def _byte_distance(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> float:
    i, j, n_dims = np.uint64(query), np.uint64(row), np.uint64(queries.shape[1])
    start, total = np.uint64(0), np.int64(0)
    while start < n_dims:
        # 16-bit differences and 32-bit sums become one multiply-add instruction for 32 bytes
        block = np.int32(0)
        if start + BYTE_BLOCK <= n_dims:
            for d in range(BYTE_BLOCK):
                difference = np.int16(np.int16(queries[i, start + d]) - np.int16(rows[j, start + d]))
                block = np.int32(block + np.int32(difference) * np.int32(difference))
        else:
            for d in range(n_dims - start):
                difference = np.int16(np.int16(queries[i, start + d]) - np.int16(rows[j, start + d]))
                block = np.int32(block + np.int32(difference) * np.int32(difference))
        total += np.int64(block)
        if np.float64(total) > limit:
            return np.float64(total)
        start += BYTE_BLOCK
    return np.float64(total)


def _float_distance(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> float:
    i, j, n_dims = np.uint64(query), np.uint64(row), np.uint64(queries.shape[1])
    start, total = np.uint64(0), 0.0
    while start < n_dims:
        block = 0.0
        if start + FLOAT_BLOCK <= n_dims:
            for d in range(FLOAT_BLOCK):
                difference = np.float64(queries[i, start + d]) - np.float64(rows[j, start + d])
                block += difference * difference
        else:
            for d in range(n_dims - start):
                difference = np.float64(queries[i, start + d]) - np.float64(rows[j, start + d])
                block += difference * difference
        total += block
        if total > limit:
            return total
        start += FLOAT_BLOCK
    return total


def _word_set_distance(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> float:
    i, j, shared, together = np.uint64(query), np.uint64(row), 0, 0
    for word in range(np.uint64(queries.shape[1])):
        one, other = queries[i, word], rows[j, word]
        shared += count_bits(one & other)
        together += count_bits(one | other)
    return (together - shared) / together if together > 0 else 0.0


def _byte_sketch_distance(sketches: np.ndarray, row_a: int, row_b: int) -> np.float32:
    a, b, total = np.uint64(row_a), np.uint64(row_b), np.int32(0)
    for d in range(np.uint64(sketches.shape[1])):
        difference = np.int16(np.int16(sketches[a, d]) - np.int16(sketches[b, d]))
        total = np.int32(total + np.int32(difference) * np.int32(difference))
    return np.float32(total)


def _float_sketch_distance(sketches: np.ndarray, row_a: int, row_b: int) -> np.float32:
    a, b, total = np.uint64(row_a), np.uint64(row_b), np.float32(0.0)
    for d in range(np.uint64(sketches.shape[1])):
        difference = sketches[a, d] - sketches[b, d]
        total += difference * difference
    return total


# numba asks for the annotations of the implementations; what comes here are tables, or numba types of these, and what
# goes is a function.
@overload(squared_row_distance, jit_options=INLINED_SUMS)
def _squared_row_distance(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> float:
    def of_compressed(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> float:
        return squared_distance_of_compressed(queries, query, rows, row)

    if is_compressed(queries):
        return of_compressed
    return _byte_distance if str(queries.dtype) in BYTE_TYPES else _float_distance


@overload(set_row_distance, jit_options=INLINED_SUMS)
def _set_row_distance(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> float:
    def of_compressed(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> float:
        return set_distance_of_compressed(queries, query, rows, row)

    return of_compressed if is_compressed(queries) else _word_set_distance


@overload(prefetch_for_distance, jit_options=INLINED)
def _prefetch_for_distance(rows: np.ndarray, row: int) -> None:
    def of_array(rows: np.ndarray, row: int) -> None:
        if rows.itemsize * rows.shape[1] <= PREFETCH_BYTES:
            prefetch_row(rows, row)

    def of_compressed(rows: np.ndarray, row: int) -> None:
        pass

    return of_compressed if is_compressed(rows) else of_array


def is_compressed(table: Any) -> bool:
    """Return whether a table, or a type of numba, is that of sparse rows."""
    return getattr(table, "instance_class", type(table)) is CompressedRows


@overload(sketch_distance, jit_options=INLINED_SUMS)
def _sketch_distance(sketches: np.ndarray, row_a: int, row_b: int) -> np.float32:
    return _byte_sketch_distance if sketches.dtype == numba.int8 else _float_sketch_distance
