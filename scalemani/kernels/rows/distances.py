"""Exact squared Euclidean distances between two rows, by direct difference, in the dtype the points are stored in.

The expansion |a|^2 - 2ab + |b|^2 is never used here: at an offset of 1e8 it returns noise and negative squares.
"""

import numba
import numpy as np
from numba.extending import overload

from scalemani.kernels.machine.compile import REASSOCIATE

# Dimensions between two looks at the limit. Loops of a fixed length are half again as quick as others.
BYTE_BLOCK = np.uint64(256)
FLOAT_BLOCK = np.uint64(128)

BYTE_TYPES = (numba.uint8, numba.int8)


def squared_row_distance(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> float:
    """Return the squared distance of a row of `queries` and one of `rows`, or a partial sum above `limit`.

    Compiled code only; (n, D) and (u, D) of one dtype. One-byte integers are summed in integers (exact); all else is
    differenced and summed in float64. The order of summation does not depend on `limit`, and swapping the two rows
    gives the same bits. Matrices and row numbers are taken because a slice costs more than the distance of two rows
    of 784 bytes: its references are counted.
    """
    raise NotImplementedError("squared_row_distance is called from compiled code")


def squared_distance(a: np.ndarray, b: np.ndarray, limit: float) -> float:
    """Return what `squared_row_distance` does, for two rows (D,) at hand."""
    raise NotImplementedError("squared_distance is called from compiled code")


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


# numba asks for the annotations of the implementations; what comes here are numba types, what goes is a function.
@overload(squared_row_distance, jit_options={"nogil": True, "error_model": "numpy", "fastmath": set(REASSOCIATE)})
def _squared_row_distance(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> float:
    return _byte_distance if queries.dtype in BYTE_TYPES else _float_distance


@overload(squared_distance, jit_options={"nogil": True, "error_model": "numpy"})
def _squared_distance(a: np.ndarray, b: np.ndarray, limit: float) -> float:
    def of_rows(a: np.ndarray, b: np.ndarray, limit: float) -> float:
        return squared_row_distance(a.reshape((1, a.size)), 0, b.reshape((1, b.size)), 0, limit)

    return of_rows
