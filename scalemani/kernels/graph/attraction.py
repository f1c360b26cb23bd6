"""The attractive half of an embedding's objective, over the rows of symmetric affinities in CSR form.

E+ = sum_nm w_nm a(|x_n - x_m|^2) with a(t) = t ("quadratic") or log(1 + t) ("student"), and its gradient
4 sum_m w_nm a'(t) (x_n - x_m). Source: [PH] 3.2, eqs. (3.3) and (3.4).

A pass reads 8 bytes a nonzero in order and gathers one point for each: rows in locality order find most of those in a
cache. Positions and sums are float64: they cost no more than float32 here, the gathers take the time.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.tiles import Mapper, row_panels, run
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.machine.compile import compiled, compiled_sums, inlined_sums
from scalemani.kernels.machine.vector_log import log_positive

LONGEST_ROW = 512  # distances of a row that are held at a time while its logarithms are taken


class AffinityRows(NamedTuple):
    """Symmetric affinities in CSR form: indptr (N + 1,) int64, indices (E,) uint32, values (E,) float32 or float64."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    @property
    def n_points(self) -> int:
        """The number of points N."""
        return len(self.indptr) - 1


@compiled_sums
def _plane_gradient(rows: Rows, positions: np.ndarray, student: bool, first: int, gradient: np.ndarray) -> None:
    indptr, indices, values = rows
    for row in range(gradient.shape[0]):
        n = first + row
        x, y = positions[n, 0], positions[n, 1]
        sum_x, sum_y = 0.0, 0.0
        start, stop = indptr[n], indptr[n + 1]
        columns, weights = indices[start:stop], values[start:stop]
        if student:
            for entry in range(columns.shape[0]):
                m = columns[entry]
                dx, dy = x - positions[m, 0], y - positions[m, 1]
                pull = weights[entry] / (1.0 + dx * dx + dy * dy)
                sum_x += pull * dx
                sum_y += pull * dy
        else:
            for entry in range(columns.shape[0]):
                m = columns[entry]
                sum_x += weights[entry] * (x - positions[m, 0])
                sum_y += weights[entry] * (y - positions[m, 1])
        gradient[row, 0], gradient[row, 1] = 4.0 * sum_x, 4.0 * sum_y


@compiled_sums
def _gradient(rows: Rows, positions: np.ndarray, student: bool, first: int, gradient: np.ndarray) -> None:
    indptr, indices, values = rows
    n_dims = positions.shape[1]
    sums = np.empty(n_dims, np.float64)
    for row in range(gradient.shape[0]):
        n = first + row
        for d in range(n_dims):
            sums[d] = 0.0
        for entry in range(indptr[n], indptr[n + 1]):
            m = indices[entry]
            pull = np.float64(values[entry])
            if student:
                square = 1.0
                for d in range(n_dims):
                    difference = positions[n, d] - positions[m, d]
                    square += difference * difference
                pull /= square
            for d in range(n_dims):
                sums[d] += pull * (positions[n, d] - positions[m, d])
        for d in range(n_dims):
            gradient[row, d] = 4.0 * sums[d]


@inlined_sums
def _log_sum(squares: np.ndarray, weights: np.ndarray, count: int) -> float:
    total = 0.0
    for entry in range(count):
        total += weights[entry] * log_positive(1.0 + squares[entry])
    return total


@inlined_sums
def _sum(squares: np.ndarray, weights: np.ndarray, count: int) -> float:
    total = 0.0
    for entry in range(count):
        total += weights[entry] * squares[entry]
    return total


@compiled
def _energy(rows: Rows, positions: np.ndarray, student: bool, first: int, last: int) -> float:
    indptr, indices, values = rows
    n_dims = positions.shape[1]
    squares, weights = np.empty(LONGEST_ROW, np.float64), np.empty(LONGEST_ROW, np.float64)
    total = 0.0
    for n in range(first, last):
        for start in range(indptr[n], indptr[n + 1], LONGEST_ROW):
            stop = min(start + LONGEST_ROW, indptr[n + 1])
            for entry in range(start, stop):
                m = indices[entry]
                square = 0.0
                for d in range(n_dims):
                    difference = positions[n, d] - positions[m, d]
                    square += difference * difference
                squares[entry - start] = square
                weights[entry - start] = values[entry]
            total += _log_sum(squares, weights, stop - start) if student else _sum(squares, weights, stop - start)
    return total


def attraction_gradient(
    rows: AffinityRows, positions: np.ndarray, kernel: str, out: np.ndarray, over: Mapper = map
) -> np.ndarray:
    """Write the gradient of E+ of N points at positions (N, d) float64 into `out` (N, d) float64 and return it.

    The kernel is "quadratic" or "student".
    """
    fill, csr, student = _plane_gradient if positions.shape[1] == 2 else _gradient, tuple(rows), kernel == "student"
    run(over(lambda part: fill(csr, positions, student, part.start, out[part]), row_panels(rows.n_points)))
    return out


def attraction_energy(rows: AffinityRows, positions: np.ndarray, kernel: str, over: Mapper = map) -> float:
    """Return E+ of N points at positions (N, d) float64, with the kernel "quadratic" or "student"."""
    csr, student, parts = tuple(rows), kernel == "student", row_panels(rows.n_points)
    return float(sum(over(lambda part: _energy(csr, positions, student, part.start, part.stop), parts)))
