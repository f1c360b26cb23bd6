"""Lengths of shortest paths along a neighbour graph: Dijkstra's algorithm with a binary heap.

Source: Dijkstra, A note on two problems in connexion with graphs, 1959.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.machine.compile import compiled

NOT_REACHED = -1  # the place in the heap of a node that no path has led to


class UndirectedEdges(NamedTuple):
    """Edges by node, each of them at both of its ends: those of node i are [bounds[i], bounds[i + 1]).

    `bounds` (N + 1,) int64; `heads` (E,) int32, the other ends; `lengths` (E,) real, none below zero.
    """

    bounds: np.ndarray
    heads: np.ndarray
    lengths: np.ndarray


def undirected_edges(
    indices: np.ndarray, distances: np.ndarray, bridge_rows: np.ndarray, bridge_lengths: np.ndarray
) -> UndirectedEdges:
    """Return the edges of neighbour lists and bridges, each at both of its ends, once.

    Parameters
    ----------
    indices, distances : (N, k) int32 and real, the neighbours of each node and how far they are
    bridge_rows, bridge_lengths : (B, 2) int and (B,) real, further edges
    """
    counts = np.zeros(len(indices), np.int64)
    _count_edges(indices, counts)
    np.add.at(counts, bridge_rows.ravel(), 1)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    heads, lengths = np.empty(bounds[-1], np.int32), np.empty(bounds[-1], distances.dtype)
    free = bounds[:-1].copy()
    _place_edges(indices, distances, free, heads, lengths)
    for (one, other), length in zip(bridge_rows.tolist(), bridge_lengths.tolist(), strict=True):
        for tail, head in ((one, other), (other, one)):
            heads[free[tail]], lengths[free[tail]] = head, length
            free[tail] += 1
    return UndirectedEdges(bounds, heads, lengths)


@compiled
def _lists(indices: np.ndarray, row: int, wanted: int) -> bool:
    found = False
    for column in range(indices.shape[1]):
        found |= indices[row, column] == wanted
    return found


@compiled
def _count_edges(indices: np.ndarray, counts: np.ndarray) -> None:
    for row in range(indices.shape[0]):
        counts[row] += indices.shape[1]
        for column in range(indices.shape[1]):
            if not _lists(indices, indices[row, column], row):
                counts[indices[row, column]] += 1


@compiled
def _place_edges(
    indices: np.ndarray, distances: np.ndarray, free: np.ndarray, heads: np.ndarray, lengths: np.ndarray
) -> None:
    """Write each edge at the next free place of its ends; moves `free` (N,) on."""
    for row in range(indices.shape[0]):
        for column in range(indices.shape[1]):
            other = indices[row, column]
            heads[free[row]], lengths[free[row]] = other, distances[row, column]
            free[row] += 1
            if not _lists(indices, other, row):
                heads[free[other]], lengths[free[other]] = row, distances[row, column]
                free[other] += 1


def geodesic_distances(edges: UndirectedEdges, sources: np.ndarray) -> np.ndarray:
    """Return the lengths of the shortest paths from some nodes to all.

    Parameters
    ----------
    edges : of a graph of N nodes
    sources : (s,) int, nodes

    Returns
    -------
    (s, N) float64, infinite where no path leads. A path and its way back are summed in other orders, and may differ in
    the last bit
    """
    n_nodes = len(edges.bounds) - 1
    found = np.empty((len(sources), n_nodes))
    heap, places = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32)
    for distances, source in zip(found, sources, strict=True):
        _from_source(edges, int(source), distances, heap, places)
    return found


@compiled
def _from_source(
    edges: UndirectedEdges, source: int, distances: np.ndarray, heap: np.ndarray, places: np.ndarray
) -> None:
    """Write the distances (N,) of all nodes from one; `heap` and `places` (N,) int32 are room to work in."""
    distances[:] = np.inf
    places[:] = NOT_REACHED
    distances[source], heap[0], places[source], size = 0.0, source, 0, 1
    while size > 0:
        nearest = heap[0]
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            _sink(heap, size, places, distances)
        for edge in range(edges.bounds[nearest], edges.bounds[nearest + 1]):
            head = edges.heads[edge]
            length = distances[nearest] + np.float64(edges.lengths[edge])
            if length < distances[head]:
                distances[head] = length
                if places[head] == NOT_REACHED:
                    places[head] = size
                    size += 1
                _rise(heap, head, places, distances)


@compiled
def _rise(heap: np.ndarray, node: int, places: np.ndarray, distances: np.ndarray) -> None:
    """Move a node up from its place to where the one above is no farther."""
    place = places[node]
    while place > 0:
        above = (place - 1) // 2
        other = heap[above]
        if distances[other] <= distances[node]:
            break
        heap[place], places[other] = other, place
        place = above
    heap[place], places[node] = node, place


@compiled
def _sink(heap: np.ndarray, size: int, places: np.ndarray, distances: np.ndarray) -> None:
    """Move the first of `size` nodes down to where those below are no nearer."""
    node, place = heap[0], 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and distances[heap[below + 1]] < distances[heap[below]]:
            below += 1
        other = heap[below]
        if distances[node] <= distances[other]:
            break
        heap[place], places[other] = other, place
        place = below
    heap[place], places[node] = node, place
