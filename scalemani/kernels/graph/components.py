"""Connected components of a neighbour graph that is read block by block, and bridges that join them.

Union-find within ranges of rows gives their pieces, numbered by first rows. Edges out of a range join pieces: pairs of
them, of which a forest is retained wherever two sets of pairs meet. The root of a component is its smallest row, so
labels depend neither on the order of blocks nor on their size, nor on the ranges. An edge joins its ends where its
entry in D^-1/2 A D^-1/2, A = P + P^T, is not below the rounding of float32, in which affinities are stored. What joins
two parts of a graph by smaller entries alone is zero to rounding in the eigenproblem: both parts have an eigenvalue of
zero, and the eigenvectors are one basis of many.

Bridges are those of Boruvka's algorithm, over cells that cannot be ruled out. In every round each component but the
largest looks for the nearest row outside itself and is joined by its closest pair; the number of components at least
halves. A cell that lies farther from a query than some row outside its component certainly does is never read. Where a
function compares rows, of which no cell bounds a distance, all rows of other components are looked at.

Source: Boruvka, O jistem problemu minimalnim (On a certain minimal problem), 1926.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from scalemani.kernels.arrays.grouping import find_root, separate_items, unite
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.arrays.workspace import Empty
from scalemani.kernels.graph.product import Rows
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.neighbors.row_scan import tile_rows
from scalemani.kernels.rows.distances import squared_distance_in_one_sum
from scalemani.kernels.rows.reduced import Distance, reduced_distance

LEAST_ENTRY = float(np.finfo(np.float32).eps)  # of the normalised matrix, that joins: the rounding of a stored affinity

QUERIES_PER_COMPONENT = 64
QUERIES_AT_ONCE = 1024  # against a tile of points: 24 MB
CELLS_AT_ONCE = 64  # against all queries of a round
PAIRS_AT_ONCE = 2**21  # of a query and a cell: 16 MB in float64
SLACK = 1e-6  # of the longest row: what rounding may add to a distance to a centre, with much to spare


class Components(NamedTuple):
    """`labels` (N,) int32, numbered by first row; `sizes` (C,) int64."""

    labels: np.ndarray
    sizes: np.ndarray


@compiled
def add_degrees(degrees: np.ndarray, first: int, indices: np.ndarray, values: np.ndarray, start: int) -> None:
    """Add the edges of rows [start, start + n) to the degrees of P + P^T of rows [first, first + m), in place.

    Rows are those of `join_inside`, degrees (m,) float64. Sums follow their order: blocks of any size that are added in
    order give the same bits.
    """
    for row in range(indices.shape[0]):
        place = start + row - first
        inside = 0 <= place < degrees.size
        for column in range(indices.shape[1]):
            if inside:
                degrees[place] += values[row, column]
            target = indices[row, column] - first
            if 0 <= target < degrees.size:
                degrees[target] += values[row, column]


@compiled
def join_inside(
    parents: np.ndarray,
    first: int,
    indices: np.ndarray,
    values: np.ndarray,
    start: int,
    roots: np.ndarray | None,
) -> None:
    """Add the edges of rows [start, start + n) between rows [first, first + m) to a union-find state, in place.

    Parameters
    ----------
    parents : (m,) int32 or int64, the state so far, from `separate_items`
    indices : (n, k) int, the neighbours of these rows, which lie among the m
    values : (n, k) float; entries that are not positive are no edges
    roots : (m,) float64, the square roots of the degrees of `add_degrees`: edges below `LEAST_ENTRY` times those of
        both ends join nothing. None: every edge joins
    """
    for row in range(indices.shape[0]):
        place = start + row - first
        least = 0.0 if roots is None else LEAST_ENTRY * roots[place]
        for column in range(indices.shape[1]):
            target = indices[row, column] - first
            if 0 <= target < parents.size and values[row, column] > 0:
                of_both = least if roots is None else least * roots[target]
                if values[row, column] >= of_both:
                    unite(parents, place, target)


class Leaving(NamedTuple):
    """Edges out of a range of rows: `sources` (E,) int64 and `targets` (E,) int, with `values` (E,) float."""

    sources: np.ndarray
    targets: np.ndarray
    values: np.ndarray


def edges_leaving(indices: np.ndarray, values: np.ndarray, start: int, first: int, last: int) -> Leaving:
    """Return the edges of rows [start, start + n), as of `join_inside`, that end outside the rows [first, last)."""
    outside = (values > 0) & ((indices < first) | (indices >= last))
    return Leaving(start + np.nonzero(outside)[0], indices[outside], values[outside])


def joining(leaving: Leaving, of_sources: np.ndarray, of_targets: np.ndarray) -> np.ndarray:
    """Return which edges (E,) bool join their ends, by the square roots (E,) of the degrees of both."""
    joins: np.ndarray = leaving.values >= LEAST_ENTRY * of_sources * of_targets
    return joins


def spanning_forest(pairs: np.ndarray) -> np.ndarray:
    """Return the pairs (F, 2) int64 of each piece with the first that pairs (E, 2) int join it to, ascending."""
    if len(pairs) == 0:
        return pairs
    pieces, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(pairs.shape)
    graph = sp.coo_matrix((np.ones(len(ends), np.int8), ends.T), shape=(len(pieces), len(pieces)))
    _, sets = connected_components(graph, directed=False)
    _, firsts = np.unique(sets, return_index=True)
    roots = pieces[firsts[sets]]
    return np.column_stack([pieces, roots])[pieces != roots]


def labels_of_pieces(n_pieces: int, forest: np.ndarray) -> np.ndarray:
    """Return the component (n,) int32 of each piece, numbered by first pieces, from a `spanning_forest`."""
    parents = separate_items(n_pieces)
    parents[forest[:, 0]] = forest[:, 1]
    return labels_of_roots(parents)


def sums_of_parts(labels: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the rows (C,) int64 of what parts of such `sizes` (n,) int64 belong to, by their labels (n,)."""
    sums = np.zeros(int(labels.max(initial=-1)) + 1, np.int64)
    np.add.at(sums, labels, sizes)
    return sums


@compiled
def join_rows(parents: np.ndarray, rows: Rows, start: int, roots: np.ndarray | None) -> None:
    """Add rows [start, start + n) of W, (indptr, indices, values), to a union-find state (N,) as `join_inside` does.

    `roots` (N,) are the square roots of the degrees of W.
    """
    indptr, indices, values = rows
    for row in range(indptr.shape[0] - 1):
        least = 0.0 if roots is None else LEAST_ENTRY * roots[start + row]
        for entry in range(indptr[row], indptr[row + 1]):
            of_both = least if roots is None else least * roots[indices[entry]]
            if values[entry] > 0 and values[entry] >= of_both:
                unite(parents, start + row, indices[entry])


@compiled
def _number_roots(parents: np.ndarray, labels: np.ndarray) -> None:
    count = 0
    for row in range(parents.shape[0]):
        root = find_root(parents, row)
        if root == row:
            labels[row] = count
            count += 1
        else:
            labels[row] = labels[root]


def labels_of_roots(parents: np.ndarray, empty: Empty = np.empty) -> np.ndarray:
    """Return the number of the component of each row, in order of first rows; shortens the paths of `parents`."""
    labels = empty(parents.shape, np.int32)
    _number_roots(parents, labels)
    return labels


@compiled
def _count_rows(labels: np.ndarray, counts: np.ndarray) -> None:
    for row in range(labels.shape[0]):
        counts[labels[row]] += 1


def sizes_of(labels: np.ndarray) -> np.ndarray:
    """Return how many rows each component has, (C,) int64, without a copy of the labels (N,) int."""
    counts = np.zeros(int(labels.max(initial=-1)) + 1, np.int64)
    _count_rows(labels, counts)
    return counts


def components(parents: np.ndarray, empty: Empty = np.empty) -> Components:
    """Return the components of a finished union-find state (N,) int32 or int64, in order of their first rows.

    The state stays one of the same sets; its paths are shortened.
    """
    labels = labels_of_roots(parents, empty)
    return Components(labels, sizes_of(labels))


class Bridges(NamedTuple):
    """Pairs that join components: `rows` (E, 2) int64 with `distances` (E,) float64."""

    rows: np.ndarray
    distances: np.ndarray


def nearest_pairs(labels: np.ndarray, rows: np.ndarray, distances: np.ndarray) -> Bridges:
    """Return the nearest of pairs (E, 2) of rows for every two components (N,) that some of them lead between."""
    apart = labels[rows[:, 0]] != labels[rows[:, 1]]
    ends, away = np.sort(rows[apart].astype(np.int64), axis=1), distances[apart]
    order = np.lexsort((ends[:, 1], ends[:, 0], away))
    of_ends = np.sort(labels[ends[order]], axis=1)
    _, first = np.unique(of_ends, axis=0, return_index=True)
    chosen = order[np.sort(first)]
    return Bridges(ends[chosen], away[chosen])


def spanning_pairs(labels: np.ndarray, pairs: Bridges) -> Bridges:
    """Return those of some pairs, nearest first and ties by row, that join components (N,) which others have not."""
    nearest, parents = nearest_pairs(labels, *pairs), separate_items(int(labels.max()) + 1)
    joining = [i for i, (one, other) in enumerate(labels[nearest.rows]) if unite(parents, one, other)]
    return Bridges(nearest.rows[joining], nearest.distances[joining])


class Cells(NamedTuple):
    """Where the rows of cells lie, as balls; a cell is the rows [offsets[c], offsets[c + 1]).

    `offsets` (C + 1,) int64, `centers` (C, s), `radii` (C,) float64, the largest distance of a row of the cell to its
    centre, -infinity for a cell without rows.
    """

    offsets: np.ndarray
    centers: np.ndarray
    radii: np.ndarray


class Scores(NamedTuple):
    """Approximate squared distances (Q, n), and by how much those to a point (n,) may be wrong."""

    squares: np.ndarray
    errors: np.ndarray


class Ends(NamedTuple):
    """Rows (Q,) int64 at one end of possible bridges, and `labels` (Q,) int, the components that they are in."""

    rows: np.ndarray
    labels: np.ndarray


class Chosen(NamedTuple):
    """The rows of components that look for a bridge, by their ranks there, while blocks of labels are passed in order.

    `ranks` (Q,) int64 ascend in each component c, from `bounds[c]` to `bounds[c + 1]`, (C + 1,). `rows` (Q,) int64 are
    those passed so far; of each component `seen` (C,) rows were, and `next_place` (C,) is the place of the next rank.
    """

    ranks: np.ndarray
    bounds: np.ndarray
    rows: np.ndarray
    seen: np.ndarray
    next_place: np.ndarray

    @property
    def ends(self) -> Ends:
        """The rows, ascending, with their components."""
        order = np.argsort(self.rows)
        return Ends(self.rows[order], np.repeat(np.arange(len(self.seen)), np.diff(self.bounds))[order])


def chosen_rows(sizes: np.ndarray, n_per_component: int = QUERIES_PER_COMPONENT) -> Chosen:
    """Return which rows look for a bridge out of their component, of which there are so many rows (C,) int64 each.

    At most so many rows of a component look, evenly spread over its rows, and none of the largest, the first of
    several. Sampling makes a bridge the closest pair among the sampled rows, not among all.
    """
    counts = np.minimum(sizes, n_per_component)
    counts[np.argmax(sizes)] = 0
    spread = [np.linspace(0, size - 1, count).round() for size, count in zip(sizes, counts, strict=True) if count]
    ranks = np.concatenate([np.empty(0), *spread]).astype(np.int64)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return Chosen(ranks, bounds, np.full(len(ranks), -1, np.int64), np.zeros(len(sizes), np.int64), bounds[:-1].copy())


@compiled
def pass_labels(chosen: Chosen, labels: np.ndarray, start: int) -> None:
    """Note those of rows [start, start + n), of components `labels` (n,), that are chosen, in place."""
    for row in range(labels.size):
        label = labels[row]
        place = chosen.next_place[label]
        if place < chosen.bounds[label + 1] and chosen.ranks[place] == chosen.seen[label]:
            chosen.rows[place] = start + row
            chosen.next_place[label] += 1
        chosen.seen[label] += 1


class Spans(NamedTuple):
    """The least and the largest component (C,) int64 of the rows of each cell that were passed."""

    least: np.ndarray
    largest: np.ndarray


def no_spans(n_cells: int) -> Spans:
    """Return the spans of cells of which no row was passed."""
    return Spans(np.full(n_cells, np.iinfo(np.int64).max), np.full(n_cells, -1))


@compiled
def widen_spans(spans: Spans, offsets: np.ndarray, labels: np.ndarray, start: int) -> None:
    """Widen the spans of cells, the rows [offsets[c], offsets[c + 1]), by rows [start, start + n) of `labels` (n,)."""
    cell = np.searchsorted(offsets, start, side="right") - 1
    for row in range(labels.size):
        while start + row >= offsets[cell + 1]:
            cell += 1
        spans.least[cell] = min(spans.least[cell], labels[row])
        spans.largest[cell] = max(spans.largest[cell], labels[row])


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
    queries, query_labels : (Q, D) real, finite, and (Q,) int, their components
    points, point_labels : (n, D) real, finite, rows [start, start + n), and (n,) int, their components

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
    for tile in slices(len(points), TILE_ROWS):
        centred = (points[tile] - centre).astype(np.float32)
        norms = np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
        error = unit * (longest + np.sqrt(norms)) ** 2
        for few in slices(len(queries), QUERIES_AT_ONCE):
            squares = query_norms[few, None] + norms - 2.0 * (centred_queries[few] @ centred.T)
            best = rows[few], squared[few]
            scores, first = Scores(squares, error), start + tile.start
            _screen(scores, queries[few], query_labels[few], points[tile], point_labels[tile], best, first)
    return rows, np.sqrt(squared)


def nearest_compared(
    distance: Distance,
    queries: np.ndarray,
    query_labels: np.ndarray,
    points: np.ndarray,
    point_labels: np.ndarray,
    start: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `nearest_outside` does, of rows that a function compares; rows are -1 where none is finitely far.

    Parameters
    ----------
    queries : (Q, D) float64; other parameters are those of `nearest_outside`
    """
    rows, distances = np.full(len(queries), -1, np.int64), np.full(len(queries), np.inf)
    for tile in slices(len(points), tile_rows(points.shape[1])):
        others = np.ascontiguousarray(points[tile], np.float64)
        _scan_outside(
            distance, queries, query_labels, others, point_labels[tile], (rows, distances), start + tile.start
        )
    return rows, distances


@compiled
def _scan_outside(
    distance: Distance,
    queries: np.ndarray,
    query_labels: np.ndarray,
    points: np.ndarray,
    point_labels: np.ndarray,
    best: tuple[np.ndarray, np.ndarray],
    first_row: int,
) -> None:
    """Put the rows of a tile that are nearer than what is known into rows and distances (Q,), in place."""
    rows, distances = best
    for query in range(queries.shape[0]):
        for point in range(points.shape[0]):
            if point_labels[point] == query_labels[query]:
                continue
            away = reduced_distance(distance, queries, query, points, point, np.inf)
            if away < distances[query]:
                distances[query] = away
                rows[query] = first_row + point


def radii_of_cells(points: np.ndarray, start: int, offsets: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the largest distance (C,) float64 of points (n, s), rows [start, start + n), to the centre of their cell.

    `offsets` (C + 1,) and `centers` (C, s) are those of `Cells`. Cells that none of these rows is in have -infinity;
    radii of several blocks are joined by `np.maximum`.
    """
    radii = np.full(len(centers), -np.inf)
    numbers = np.searchsorted(offsets, np.arange(start, start + len(points)), side="right") - 1
    away = np.sqrt(np.square(points.astype(np.float64) - centers[numbers]).sum(axis=1))
    np.maximum.at(radii, numbers, away)
    return radii


def reach(queries: np.ndarray, query_labels: np.ndarray, spans: Spans, cells: Cells) -> np.ndarray:
    """Return a distance (Q,) float64 from each query (Q, s) within which some row of another component lies.

    It is infinite where all rows have the query's label. `spans` are of all rows.
    """
    filled = np.flatnonzero(np.diff(cells.offsets))
    least, largest = spans.least[filled], spans.largest[filled]
    centers, radii = cells.centers[filled], cells.radii[filled]
    limits = np.empty(len(queries))
    for part in slices(len(queries), max(1, PAIRS_AT_ONCE // len(filled))):
        within = distances_to(queries[part], centers) + radii
        label = query_labels[part, np.newaxis]
        within[(least == label) & (largest == label)] = np.inf
        limits[part] = within.min(axis=1)
    return limits + SLACK * (greatest_length(queries) + greatest_length(centers))


def greatest_length(rows: np.ndarray) -> float:
    """Return the length of the longest of rows (n, s)."""
    return float(np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64).max(initial=0.0)))


def distances_to(queries: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the distances (Q, C) float64 of queries (Q, s) to centres (C, s), to the rounding of products."""
    one, other = queries.astype(np.float64), centers.astype(np.float64)
    squares = np.square(one).sum(axis=1)[:, np.newaxis] + np.square(other).sum(axis=1) - 2.0 * (one @ other.T)
    return np.sqrt(np.maximum(squares, 0.0))


def nearest_in_cells(
    queries: np.ndarray,
    query_labels: np.ndarray,
    within: np.ndarray,
    points: np.ndarray,
    point_labels: np.ndarray,
    start: int,
    cells: Cells,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `nearest_outside` does, from cells that may hold a row within the `reach` (Q,) of a query."""
    rows, distances = np.full(len(queries), -1, np.int64), np.full(len(queries), np.inf)
    stop = start + len(points)
    first = np.searchsorted(cells.offsets, start, side="right") - 1
    last = np.searchsorted(cells.offsets, stop, side="left")
    for few in slices(last - first, CELLS_AT_ONCE):
        numbers = np.arange(first, last)[few]
        near = distances_to(queries, cells.centers[numbers]) - cells.radii[numbers] <= within[:, np.newaxis]
        for column, cell in enumerate(numbers):
            part = slice(max(cells.offsets[cell], start) - start, min(cells.offsets[cell + 1], stop) - start)
            there = point_labels[part]
            if len(there) == 0:
                continue
            outside = (query_labels != there[0]) | (there.min() != there.max())
            active = np.flatnonzero(near[:, column] & outside)
            if len(active) == 0:
                continue
            nearest = nearest_outside(queries[active], query_labels[active], points[part], there, start + part.start)
            rows[active], distances[active] = nearer((rows[active], distances[active]), nearest)
    return rows, distances


def nearer(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearer of two answers of `nearest_outside`, ties to the first, which is that of lower rows."""
    closer = other[1] < one[1]
    return np.where(closer, other[0], one[0]), np.where(closer, other[1], one[1])


def boruvka_round(
    n_components: int, queries: Ends, neighbors: Ends, distances: np.ndarray
) -> tuple[Bridges, np.ndarray]:
    """Return one round's bridges, at most one out of each component and no cycles, and what they make of components.

    That is the number (C,) int32 of the component that each belongs to afterwards, by first rows. Ties go to the
    smaller rows. Repeat with the queries of the new components until one is left: at most log2(C) rounds.

    Parameters
    ----------
    queries, neighbors : Q rows, and the nearest row of each in another component, of any number for none
    distances : (Q,) float64, of these pairs, infinite for none
    """
    order = np.lexsort((neighbors.rows, queries.rows, distances))
    order = order[np.isfinite(distances[order])]
    _, first = np.unique(queries.labels[order], return_index=True)
    parents = separate_items(n_components)
    chosen = [i for i in order[np.sort(first)] if unite(parents, queries.labels[i], neighbors.labels[i])]
    rows = np.column_stack([queries.rows[chosen], neighbors.rows[chosen]]).astype(np.int64)
    return Bridges(rows, distances[chosen]), labels_of_roots(parents)
