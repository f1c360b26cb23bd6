"""Connected components of a neighbour graph read block by block, and the bridges that join them.

Components: union-find over streamed rows; the root of a component is its smallest row, so labels depend neither on the
order of blocks nor on their size. Bridges: Boruvka's algorithm; in every round each component but the largest asks for
the nearest row outside itself and is joined by its closest pair; the number of components at least halves.

Source of the bridges: Boruvka, O jistem problemu minimalnim (On a certain minimal problem), 1926.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.arrays.union_find import find_root, separate_items, unite
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.distances import squared_distance_in_one_sum

QUERIES_PER_COMPONENT = 64
QUERIES_AT_ONCE = 1024  # against a tile of points: 24 MB


class Components(NamedTuple):
    """`labels` (N,) int32, numbered by first row; `sizes` (C,) int64."""

    labels: np.ndarray
    sizes: np.ndarray


class Bridges(NamedTuple):
    """Pairs that join components: `rows` (E, 2) int64 with `distances` (E,) float64."""

    rows: np.ndarray
    distances: np.ndarray


class Scores(NamedTuple):
    """Approximate squared distances (Q, n), and by how much those to a point (n,) may be wrong."""

    squares: np.ndarray
    errors: np.ndarray


@compiled
def _join_rows(parents: np.ndarray, indices: np.ndarray, values: np.ndarray, start: int) -> None:
    for row in range(indices.shape[0]):
        for column in range(indices.shape[1]):
            if values[row, column] > 0:
                unite(parents, start + row, indices[row, column])


def join_neighbors(parents: np.ndarray, indices: np.ndarray, values: np.ndarray, start: int) -> np.ndarray:
    """Return the union-find state after the edges of rows [start, start + n) are added.

    Parameters
    ----------
    parents : (N,) int32 or int64, the state so far, from `separate_items`
    indices : (n, k) int, the neighbours of these rows
    values : (n, k) float; entries that are not positive are no edges
    start : number of the first row

    Returns
    -------
    (N,) in the dtype of `parents`
    """
    parents = parents.copy()
    _join_rows(parents, indices, values, start)
    return parents


@compiled
def _labels(parents: np.ndarray) -> np.ndarray:
    labels = np.empty(parents.shape[0], np.int32)
    count = 0
    for row in range(parents.shape[0]):
        root = find_root(parents, row)
        if root == row:
            labels[row] = count
            count += 1
        else:
            labels[row] = labels[root]
    return labels


def components(parents: np.ndarray) -> Components:
    """Return the components of a finished union-find state (N,) int32 or int64, in order of their first rows."""
    labels = _labels(parents.copy())
    return Components(labels, np.bincount(labels).astype(np.int64))


def bridge_queries(labels: np.ndarray, n_per_component: int = QUERIES_PER_COMPONENT) -> np.ndarray:
    """Return the rows that look for a bridge out of their component.

    Sampling makes a bridge the closest pair among the sampled rows, not among all.

    Parameters
    ----------
    labels : (N,) int, the component of each row
    n_per_component : most rows of a component, evenly spread over its rows; default 64. The largest component, the
        first of several, has none

    Returns
    -------
    (Q,) int64, ascending
    """
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(sizes)
    chosen = []
    for component in np.delete(np.arange(len(sizes)), np.argmax(sizes)):
        rows = order[ends[component] - sizes[component] : ends[component]]
        chosen.append(rows[np.linspace(0, len(rows) - 1, min(len(rows), n_per_component)).round().astype(np.int64)])
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, np.int64)


@compiled
def _screen(
    scores: Scores,
    queries: np.ndarray,
    query_labels: np.ndarray,
    points: np.ndarray,
    point_labels: np.ndarray,
    best: tuple[np.ndarray, np.ndarray],
    first_row: int,
) -> None:
    """Compute directly every pair that approximate squared distances cannot rule out."""
    rows, distances = best
    for query in range(scores.squares.shape[0]):
        for point in range(scores.squares.shape[1]):
            if point_labels[point] == query_labels[query]:
                continue
            if scores.squares[query, point] - scores.errors[point] * (1.0 + 1e-3) > distances[query]:
                continue
            distance = squared_distance_in_one_sum(queries[query], points[point])
            if distance < distances[query]:
                distances[query] = distance
                rows[query] = first_row + point


def nearest_outside(
    queries: np.ndarray, query_labels: np.ndarray, points: np.ndarray, point_labels: np.ndarray, start: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each query the nearest row of a block that is in another component, exactly, ties to the first row.

    A float32 product with a rounding bound rules pairs out; what is left is computed directly in float64.

    Parameters
    ----------
    queries : (Q, D) real, finite
    query_labels : (Q,) int, their components
    points : (n, D) real, finite, rows [start, start + n)
    point_labels : (n,) int, their components
    start : number of the first of these rows

    Returns
    -------
    rows : (Q,) int64, -1 where the whole block has the query's label
    distances : (Q,) float64, infinite there. Answers of several blocks are joined by `nearer`
    """
    rows = np.full(len(queries), -1, np.int64)
    squared = np.full(len(queries), np.inf)
    centre = queries.mean(axis=0, dtype=np.float64)
    centred_queries = (queries - centre).astype(np.float32)
    query_norms = np.einsum("ij,ij->i", centred_queries, centred_queries, dtype=np.float64)
    longest = np.sqrt(query_norms.max(initial=0.0))
    unit = np.finfo(np.float32).eps * (queries.shape[1] + 8)
    for first in range(0, len(points), TILE_ROWS):
        tile = points[first : first + TILE_ROWS]
        centred = (tile - centre).astype(np.float32)
        norms = np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
        error = unit * (longest + np.sqrt(norms)) ** 2
        labels = point_labels[first : first + TILE_ROWS]
        for few in slices(len(queries), QUERIES_AT_ONCE):
            squares = query_norms[few, None] + norms - 2.0 * (centred_queries[few] @ centred.T)
            best = rows[few], squared[few]
            _screen(Scores(squares, error), queries[few], query_labels[few], tile, labels, best, start + first)
    return rows, np.sqrt(squared)


def nearer(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearer of two answers of `nearest_outside`, ties to the first, which is that of lower rows."""
    closer = other[1] < one[1]
    return np.where(closer, other[0], one[0]), np.where(closer, other[1], one[1])


def boruvka_round(
    labels: np.ndarray, query_rows: np.ndarray, neighbor_rows: np.ndarray, distances: np.ndarray
) -> tuple[Bridges, Components]:
    """Return one round's bridges, at most one out of each component and no cycles, and the components afterwards.

    Ties go to the smaller rows. Repeat with the queries of the new labels until one component is left: at most log2(C)
    rounds.

    Parameters
    ----------
    labels : (N,) int, the components so far
    query_rows : (Q,) int
    neighbor_rows : (Q,) int, the nearest row of each query in another component, -1 for none
    distances : (Q,) float64, of these pairs, infinite for none
    """
    order = np.lexsort((neighbor_rows, query_rows, distances))
    order = order[np.isfinite(distances[order])]
    _, first = np.unique(labels[query_rows[order]], return_index=True)
    parents = separate_items(int(labels.max()) + 1)
    candidates = order[np.sort(first)]
    kept = [i for i in candidates if unite(parents, labels[query_rows[i]], labels[neighbor_rows[i]])]
    merged = _labels(parents)[labels]
    rows = np.column_stack([query_rows[kept], neighbor_rows[kept]]).astype(np.int64)
    return Bridges(rows, distances[kept]), Components(merged, np.bincount(merged).astype(np.int64))
