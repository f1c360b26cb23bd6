"""Connected components of a neighbour graph read block by block, and the bridges that join them.

Components: union-find over streamed rows; the root of a component is its smallest row, so labels depend neither on the
order of blocks nor on their size. Bridges: Boruvka's algorithm; in every round each component but the largest asks for
the nearest row outside itself and is joined by its closest pair; the number of components at least halves.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.tiles import TILE_ROWS
from scalemani.kernels.machine.compile import compiled, compiled_sums

QUERIES_PER_COMPONENT = 64


class Components(NamedTuple):
    """`labels` (N,) int32, numbered by first row; `sizes` (C,) int64."""

    labels: np.ndarray
    sizes: np.ndarray


class Bridges(NamedTuple):
    """Pairs that join components: `rows` (E, 2) int64 with `distances` (E,) float64."""

    rows: np.ndarray
    distances: np.ndarray


def initial_parents(n_points: int) -> np.ndarray:
    """Return the state of the union-find before any edge: every row its own root, (N,) int32 or int64."""
    return np.arange(n_points, dtype=np.int32 if n_points < 2**31 else np.int64)


@compiled
def _root(parents: np.ndarray, row: int) -> int:
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@compiled
def _union(parents: np.ndarray, one: int, other: int) -> bool:
    one, other = _root(parents, one), _root(parents, other)
    if one < other:
        parents[other] = one
    else:
        parents[one] = other
    return one != other


@compiled
def _join_rows(parents: np.ndarray, indices: np.ndarray, values: np.ndarray, start: int) -> None:
    for row in range(indices.shape[0]):
        for column in range(indices.shape[1]):
            if values[row, column] > 0:
                _union(parents, start + row, indices[row, column])


def joined_parents(parents: np.ndarray, indices: np.ndarray, values: np.ndarray, start: int) -> np.ndarray:
    """Return the union-find state after the edges of rows [start, start + n) are added.

    Parameters: `parents` (N,), the state so far; `indices` (n, k) int and `values` (n, k) float, the rows of the graph
    (entries that are not positive are no edges).
    """
    parents = parents.copy()
    _join_rows(parents, indices, values, start)
    return parents


@compiled
def _labels(parents: np.ndarray) -> np.ndarray:
    labels = np.empty(parents.shape[0], np.int32)
    count = 0
    for row in range(parents.shape[0]):
        root = _root(parents, row)
        if root == row:
            labels[row] = count
            count += 1
        else:
            labels[row] = labels[root]
    return labels


def components(parents: np.ndarray) -> Components:
    """Return labels and sizes of the components of a finished union-find state (N,), in order of their first rows."""
    labels = _labels(parents.copy())
    return Components(labels, np.bincount(labels).astype(np.int64))


def bridge_queries(labels: np.ndarray, n_per_component: int = QUERIES_PER_COMPONENT) -> np.ndarray:
    """Return the rows (Q,) int64, ascending, that look for a bridge out of their component.

    All rows of a component, or `n_per_component` evenly spread over its rows when it has more; none for the largest
    (the first of the largest). Sampling makes a bridge the closest pair among the sampled rows, not among all.
    """
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(sizes)
    chosen = []
    for component in np.delete(np.arange(len(sizes)), np.argmax(sizes)):
        rows = order[ends[component] - sizes[component] : ends[component]]
        spread = np.linspace(0, len(rows) - 1, min(len(rows), n_per_component)).round().astype(np.int64)
        chosen.append(rows[spread])
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, np.int64)


@compiled_sums
def _squared_distance(one: np.ndarray, other: np.ndarray) -> float:
    total = 0.0
    for column in range(one.shape[0]):
        step = np.float64(one[column]) - np.float64(other[column])
        total += step * step
    return total


@compiled
def _screen(
    scores: np.ndarray,
    error: np.ndarray,
    queries: np.ndarray,
    query_labels: np.ndarray,
    points: np.ndarray,
    point_labels: np.ndarray,
    best: tuple[np.ndarray, np.ndarray],
    first_row: int,
) -> None:
    """Recompute directly every pair that the approximate squared distances `scores` cannot rule out."""
    rows, distances = best
    for query in range(scores.shape[0]):
        for point in range(scores.shape[1]):
            if point_labels[point] == query_labels[query]:
                continue
            if scores[query, point] - error[point] * (1.0 + 1e-3) > distances[query]:
                continue
            distance = _squared_distance(queries[query], points[point])
            if distance < distances[query]:
                distances[query] = distance
                rows[query] = first_row + point


def nearest_outside(
    queries: np.ndarray, query_labels: np.ndarray, points: np.ndarray, point_labels: np.ndarray, start: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each query the nearest row of a block that lies in another component, exact, ties to the first row.

    Parameters: `queries` (Q, D) and their labels (Q,); `points` (n, D), rows [start, start + n), and their labels
    (n,). Returns rows (Q,) int64 (-1 where the whole block has the query's label) and distances (Q,) float64 (infinite
    there). Blocks are combined by `nearer`. A float32 GEMM with a rounding bound rules pairs out; what is left is
    computed directly in float64.
    """
    rows = np.full(len(queries), -1, np.int64)
    squared = np.full(len(queries), np.inf)
    centre = queries.mean(axis=0, dtype=np.float64)
    centred_queries = (queries - centre).astype(np.float32)
    query_norms = np.einsum("ij,ij->i", centred_queries, centred_queries, dtype=np.float64)
    unit = np.finfo(np.float32).eps * (queries.shape[1] + 8)
    for first in range(0, len(points), TILE_ROWS):
        tile = points[first : first + TILE_ROWS]
        centred = (tile - centre).astype(np.float32)
        norms = np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
        scores = query_norms[:, None] + norms - 2.0 * (centred_queries @ centred.T)
        error = unit * (np.sqrt(query_norms.max(initial=0.0)) + np.sqrt(norms)) ** 2
        labels = point_labels[first : first + TILE_ROWS]
        _screen(scores, error, queries, query_labels, tile, labels, (rows, squared), start + first)
    return rows, np.sqrt(squared)


def nearer(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearer (rows, distances) of two blocks' answers, ties to the first: blocks come in row order."""
    closer = other[1] < one[1]
    return np.where(closer, other[0], one[0]), np.where(closer, other[1], one[1])


def boruvka_round(
    labels: np.ndarray, query_rows: np.ndarray, neighbor_rows: np.ndarray, distances: np.ndarray
) -> tuple[Bridges, Components]:
    """Return one round's bridges, at most one out of each component and no cycles, and the components afterwards.

    Parameters: `labels` (N,), the components so far; `query_rows`, `neighbor_rows` (Q,) int and `distances` (Q,): each
    query with its nearest row in another component. Ties go to the smaller rows. Repeat with the queries of the new
    labels until one component is left: at most log2(C) rounds.
    """
    order = np.lexsort((neighbor_rows, query_rows, distances))
    order = order[np.isfinite(distances[order])]
    _, first = np.unique(labels[query_rows[order]], return_index=True)
    parents = initial_parents(int(labels.max()) + 1)
    candidates = order[np.sort(first)]
    kept = [i for i in candidates if _union(parents, labels[query_rows[i]], labels[neighbor_rows[i]])]
    merged = _labels(parents)[labels]
    rows = np.column_stack([query_rows[kept], neighbor_rows[kept]]).astype(np.int64)
    return Bridges(rows, distances[kept]), Components(merged, np.bincount(merged).astype(np.int64))
