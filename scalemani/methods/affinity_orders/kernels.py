"""Orders in which the rows of a tile are solved: by a spanning tree, along a path, as they stand, and at random.

Each takes squared distances (n, k), neighbours (n, k) counted from the tile's first row, of which those outside of the
tile are passed over (None where an order needs none), and the seed and tile that key draws. It returns the sequence and
the row that each starts from, (n,) int64, -1 for none. Source: [EA] 2.3.4.
"""

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from scalemani.kernels.affinities.entropic import (
    NO_PARENT,
    EntropicRows,
    Search,
    empty_rows,
    in_sequence,
    solve_tile,
)
from scalemani.kernels.affinities.entropy import entropy_problem
from scalemani.kernels.affinities.root_finders import SOLVERS, WITHOUT_SLOPES
from scalemani.kernels.arrays.draws import generator
from scalemani.kernels.arrays.grouping import inverse_order
from scalemani.kernels.machine.compile import compiled

DRAWS_STAGE = "affinity order"


def mst(
    squared_distances: np.ndarray, local_indices: np.ndarray, seed: int, tile: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the breadth-first order of the minimum spanning forest of the tile's edges, and each row's parent.

    The least row of a component is its root, which starts from the root of the component before it.
    """
    n_rows, n_neighbors = local_indices.shape
    inside = ((local_indices >= 0) & (local_indices < n_rows)).ravel()
    heads, tails = np.repeat(np.arange(n_rows), n_neighbors)[inside], local_indices.ravel()[inside]
    # Ranks in the place of lengths: none is zero, which SciPy takes for no edge, and of equal edges the first is taken.
    ranks = 1.0 + inverse_order(np.argsort(squared_distances.ravel()[inside], kind="stable"))
    forest = csgraph.minimum_spanning_tree(sparse.csr_array((ranks, (heads, tails)), (n_rows, n_rows)))
    _, components = csgraph.connected_components(forest, directed=False)
    roots = np.sort(np.unique(components, return_index=True)[1])
    # One row more, next to all roots, makes a tree of the forest.
    ends = forest.tocoo()
    edges = np.append(ends.row, np.full(len(roots), n_rows)), np.append(ends.col, roots)
    tree = sparse.csr_array((np.ones(len(edges[0])), edges), (n_rows + 1, n_rows + 1))
    sequence, parents = csgraph.breadth_first_order(tree, n_rows, directed=False)
    parents[roots] = np.append(NO_PARENT, roots[:-1])
    return sequence[1:].astype(np.int64), parents[:n_rows].astype(np.int64)


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


def zigzag(n_rows: int, n_columns: int) -> np.ndarray:
    """Return pixels (n,) int64 of an image edge to edge, left to right and right to left, in row-major numbers."""
    rows = np.arange(n_rows)
    line, column = np.divmod(rows, n_columns)
    width = np.minimum(n_columns, n_rows - line * n_columns)
    return line * n_columns + np.where(line % 2, width - 1 - column, column)


def affinities_along(
    squared_distances: np.ndarray, parents: np.ndarray, perplexity: float, solver: str, tol: float
) -> EntropicRows:
    """Return the entropic affinities of rows (n, k) of which each starts from beta of its parent (n,), -1 for none."""
    n_rows, n_neighbors = squared_distances.shape
    # One row more, next to all roots, makes a tree of the forest.
    heads = np.where(parents >= 0, parents, n_rows)
    tree = sparse.csr_array((np.ones(n_rows), (heads, np.arange(n_rows))), (n_rows + 1, n_rows + 1))
    sequence = csgraph.breadth_first_order(tree, n_rows, return_predecessors=False)[1:].astype(np.int64)
    rows, problem = empty_rows(n_rows, n_neighbors), entropy_problem(n_neighbors, perplexity, tol)
    search = Search(SOLVERS[solver], True if solver in WITHOUT_SLOPES else None, 1.0, None, scaled=False)
    solve_tile(np.ascontiguousarray(squared_distances), None, sequence, parents, problem, search, rows)
    return rows


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
