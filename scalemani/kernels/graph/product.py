"""Products of the normalised affinities S = D^-1/2 W D^-1/2 with a block of vectors, over CSR rows.

One pass reads each row of W once and gathers m contiguous columns per nonzero: the time is that of the gathers, and 64
columns cost some three times as much as eight. Four neighbours are added at a time, which spares three in four loads
and stores of the sums, while the rows of those that come next are prefetched. Sums are float64: they cost as much as
float32 here. The step of a multigrid smoother is a product with a different end, so that no array is made between; and
the means of neighbours place points that have no coordinates.
"""

import functools
from typing import Any

import numpy as np

from scalemani.kernels.machine.compile import compiled, compiled_sums, inlined_sums
from scalemani.kernels.machine.instructions import prefetch_row

_1, _2, _3, GROUP = (np.uint64(i) for i in range(1, 5))
AHEAD = np.uint64(16)  # nonzeros between the one that is added and the one that is prefetched

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # (indptr, indices, values) of consecutive rows in CSR form


def _on_unsigned_indices(kernel: Any) -> Any:
    """Return a kernel on rows whose indices are unsigned: that spares the test for negative ones of Python's rules."""

    @functools.wraps(kernel)
    def with_unsigned_indices(rows: Rows, *arguments: Any) -> None:
        indptr, indices, values = rows
        kernel((indptr, indices.view(f"u{indices.itemsize}"), values), *arguments)

    return with_unsigned_indices


@inlined_sums
def _row_sums(rows: Rows, row: int, source_scale: np.ndarray, vectors: np.ndarray, sums: np.ndarray) -> None:
    """Write the sum over the neighbours n of a row of value * source_scale[n] * vectors[n] into `sums` (m,)."""
    indptr, indices, values = rows
    n_columns = np.uint64(vectors.shape[1])
    for column in range(n_columns):
        sums[column] = 0.0
    entry, stop, last = np.uint64(indptr[row]), np.uint64(indptr[row + 1]), np.uint64(indices.size - 1)
    while entry + GROUP <= stop:
        for following in range(entry + AHEAD, entry + AHEAD + GROUP):
            prefetch_row(vectors, np.int64(indices[min(following, last)]))
        a, b, c, d = indices[entry], indices[entry + _1], indices[entry + _2], indices[entry + _3]
        of_a, of_b = values[entry] * source_scale[a], values[entry + _1] * source_scale[b]
        of_c, of_d = values[entry + _2] * source_scale[c], values[entry + _3] * source_scale[d]
        for column in range(n_columns):
            sums[column] += (
                of_a * np.float64(vectors[a, column])
                + of_b * np.float64(vectors[b, column])
                + of_c * np.float64(vectors[c, column])
                + of_d * np.float64(vectors[d, column])
            )
        entry += GROUP
    while entry < stop:
        a = indices[entry]
        of_a = values[entry] * source_scale[a]
        for column in range(n_columns):
            sums[column] += of_a * np.float64(vectors[a, column])
        entry += _1


@_on_unsigned_indices
@compiled_sums
def normalized_product(rows: Rows, inverse_roots: np.ndarray, start: int, vectors: np.ndarray, out: np.ndarray) -> None:
    """Write rows [start, start + n) of S X.

    Parameters
    ----------
    rows : (indptr, indices, values) of these rows of W in CSR form; indptr and indices int, values float
    inverse_roots : (N,) float64, degrees to the power -1/2
    vectors : X, (N, m) float32 or float64, C-contiguous
    out : (n, m) in the dtype of `vectors`
    """
    sums = np.empty(vectors.shape[1], np.float64)
    for row in range(out.shape[0]):
        _row_sums(rows, row, inverse_roots, vectors, sums)
        target, scale = out[row], inverse_roots[start + row]
        for column in range(out.shape[1]):
            target[column] = scale * sums[column]


@_on_unsigned_indices
@compiled_sums
def smoothed(
    rows: Rows,
    inverse_roots: np.ndarray,
    smoothing: np.ndarray,
    start: int,
    right: np.ndarray,
    guess: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the Jacobi step guess + diag(smoothing) (right - (I - S) guess).

    Parameters
    ----------
    rows, inverse_roots, start : as of `normalized_product`
    smoothing : (N,) float64, damping over the diagonal of I - S
    right : (N, m) float32 or float64, C-contiguous
    guess : (N, m) in the dtype of `right`, C-contiguous
    out : (n, m) in that dtype, no part of `guess`
    """
    sums = np.empty(right.shape[1], np.float64)
    for row in range(out.shape[0]):
        _row_sums(rows, row, inverse_roots, guess, sums)
        node = start + row
        old, wanted, target = guess[node], right[node], out[row]
        share, scale = smoothing[node], inverse_roots[node]
        for column in range(out.shape[1]):
            target[column] = old[column] + share * (wanted[column] - old[column] + scale * sums[column])


@_on_unsigned_indices
@compiled_sums
def dirichlet_energies(rows: Rows, start: int, vectors: np.ndarray, out: np.ndarray) -> None:
    """Write what rows [start, start + n) add to v^T L v: the sum over neighbours m of w_nm (v_n - v_m)^2 / 2.

    Vectors v are (N, m) float32 or float64, `out` (n, m) float64. Sums of squares are never below zero, and small ones
    keep their relative accuracy, which v^T D v - v^T W v loses.
    """
    indptr, indices, values = rows
    for row in range(out.shape[0]):
        target, vector = out[row], vectors[start + row]
        for column in range(out.shape[1]):
            target[column] = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            other, half = vectors[indices[entry]], 0.5 * values[entry]
            for column in range(out.shape[1]):
                difference = np.float64(vector[column]) - np.float64(other[column])
                target[column] += half * difference * difference


@compiled
def _neighbor_means(
    rows: Rows,
    positions: np.ndarray,
    known: np.ndarray,
    places: np.ndarray,
    means: np.ndarray,
) -> None:
    indptr, indices, values = rows
    for at in range(places.shape[0]):
        row, total = places[at], 0.0
        means[at] = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            neighbor = indices[entry]
            if known[neighbor]:
                total += values[entry]
                for column in range(positions.shape[1]):
                    means[at, column] += values[entry] * positions[neighbor, column]
        for column in range(positions.shape[1]):
            means[at, column] = means[at, column] / total if total > 0.0 else np.nan


def spread_to_neighbors(rows: Rows, positions: np.ndarray, numbers: np.ndarray | None = None) -> np.ndarray:
    """Fill rows of NaN with the affinity-weighted mean of their neighbours that have a position; return their numbers.

    Points next to those with a position come first, then the points next to these. Points that no path leads to are put
    in the middle of those that had a position.

    Parameters
    ----------
    rows : rows (n, N) of W
    positions : (N, d) float64, filled in place; NaN in all columns of a row without a position
    numbers : (n,) int64, ascending, the numbers of these rows, all that lack a position among them; None: all N
    """
    known = ~np.isnan(positions[:, 0])
    middle, filled = positions[known].mean(axis=0), np.flatnonzero(~known)
    waiting = filled
    while len(waiting):
        means = np.empty((len(waiting), positions.shape[1]))
        places = waiting if numbers is None else np.searchsorted(numbers, waiting)
        _neighbor_means(tuple(rows), positions, known, places, means)
        reached = ~np.isnan(means[:, 0])
        if not reached.any():
            positions[waiting] = middle
            break
        positions[waiting[reached]] = means[reached]
        known[waiting[reached]] = True
        waiting = waiting[~reached]
    return filled
