"""Orders in which the rows of a tile are solved, and the row from whose root each starts. Source: [EA] 2.3.4.

Rows are taken in tiles of 1,024 that are aligned with the global row numbers, and no start crosses a tile: what a row
starts from, and so every bit of its result, does not depend on how many rows a caller hands over at once.
"""

import numpy as np

from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.arrays.grouping import group_by, unite
from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.machine.compile import compiled

ROW_BITS = TILE_ROWS - 1  # TILE_ROWS is a power of two
NO_PARENT = -1  # start in the middle of the row's own bracket
DRAWS_STAGE = "affinity order"
ORDERS = ("density", "bounds", "mst", "path", "raster", "random", "oracle")
GRAPH_ORDERS = ("mst", "path")


def in_sequence(sequence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `sequence` (n,) int64 and parents (n,) int64 by which every row starts from the one before it."""
    parents = np.full(sequence.size, NO_PARENT, dtype=np.int64)
    parents[sequence[1:]] = sequence[:-1]
    return sequence, parents


def density_sequence(squared_distances: np.ndarray, perplexity: float) -> np.ndarray:
    """Return the rows by ascending distance to the K-th neighbour, ties (to 2e-13 relative) by row.

    Non-negative floats sort as their bits do, so the last ten bits can carry the row number: a plain sort of integers
    is three times faster than a stable argsort, which takes 7% of the whole calibration.

    Parameters
    ----------
    squared_distances : (n, k) real, ascending in each row, n <= 1,024

    Returns
    -------
    (n,) int64
    """
    column = min(round(perplexity), squared_distances.shape[1]) - 1
    keys = np.abs(squared_distances[:, column].astype(np.float64)).view(np.int64)
    keys = np.sort((keys & ~ROW_BITS) | np.arange(keys.size))
    return keys & ROW_BITS


def oracle_sequence(squared_distances: np.ndarray, beta: np.ndarray, scale_column: int) -> np.ndarray:
    """Return the rows by their scaled roots, which are what one row hands to the next.

    Parameters
    ----------
    squared_distances : (n, k) real, ascending in each row
    beta : (n,) float64, the roots
    scale_column : as `entropy.scale_column` returns it

    Returns
    -------
    (n,) int64
    """
    scale = squared_distances[:, scale_column].astype(np.float64) - squared_distances[:, 0]
    return np.argsort(beta * scale, kind="stable")


def tile_order(
    squared_distances: np.ndarray,
    perplexity: float,
    order: str,
    local_indices: np.ndarray | None,
    seed: int,
    tile: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sequence in which a tile's rows are solved, and the row that each starts from.

    Parameters
    ----------
    squared_distances : (n, k) real, ascending in each row, n <= 1,024
    order : one of ORDERS; "oracle" is no order of the data, and its rows start as those of "bounds" do
    local_indices : (n, k) int, neighbours counted from the tile's first row; rows outside of the tile are passed over.
        Needed by "mst" and "path"
    seed, tile : key of the draws of "random" and "path"

    Returns
    -------
    sequence, parents : (n,) int64, parents -1 for none
    """
    n_rows = squared_distances.shape[0]
    if order == "density":
        return in_sequence(density_sequence(squared_distances, perplexity))
    if order == "raster":
        return in_sequence(np.arange(n_rows))
    if order in ("random", "path"):
        permutation = generator(seed, DRAWS_STAGE, tile).permutation(n_rows)
        if order == "random":
            return in_sequence(permutation)
        assert local_indices is not None
        return in_sequence(spanning_path(local_indices, permutation))
    if order == "mst":
        assert local_indices is not None
        return spanning_forest(local_indices, squared_distances)
    return np.arange(n_rows), np.full(n_rows, NO_PARENT, dtype=np.int64)


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
