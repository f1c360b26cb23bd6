"""Symmetric affinities W = (P + P^T) / 2 from fixed-width rows, one block of rows at a time.

A block of W holds its own rows of P (forward edges) and the rows of P that point into it (incoming edges). The two
halves of an entry are summed apart, in ascending source order, and added once: floating-point addition commutes, so
w_ij and w_ji have the same bits. Source: [EA] 2.1.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.graph.directed_edges import DirectedEdges
from scalemani.kernels.machine.compile import compiled


class SymmetricRows(NamedTuple):
    """Consecutive rows of a symmetric sparse matrix in CSR form, columns ascending and distinct in each row."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


@compiled
def _insert(columns: np.ndarray, halves: np.ndarray, count: int, column: int, kind: int, value: float) -> int:
    """Add a value to the sorted entries of a row; return the new number of entries."""
    position = count
    while position > 0 and columns[position - 1] > column:
        position -= 1
    if position > 0 and columns[position - 1] == column:
        halves[position - 1, kind] += value
        return count
    for entry in range(count, position, -1):
        columns[entry] = columns[entry - 1]
        for other in range(3):
            halves[entry, other] = halves[entry - 1, other]
    columns[position] = column
    for other in range(3):
        halves[position, other] = 0.0
    halves[position, kind] = value
    return count + 1


@compiled
def _sorted_row(columns: np.ndarray, kinds: np.ndarray, values: np.ndarray, halves: np.ndarray) -> int:
    """Merge a row's unordered edges in place: distinct ascending columns, sums by kind in `halves`; return how many.

    Hubs have rows of thousands of edges, so long rows are ordered by a stable sort first: insertion is then linear.
    """
    order = np.argsort(columns, kind="mergesort") if columns.shape[0] > 64 else np.arange(columns.shape[0])
    ordered = columns[order]
    count = 0
    for edge in range(order.shape[0]):
        count = _insert(columns, halves, count, ordered[edge], kinds[order[edge]], values[order[edge]])
    return count


@compiled
def _merge_rows(
    indices: np.ndarray,
    values: np.ndarray,
    start: int,
    incoming: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    extra: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    out: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Fill `out` (indptr, indices, values) with the rows; incoming and extra are (offsets, order, sources, values)."""
    n_rows, width = indices.shape
    indptr, out_indices, out_values = out
    n_entries = 0
    for row in range(n_rows):
        first, last = incoming[0][row], incoming[0][row + 1]
        first_extra, last_extra = extra[0][row], extra[0][row + 1]
        bound = width + (last - first) + (last_extra - first_extra)
        columns = np.empty(bound, np.int64)
        kinds = np.empty(bound, np.int64)
        weights = np.empty(bound, np.float64)
        used = 0
        for column in range(width):
            if values[row, column] > 0:
                columns[used], kinds[used], weights[used] = indices[row, column], 0, values[row, column]
                used += 1
        for edge in range(first, last):
            source = incoming[1][edge]
            columns[used], kinds[used], weights[used] = incoming[2][source], 1, incoming[3][source]
            used += 1
        for edge in range(first_extra, last_extra):
            source = extra[1][edge]
            columns[used], kinds[used], weights[used] = extra[2][source], 2, extra[3][source]
            used += 1
        halves = np.empty((used, 3), np.float64)
        count = _sorted_row(columns[:used], kinds[:used], weights[:used], halves)
        for entry in range(count):
            out_indices[n_entries] = columns[entry]
            out_values[n_entries] = 0.5 * (halves[entry, 0] + halves[entry, 1]) + halves[entry, 2]
            n_entries += 1
        indptr[row + 1] = n_entries


def symmetric_rows(
    indices: np.ndarray, values: np.ndarray, start: int, incoming: DirectedEdges, extra: DirectedEdges | None = None
) -> SymmetricRows:
    """Return rows [start, start + n) of W = (P + P^T) / 2 + E, bit-symmetric over all blocks.

    Parameters
    ----------
    indices : (n, k) int, the neighbours of these rows
    values : (n, k) float, their affinities, these rows of P; entries that are not positive are no edges
    start : global number of the first row
    incoming : all edges of P that end in these rows, sources ascending: `incoming_edges` of all sources, joined
    extra : E, edges added at full weight, such as bridges between components; each must be given in both directions,
        one to itself once, and those that end in these rows are used. Default none

    Returns
    -------
    SymmetricRows: indptr int64, indices in the dtype of `indices`, values summed in float64 and rounded once to the
    dtype of `values`
    """
    n_rows = indices.shape[0]
    incoming = incoming if len(incoming.targets) else _no_edges(indices, values)
    extra = _rows_of(extra, start, start + n_rows) if extra is not None else _no_edges(indices, values)
    sides = []
    for edges in (incoming, extra):
        order, offsets = group_by(edges.targets, n_rows, start)
        sides.append((offsets, order, edges.sources, edges.values))
    bound = indices.size + len(incoming.targets) + len(extra.targets)
    indptr = np.zeros(n_rows + 1, np.int64)
    out = (indptr, np.empty(bound, indices.dtype), np.empty(bound, values.dtype))
    _merge_rows(indices, values, start, sides[0], sides[1], out)
    return SymmetricRows(indptr, out[1][: indptr[-1]].copy(), out[2][: indptr[-1]].copy())


def _no_edges(indices: np.ndarray, values: np.ndarray) -> DirectedEdges:
    return DirectedEdges(np.empty(0, indices.dtype), np.empty(0, indices.dtype), np.empty(0, values.dtype))


def _rows_of(edges: DirectedEdges, start: int, stop: int) -> DirectedEdges:
    inside = (edges.targets >= start) & (edges.targets < stop)
    return DirectedEdges(edges.targets[inside], edges.sources[inside], edges.values[inside])


@compiled
def row_sums(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Return the sum of each CSR row, in column order: the degrees of a block of W.

    Parameters
    ----------
    values : (E,) float32 or float64
    indptr : (n + 1,) int

    Returns
    -------
    (n,) float64
    """
    sums = np.zeros(indptr.shape[0] - 1, np.float64)
    for row in range(sums.shape[0]):
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            total += values[entry]
        sums[row] = total
    return sums
