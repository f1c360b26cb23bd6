"""Neighbour search in tables that may lie in files: a tile of queries at a time, with copies of the rows it looks at.

Queries that follow each other lie near each other, and so does what they look at: it is little, and fits the caches.
"""

import functools

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.neighbors.nn_descent import NeighborLists, propose_neighbors
from scalemani.kernels.neighbors.rerank import Neighbors, refine_neighbors
from scalemani.kernels.rows.compressed import compressed_rows
from scalemani.kernels.rows.renumbering import compact_rows
from scalemani.memory.process import PROCESS, Key
from scalemani.memory.rows_in_file import Table
from scalemani.memory.sparse_rows import SparseTable

NUMBER_BYTES = 40  # of a copied row: its number, and its places in a hash table and among the others
PROPOSED_BYTES, SETTLED_BYTES = 2**26, 2**25  # of sketches and of points, if no two queries look at the same one


def propose_by_tiles(
    sketches: Table,
    start: int,
    own: NeighborLists,
    visited: np.ndarray,
    lists: tuple[Table, Table],
    limits: np.ndarray,
    n_candidates: int,
) -> np.ndarray:
    """Return what `propose_neighbors` does of queries that are rows `start` and following.

    Parameters
    ----------
    sketches : (N, s) float32 or int8, of all points
    start : the row of the first query
    own : the lists of the n queries
    visited : (n, w) int, rows of all points whose lists are looked at, -1 for none
    lists : the fields of `NeighborLists`, of all points
    limits : (n,) float32, as of `propose_neighbors`
    n_candidates : a query

    Returns
    -------
    (n, n_candidates) int32, rows of all points in no particular order; -1 where there are fewer
    """
    indices, fresh = lists
    if isinstance(sketches, np.ndarray) and isinstance(indices, np.ndarray) and isinstance(fresh, np.ndarray):
        return propose_neighbors(sketches, start, own, visited, NeighborLists(indices, fresh), limits, n_candidates)
    per_query = 1 + own.indices.shape[1] + visited.shape[1] * indices.shape[1]
    row_bytes = 4 * sketches.shape[1] + NUMBER_BYTES
    found = np.empty((len(limits), n_candidates), np.int32)
    for tile in slices(len(limits), max(1, PROPOSED_BYTES // (per_query * row_bytes))):
        sources, places = compact_rows(visited[tile])
        near, far = own.indices[tile], indices[sources]
        # All that is looked at is numbered anew, in the same order: to the kernel there are no other rows.
        queries = np.arange(start + tile.start, start + tile.stop, dtype=np.int32)
        everything = np.concatenate([queries, near.ravel(), far.ravel()])
        rows, numbers = compact_rows(everything[:, np.newaxis])
        first, near_places, far_places = np.split(numbers[:, 0], np.cumsum([len(queries), near.size]))
        candidates = propose_neighbors(
            sketches[rows],
            int(first[0]),
            NeighborLists(near_places.reshape(near.shape), own.fresh[tile]),
            places,
            NeighborLists(far_places.reshape(far.shape), fresh[sources]),
            limits[tile],
            n_candidates,
        )
        found[tile] = np.where(candidates < 0, candidates, rows[candidates])
    return found


def refine_by_tiles(
    points: Table | SparseTable, start: int, candidates: np.ndarray, known: Neighbors, row_bytes: int
) -> tuple[Neighbors, np.ndarray]:
    """Return what `refine_neighbors` does of queries that are rows `start` and following.

    Parameters
    ----------
    points : (N, D), dense or sparse, in memory or in files
    start : the row of the first query
    candidates : (n, c) int32, rows of all points; -1 for none
    known : the neighbours (n, k) that were found before
    row_bytes : of a point, which decide how many queries a tile has

    Returns
    -------
    neighbors : the nearest of those known and the candidates, (n, k)
    fresh : (n, k) bool, true where a candidate entered
    """
    parts = []
    for tile in slices(len(candidates), max(1, SETTLED_BYTES // (row_bytes * candidates.shape[1]))):
        queries, own = points[start + tile.start : start + tile.stop], Neighbors(*(part[tile] for part in known))
        if isinstance(points, np.ndarray):
            parts.append(refine_neighbors(queries, points, row_numbers(len(points)), candidates[tile], own))
            continue
        rows, places = compact_rows(candidates[tile])
        others = points[rows]
        if sp.issparse(others):
            queries, others = compressed_rows(queries), compressed_rows(others, queried=False)
        parts.append(refine_neighbors(queries, others, rows.astype(np.int32), places, own))
    indices, distances = (np.concatenate([found[field] for found, _ in parts]) for field in (0, 1))
    return Neighbors(indices, distances), np.concatenate([fresh for _, fresh in parts])


def row_numbers(n_points: int) -> np.ndarray:
    """Return the numbers of all work rows (N,) int32, made once a process."""
    make = functools.partial(np.arange, n_points, dtype=np.int32)
    return PROCESS.once(Key.of(row_numbers, (n_points,)), make)
