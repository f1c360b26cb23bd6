"""Symmetric affinities W = (P + P^T) / 2 from fixed-width rows, one block of rows at a time.

A block of W holds its own rows of P (forward edges) and the rows of P that point into it (incoming edges). The two
halves of an entry are summed apart, in ascending source order, and added once: floating-point addition commutes, so
w_ij and w_ji have the same bits. Source: [EA] 2.1.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.machine.compile import compiled


class DirectedEdges(NamedTuple):
    """Directed edges with global row numbers, sources ascending: three arrays of shape (E,)."""

    targets: np.ndarray
    sources: np.ndarray
    values: np.ndarray


class SymmetricRows(NamedTuple):
    """Consecutive rows of a symmetric sparse matrix in CSR form, columns ascending and distinct in each row."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


@compiled
def _count_by_block(
    indices: np.ndarray, values: np.ndarray, block_rows: int, places: np.ndarray, counts: np.ndarray
) -> None:
    first, last, place = 0, 0, -1
    for row in range(indices.shape[0]):
        for column in range(indices.shape[1]):
            if values[row, column] > 0:
                target = indices[row, column]
                if not first <= target < last:  # else the block is that of the entry before
                    block = target // block_rows
                    first, last, place = block * block_rows, (block + 1) * block_rows, places[block]
                if place >= 0:
                    counts[place] += 1


@compiled
def _fill_by_block(
    indices: np.ndarray,
    values: np.ndarray,
    source_start: int,
    blocks: tuple[int, np.ndarray, np.ndarray],
    edges: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    block_rows, places, next_edges = blocks
    targets, sources, weights = edges
    first, last, place = 0, 0, -1
    for row in range(indices.shape[0]):
        for column in range(indices.shape[1]):
            if values[row, column] > 0:
                target = indices[row, column]
                if not first <= target < last:
                    block = target // block_rows
                    first, last, place = block * block_rows, (block + 1) * block_rows, places[block]
                if place >= 0:
                    edge = next_edges[place]
                    targets[edge], sources[edge] = target, source_start + row
                    weights[edge] = values[row, column]
                    next_edges[place] = edge + 1


def incoming_edges(
    indices: np.ndarray, values: np.ndarray, source_start: int, block_rows: int, blocks: Sequence[int]
) -> list[DirectedEdges]:
    """Return the edges of some source rows that end in each of some blocks of rows, in the order of their sources.

    Parameters
    ----------
    indices : (n, k) int, the neighbours of rows [source_start, source_start + n)
    values : (n, k) float, their affinities; entries that are not positive are no edges
    source_start : global number of the first of these rows
    block_rows : rows of a block: block b holds the global rows [b * block_rows, (b + 1) * block_rows)
    blocks : the m blocks in which edges are to end

    Returns
    -------
    m DirectedEdges, rows in the dtype of `indices`; each has memory of its own
    """
    last_block = max(int(indices.max(initial=0)) // block_rows, *blocks)
    places = np.full(last_block + 1, -1, np.int64)
    places[list(blocks)] = np.arange(len(blocks))
    counts = np.zeros(len(blocks), np.int64)
    _count_by_block(indices, values, block_rows, places, counts)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    size = int(offsets[-1])
    edges = (np.empty(size, indices.dtype), np.empty(size, indices.dtype), np.empty(size, values.dtype))
    _fill_by_block(indices, values, source_start, (block_rows, places, offsets[:-1].copy()), edges)
    parts = (slice(first, last) for first, last in itertools.pairwise(offsets))
    return [DirectedEdges(*(array[part].copy() for array in edges)) for part in parts]


def join_edges(parts: list[DirectedEdges]) -> DirectedEdges:
    """Return the edges of several source blocks, given in ascending order of their rows, as one set."""
    return DirectedEdges(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def loop_edges(values: np.ndarray, start: int) -> DirectedEdges:
    """Return the edges of rows [start, start + n) to themselves, by their values (n,); zeros are no edges."""
    rows = np.flatnonzero(values > 0)
    return DirectedEdges(start + rows, start + rows, values[rows])


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
