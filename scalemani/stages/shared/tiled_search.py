"""Neighbour search in tables that may lie in files: a tile of queries at a time, with copies of the rows it looks at.

Queries that follow each other lie near each other, and so does what they look at: the more queries a tile has,
the fewer rows are copied for each. A tile has as many as there is room for what they look at.
"""

import functools
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from scalemani.engine.memory.files import Table
from scalemani.engine.memory.process import PROCESS, Key
from scalemani.engine.memory_model import Terms, array
from scalemani.engine.reading import SparseTable
from scalemani.engine.sizes import Sizes
from scalemani.kernels.arrays.grouping import compact_rows
from scalemani.kernels.arrays.tiles import tile_rows
from scalemani.kernels.neighbors.exact import MULTIPLIED_ROWS
from scalemani.kernels.neighbors.nn_descent import NeighborLists, propose_neighbors
from scalemani.kernels.neighbors.rerank import Neighbors, refine_neighbors
from scalemani.kernels.rows.byte_products import whole_terms
from scalemani.kernels.rows.compressed import compressed_rows
from scalemani.kernels.rows.metrics import EUCLIDEAN, METRICS, compared_rows
from scalemani.kernels.rows.reduced import ComparedTable

NUMBER_BYTES = 40  # of a row that a query looks at: its number, and its places in a hash table and among the others
PROPOSED_BYTES, SETTLED_BYTES = 2**26, 2**26  # of sketches and of points, half of them for numbers of rows
COPIES_IN_BYTES = 2  # of a row in products of bytes: as one side of these, and as the other
BYTES_OF_BOUND = 24  # of such a row: what bounds its distances, and what its list takes

Tile = TypeVar("Tile")


def tiles_with_room(
    n_queries: int, per_query: int, row_bytes: int, most_bytes: int, copied: Callable[[slice, int], Tile | None]
) -> Iterator[tuple[slice, Tile]]:
    """Yield consecutive tiles of queries, each with what is copied for it.

    Parameters
    ----------
    per_query : rows that a query looks at, at most
    copied : returns what a tile looks at, or None where that is more rows than its second argument
    """
    most_rows = max(per_query, most_bytes // 2 // row_bytes)
    size = max(1, most_bytes // 2 // (per_query * NUMBER_BYTES))
    start = 0
    while start < n_queries:
        tile = slice(start, min(start + size, n_queries))
        copies = copied(tile, most_rows)
        if copies is None:
            size = max(1, (tile.stop - tile.start) // 2)
            continue
        yield tile, copies
        start = tile.stop


def propose_by_tiles(
    table: ComparedTable,
    start: int,
    known: np.ndarray,
    visited: NeighborLists,
    lists: tuple[Table, Table],
    limits: np.ndarray,
    n_candidates: int,
) -> np.ndarray:
    """Return what `propose_neighbors` does of queries that are rows `start` and following.

    Parameters
    ----------
    table : of all points, in memory or in files, as of `propose_neighbors`
    known : (n, k) int32, rows of all points, as of `propose_neighbors`
    visited : (n, w), the rows of all points whose lists are looked at, -1 for none
    lists : the fields of `NeighborLists`, of all points
    limits : (n,) float32, as of `propose_neighbors`

    Returns
    -------
    (n, n_candidates) int32, rows of all points in no particular order; -1 where there are fewer
    """
    (indices, fresh), (distance, sketches) = lists, table
    if isinstance(sketches, np.ndarray) and isinstance(indices, np.ndarray) and isinstance(fresh, np.ndarray):
        whole = NeighborLists(indices, fresh)
        return propose_neighbors(table, start, known, visited, whole, limits, n_candidates)

    def copied(tile: slice, most_rows: int) -> tuple[np.ndarray, NeighborLists, NeighborLists, np.ndarray] | None:
        """Return known rows, which lists are visited, these lists, and rows: all that is looked at is renumbered.

        The numbers are in the order of the rows: to the kernel there are no other rows.
        """
        sources, places = compact_rows(visited.indices[tile])
        near, far = known[tile], indices[sources]
        queries = np.arange(start + tile.start, start + tile.stop, dtype=np.int32)
        everything = np.concatenate([queries, near.ravel(), far.ravel()])
        rows, numbers = compact_rows(everything[:, np.newaxis])
        if len(rows) > most_rows:
            return None
        _, near_places, far_places = np.split(numbers[:, 0], np.cumsum([len(queries), near.size]))
        far_lists = NeighborLists(far_places.reshape(far.shape), fresh[sources])
        return near_places.reshape(near.shape), NeighborLists(places, visited.fresh[tile]), far_lists, rows

    per_query = 1 + known.shape[1] + visited.indices.shape[1] * indices.shape[1]
    row_bytes = sketches.dtype.itemsize * sketches.shape[1]
    proposed = np.empty((len(limits), n_candidates), np.int32)
    for tile, (near, places, far, rows) in tiles_with_room(len(limits), per_query, row_bytes, PROPOSED_BYTES, copied):
        first = int(np.searchsorted(rows, start + tile.start))
        looked_at = ComparedTable(distance, sketches[rows])
        candidates = propose_neighbors(looked_at, first, near, places, far, limits[tile], n_candidates)
        proposed[tile] = np.where(candidates < 0, candidates, rows[candidates])
    return proposed


def refine_by_tiles(
    points: Table | SparseTable,
    start: int,
    candidates: np.ndarray,
    known: Neighbors,
    row_bytes: int,
    metric: str = EUCLIDEAN,
) -> tuple[Neighbors, np.ndarray]:
    """Return what `refine_neighbors` does of queries that are rows `start` and following.

    Parameters
    ----------
    points : (N, D), dense as they are compared in a metric, or sparse as mapped for it; in memory or in files
    candidates : (n, c) int32, rows of all points; -1 for none
    known : the neighbours (n, k) of the round before

    Returns
    -------
    neighbors : the nearest of those known and the candidates, (n, k)
    fresh : (n, k) bool, true where a candidate entered
    """
    distance = METRICS[metric].distance
    if isinstance(points, np.ndarray):
        queries = points[start : start + len(candidates)]
        return refine_neighbors(distance, queries, points, row_numbers(len(points)), candidates, known)

    def copied(tile: slice, most_rows: int) -> tuple[np.ndarray, np.ndarray] | None:
        rows, places = compact_rows(candidates[tile])
        return None if len(rows) + tile.stop - tile.start > most_rows else (rows, places)

    parts, per_query = [], 1 + candidates.shape[1]
    for tile, (rows, places) in tiles_with_room(len(candidates), per_query, row_bytes, SETTLED_BYTES, copied):
        before, labels = Neighbors(*(part[tile] for part in known)), rows.astype(np.int32)
        both = points[start + tile.start : start + tile.stop], points[rows]
        queries, others = (compared_rows(part, metric) for part in both)
        if sp.issparse(others):
            compressed = compressed_rows(queries), compressed_rows(others, queried=False)
            parts.append(refine_neighbors(distance, *compressed, labels, places, before))
        else:
            parts.append(refine_neighbors(distance, queries, others, labels, places, before))
    return joined(parts)


def joined(parts: list[tuple[Neighbors, np.ndarray]]) -> tuple[Neighbors, np.ndarray]:
    """Return the neighbours of consecutive tiles, and which of them are new, as those of one."""
    indices, distances = (np.concatenate([neighbors[field] for neighbors, _ in parts]) for field in (0, 1))
    return Neighbors(indices, distances), np.concatenate([fresh for _, fresh in parts])


def row_numbers(n_points: int) -> np.ndarray:
    """Return the numbers of all work rows (N,) int32, made once a process."""
    make = functools.partial(np.arange, n_points, dtype=np.int32)
    return PROCESS.once(Key.of(row_numbers, (n_points,)), make)


def coded(n_rows: int, features: int) -> int:
    """Return the bytes of rows as products of bytes take them."""
    return n_rows * (COPIES_IN_BYTES * whole_terms(features) + BYTES_OF_BOUND)


def compared(sizes: Sizes, n_rows: int) -> Terms:
    """Return what dense points take that are compared with so many rows."""
    features, rows = sizes.dimensions.n_features, tile_rows(max(n_rows, sizes.dimensions.block_rows))
    return {
        "coordinates of both sides of a tile": 2 * array("float32", rows, features),
        "products of parts of tiles": array("int32", MULTIPLIED_ROWS, max(rows // 4, 2 * MULTIPLIED_ROWS)),
        "rows that points are compared with, in bytes": coded(n_rows, features) + 2 * coded(rows, features),
    }
