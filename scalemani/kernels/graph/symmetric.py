"""Symmetric affinities W = (P + P^T) / 2 from fixed-width rows, one block of rows at a time.

A block of W holds its rows of P (forward edges) and the rows of P that point into it (incoming edges, grouped by the
block of rows that they end in). The two halves of an entry are summed apart, in ascending source order, and added once:
floating-point addition commutes, so w_ij and w_ji have the same bits. Source: [EA] 2.1.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.machine.compile import compiled

PLACE_BITS = 32  # of a key: columns take the 31 bits above, and a row has fewer places than that
PLACE_MASK = (1 << PLACE_BITS) - 1
NO_EDGE = 2**63 - 1
NO_COLUMN = NO_EDGE >> PLACE_BITS  # beyond all that there are


class DirectedEdges(NamedTuple):
    """Directed edges with global row numbers, sources ascending: three arrays of shape (E,)."""

    targets: np.ndarray
    sources: np.ndarray
    values: np.ndarray


def incoming_edges(
    indices: np.ndarray, values: np.ndarray, source_start: int, block_rows: int, blocks: Sequence[int]
) -> list[DirectedEdges]:
    """Return the edges of some source rows that end in each of m blocks of rows, in the order of their sources.

    Block b holds the global rows [b * block_rows, (b + 1) * block_rows). Each set of edges has separate memory, rows in
    the dtype of `indices`.

    Parameters
    ----------
    indices : (n, k) int, the neighbours of rows [source_start, source_start + n)
    values : (n, k) float, their affinities; entries that are not positive are no edges
    """
    last_block = max(int(indices.max(initial=0)) // block_rows, *blocks)
    places = np.full(last_block + 1, -1, np.int32)
    places[list(blocks)] = np.arange(len(blocks))
    places_of_edges = places[indices // block_rows]
    places_of_edges[~(values > 0)] = -1
    order, offsets = group_by(places_of_edges.ravel(), len(blocks))
    edges = (order[first:last] for first, last in itertools.pairwise(offsets))
    targets, values, n_neighbors = indices.ravel(), values.ravel(), indices.shape[1]
    return [
        DirectedEdges(targets[some], (source_start + some // n_neighbors).astype(indices.dtype), values[some])
        for some in edges
    ]


def join_edges(parts: list[DirectedEdges]) -> DirectedEdges:
    """Return the edges of several source blocks, in ascending order of their rows, as one set."""
    return DirectedEdges(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def loop_edges(values: np.ndarray, start: int) -> DirectedEdges:
    """Return the edges of rows [start, start + n) to themselves, by their values (n,); zeros are no edges."""
    rows = np.flatnonzero(values > 0)
    return DirectedEdges(start + rows, start + rows, values[rows])


def both_ways(rows: np.ndarray, values: np.ndarray) -> DirectedEdges:
    """Return edges between the pairs `rows` (B, 2) in both directions, by their values (B,), in float32."""
    targets, sources = (ends.T.ravel().astype(np.int32) for ends in (rows, rows[:, ::-1]))
    return DirectedEdges(targets, sources, np.tile(values, 2).astype(np.float32))


class SymmetricRows(NamedTuple):
    """Consecutive rows of a symmetric sparse matrix in CSR form, columns ascending and distinct in each row."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def _sorted_edges(indices: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the edges of rows of P as keys (n, k) int64, columns in the upper bits and places in the lower.

    Keys are distinct, so that any sort leads to the same order: by column, then by place. What is no edge comes last.
    """
    keys = indices.astype(np.int64) << PLACE_BITS
    keys |= np.arange(keys.shape[1])
    keys[~(values > 0)] = NO_EDGE
    keys.sort(axis=1)
    return keys


@compiled
def _merge_rows(
    rows: tuple[int, np.ndarray, np.ndarray],
    incoming: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    extra: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    out: Rows,
) -> None:
    """Fill consecutive rows of `out` (indptr, indices, values) from three lists a row, each with ascending columns.

    `rows` are the number of the first, the edges of P as `_sorted_edges` returns them, and their values; incoming and
    extra are (offsets, order, sources, values) of all rows, sources ascending in a row.
    """
    first, keys, values = rows
    indptr, out_indices, out_values = out
    in_offsets, in_order, in_sources, in_values = incoming
    extra_offsets, extra_order, extra_sources, extra_values = extra
    n_entries = indptr[first]
    for number in range(keys.shape[0]):
        row, one, edges = first + number, 0, keys[number]
        two, last_two = in_offsets[row], in_offsets[row + 1]
        three, last_three = extra_offsets[row], extra_offsets[row + 1]
        while True:
            column = NO_COLUMN
            if one < edges.shape[0]:
                column = edges[one] >> PLACE_BITS
            if two < last_two:
                column = min(column, np.int64(in_sources[in_order[two]]))
            if three < last_three:
                column = min(column, np.int64(extra_sources[extra_order[three]]))
            if column == NO_COLUMN:
                break
            forward, backward, added = 0.0, 0.0, 0.0
            while one < edges.shape[0] and edges[one] >> PLACE_BITS == column:
                forward += values[number, edges[one] & PLACE_MASK]
                one += 1
            while two < last_two and in_sources[in_order[two]] == column:
                backward += in_values[in_order[two]]
                two += 1
            while three < last_three and extra_sources[extra_order[three]] == column:
                added += extra_values[extra_order[three]]
                three += 1
            out_indices[n_entries] = column
            out_values[n_entries] = 0.5 * (forward + backward) + added
            n_entries += 1
        indptr[row + 1] = n_entries


def symmetric_rows(
    indices: np.ndarray, values: np.ndarray, start: int, incoming: DirectedEdges, extra: DirectedEdges | None = None
) -> SymmetricRows:
    """Return rows [start, start + n) of W = (P + P^T) / 2 + E, bit-symmetric over all blocks.

    Values are summed in float64 and rounded once to their dtype.

    Parameters
    ----------
    indices : (n, k) int, the neighbours of these rows
    values : (n, k) float, their affinities, these rows of P; entries that are not positive are no edges
    incoming : all edges of P that end in these rows, sources ascending: `incoming_edges` of all sources, joined
    extra : E, edges added at full weight, such as bridges between components; each must be passed in both directions,
        one to itself once, and those that end in these rows are used
    """
    n_rows = indices.shape[0]
    incoming = incoming if len(incoming.targets) else _no_edges(indices, values)
    extra = _by_source(extra, start, start + n_rows) if extra is not None else _no_edges(indices, values)
    sides = []
    for edges in (incoming, extra):
        order, offsets = group_by(edges.targets, n_rows, start)
        sides.append((offsets, order, edges.sources, edges.values))
    bound = indices.size + len(incoming.targets) + len(extra.targets)
    indptr = np.zeros(n_rows + 1, np.int64)
    out = (indptr, np.empty(bound, indices.dtype), np.empty(bound, values.dtype))
    for tile in slices(n_rows, TILE_ROWS):  # keys take twice the room of the edges or more
        rows = tile.start, _sorted_edges(indices[tile], values[tile]), values[tile]
        _merge_rows(rows, sides[0], sides[1], out)
    return SymmetricRows(indptr, out[1][: indptr[-1]].copy(), out[2][: indptr[-1]].copy())


def _no_edges(indices: np.ndarray, values: np.ndarray) -> DirectedEdges:
    return DirectedEdges(np.empty(0, indices.dtype), np.empty(0, indices.dtype), np.empty(0, values.dtype))


def _by_source(edges: DirectedEdges, start: int, stop: int) -> DirectedEdges:
    """Return the edges that end in rows [start, stop), sources ascending."""
    inside = np.flatnonzero((edges.targets >= start) & (edges.targets < stop))
    order = inside[np.argsort(edges.sources[inside], kind="stable")]
    return DirectedEdges(edges.targets[order], edges.sources[order], edges.values[order])


def without_zeros(indptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> SymmetricRows:
    """Return rows in CSR form without entries that are zero, as float32 rounds the smallest affinities to."""
    if values.all():
        return SymmetricRows(indptr, indices, values)
    nonzero = values != 0
    counted = np.concatenate([np.zeros(1, indptr.dtype), np.cumsum(nonzero, dtype=indptr.dtype)])
    return SymmetricRows(counted[indptr], indices[nonzero], values[nonzero])


@compiled
def row_sums(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Return the sum (n,) float64 of each CSR row of `values` (E,), in column order: the degrees of a block of W."""
    sums = np.zeros(indptr.shape[0] - 1, np.float64)
    for row in range(sums.shape[0]):
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            total += values[entry]
        sums[row] = total
    return sums
