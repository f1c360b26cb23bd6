"""Orders in which the rows of a tile are solved: by a spanning tree, along a path, as they stand, and at random.

Each takes squared distances (n, k), neighbours (n, k) counted from the tile's first row, of which those outside of the
tile are passed over (None where an order needs none), and the seed and tile that key draws. It returns the sequence and
the row that each starts from, (n,) int64, -1 for none. Source: [EA] 2.3.4.
"""

import numpy as np

from scalemani.kernels.affinities.entropic import NO_PARENT, in_sequence
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.arrays.grouping import group_by, unite
from scalemani.kernels.machine.compile import compiled

DRAWS_STAGE = "affinity order"


def mst(
    squared_distances: np.ndarray, local_indices: np.ndarray, seed: int, tile: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of a minimum spanning forest of the tile's edges."""
    return spanning_forest(local_indices, squared_distances)


def path(
    squared_distances: np.ndarray, local_indices: np.ndarray, seed: int, tile: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of a path from neighbour to neighbour."""
    permutation = generator(seed, DRAWS_STAGE, tile).permutation(len(squared_distances))
    return in_sequence(spanning_path(local_indices, permutation))


def raster(
    squared_distances: np.ndarray, local_indices: np.ndarray | None, seed: int, tile: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows as they stand."""
    return in_sequence(np.arange(len(squared_distances)))


def random(
    squared_distances: np.ndarray, local_indices: np.ndarray | None, seed: int, tile: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows in an order that is drawn."""
    return in_sequence(generator(seed, DRAWS_STAGE, tile).permutation(len(squared_distances)))


@compiled
def spanning_path(local_indices: np.ndarray, permutation: np.ndarray) -> np.ndarray:
    """Return a path over all rows: on to the nearest neighbour not yet visited, else to the next such row of a draw.

    Parameters
    ----------
    local_indices : (n, k) int, neighbours, nearest first; others than rows 0 to n - 1 are passed over
    permutation : (n,) int64, of the rows

    Returns
    -------
    (n,) int64

    References
    ----------
    [EA] algorithm 2.
    """
    n_rows, n_neighbors = local_indices.shape
    visited = np.zeros(n_rows, dtype=np.bool_)
    path = np.empty(n_rows, dtype=np.int64)
    row = np.int64(-1)
    next_draw = 0
    for position in range(n_rows):
        following = np.int64(-1)
        if row >= 0:
            for m in range(n_neighbors):
                neighbor = np.int64(local_indices[row, m])
                if 0 <= neighbor < n_rows and not visited[neighbor]:
                    following = neighbor
                    break
        while following < 0:
            if not visited[permutation[next_draw]]:
                following = permutation[next_draw]
            next_draw += 1
        row = following
        visited[row] = True
        path[position] = row
    return path


def spanning_forest(local_indices: np.ndarray, squared_distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the breadth-first order of the minimum spanning forest of the tile's edges, and each row's parent.

    The root of a component starts from the row visited last before it.

    Parameters
    ----------
    local_indices : (n, k) int, neighbours; others than rows 0 to n - 1 are passed over
    squared_distances : (n, k) real, lengths of the edges

    Returns
    -------
    sequence, parents : (n,) int64, parents -1 for none
    """
    n_rows, n_neighbors = local_indices.shape
    inside = ((local_indices >= 0) & (local_indices < n_rows)).ravel()
    heads = np.repeat(np.arange(n_rows), n_neighbors)[inside]
    tails = local_indices.ravel()[inside].astype(np.int64)
    ascending = np.argsort(squared_distances.ravel()[inside], kind="stable")
    tree = kruskal_edges(heads[ascending], tails[ascending], n_rows)
    return breadth_first(tree, n_rows)


@compiled
def kruskal_edges(heads: np.ndarray, tails: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the edges of the minimum spanning forest: (m, 2) int64.

    Parameters
    ----------
    heads, tails : (E,) int64, the ends of the edges, in ascending length

    References
    ----------
    Kruskal, On the shortest spanning subtree of a graph and the traveling salesman problem, 1956.
    """
    parents = np.arange(n_rows)
    tree = np.empty((n_rows, 2), dtype=np.int64)
    n_edges = 0
    for edge in range(heads.size):
        if unite(parents, heads[edge], tails[edge]):
            tree[n_edges, 0] = heads[edge]
            tree[n_edges, 1] = tails[edge]
            n_edges += 1
    return tree[:n_edges]


@compiled
def breadth_first(tree: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the breadth-first sequence of a forest's rows, and parents; components by their least row.

    Parameters
    ----------
    tree : (m, 2) int64, edges of the forest

    Returns
    -------
    sequence, parents : (n_rows,) int64; a component's first row has the row before it in the sequence for its parent
    """
    ends = tree.ravel()
    order, offsets = group_by(ends, n_rows)
    adjacent = ends[order ^ 1]  # the two ends of an edge stand side by side
    parents = np.full(n_rows, NO_PARENT, dtype=np.int64)
    sequence = np.empty(n_rows, dtype=np.int64)
    visited = np.zeros(n_rows, dtype=np.bool_)
    n_found = 0
    n_expanded = 0
    for start in range(n_rows):
        if visited[start]:
            continue
        parents[start] = sequence[n_found - 1] if n_found > 0 else NO_PARENT
        sequence[n_found] = start
        visited[start] = True
        n_found += 1
        while n_expanded < n_found:
            row = sequence[n_expanded]
            n_expanded += 1
            for position in range(offsets[row], offsets[row + 1]):
                neighbor = adjacent[position]
                if not visited[neighbor]:
                    visited[neighbor] = True
                    parents[neighbor] = row
                    sequence[n_found] = neighbor
                    n_found += 1
    return sequence, parents
