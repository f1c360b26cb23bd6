"""Edges of fixed-width rows by the block of rows that they end in."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled

SETS_AT_ONCE = 64  # of edges that are joined: of few edges a set takes more than these do


class DirectedEdges(NamedTuple):
    """Directed edges with global row numbers, sources ascending: three arrays of shape (E,)."""

    targets: np.ndarray
    sources: np.ndarray
    values: np.ndarray


@compiled
def _sort_by_block(
    indices: np.ndarray,
    values: np.ndarray,
    source_start: int,
    blocks: tuple[int, np.ndarray, np.ndarray],
    edges: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
) -> None:
    """Write each edge at the next free place of its block and move that place on; without `edges`, only count them.

    `blocks` are the rows of a block, the place of each block among those that count (-1: none), and the next edges.
    """
    block_rows, places, next_edges = blocks
    first, last, place = 0, 0, -1
    for row in range(indices.shape[0]):
        for column in range(indices.shape[1]):
            if values[row, column] > 0:
                target = indices[row, column]
                if not first <= target < last:  # else the block is that of the entry before
                    block = target // block_rows
                    first, last, place = block * block_rows, (block + 1) * block_rows, places[block]
                if place >= 0:
                    edge = next_edges[place]
                    if edges is not None:
                        edges[0][edge], edges[1][edge] = target, source_start + row
                        edges[2][edge] = values[row, column]
                    next_edges[place] = edge + 1


def incoming_edges(
    indices: np.ndarray, values: np.ndarray, source_start: int, block_rows: int, blocks: Sequence[int]
) -> list[DirectedEdges]:
    """Return the edges of some source rows that end in each of m blocks of rows, in the order of their sources.

    Block b holds the global rows [b * block_rows, (b + 1) * block_rows). Each set of edges has memory of its own, rows
    in the dtype of `indices`.

    Parameters
    ----------
    indices : (n, k) int, the neighbours of rows [source_start, source_start + n)
    values : (n, k) float, their affinities; entries that are not positive are no edges
    """
    last_block = max(int(indices.max(initial=0)) // block_rows, *blocks)
    places = np.full(last_block + 1, -1, np.int64)
    places[list(blocks)] = np.arange(len(blocks))
    counts = np.zeros(len(blocks), np.int64)
    _sort_by_block(indices, values, source_start, (block_rows, places, counts), None)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    size = int(offsets[-1])
    edges = (np.empty(size, indices.dtype), np.empty(size, indices.dtype), np.empty(size, values.dtype))
    _sort_by_block(indices, values, source_start, (block_rows, places, offsets[:-1].copy()), edges)
    parts = (slice(first, last) for first, last in itertools.pairwise(offsets))
    return [DirectedEdges(*(array[part].copy() for array in edges)) for part in parts]


def join_edges(parts: list[DirectedEdges]) -> DirectedEdges:
    """Return the edges of several source blocks, given in ascending order of their rows, as one set."""
    return DirectedEdges(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class GatheredEdges:
    """The edges that end in one block of rows, as they come from one source block after the other.

    Most source blocks have none. Sets of few edges are joined as they come, as each takes half a kilobyte itself.
    """

    def __init__(self) -> None:
        self._joined: list[DirectedEdges] = []
        self._single: list[DirectedEdges] = []

    def add(self, edges: DirectedEdges) -> None:
        """Add the edges of the next source block."""
        if len(edges.targets) or not self._single:  # the first one says of what types the arrays are
            self._single.append(edges)
        if len(self._single) == SETS_AT_ONCE:
            self._joined.append(join_edges(self._single))
            self._single = []

    def take(self) -> DirectedEdges:
        """Return all edges as one set; none of them is held here any more."""
        edges = join_edges(self._joined + self._single)
        self._joined, self._single = [], []
        return edges


def loop_edges(values: np.ndarray, start: int) -> DirectedEdges:
    """Return the edges of rows [start, start + n) to themselves, by their values (n,); zeros are no edges."""
    rows = np.flatnonzero(values > 0)
    return DirectedEdges(start + rows, start + rows, values[rows])
