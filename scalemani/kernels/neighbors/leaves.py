"""Neighbours within overlapping leaves: points that share a leader, each of which is compared with all others.

Leaders are points drawn at random, and a point is in the leaves of the few leaders nearest to it. The products of a
leaf choose candidates. Coordinates are rounded to bytes for these, in steps of each leaf. Where a function compares
rows, it is called for the leaders and for each pair of a leaf, once for both. Two near points share a leaf
the more often the more leaves either is in, and leaves of other leaders find what those before have missed. Nothing
here takes leading axes: vectors of language and image models have none, and cells of their sketches lose the
neighbours.

References
----------
Rubel, Dhulipala, Gottesbueren, Jayaram and Lacki, PiPNN: Ultra-scalable graph-based nearest neighbor indexing, 2025.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.arrays.tiles import slices
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.instructions import LANES_AT_ONCE
from scalemani.kernels.neighbors.cell_index import CellGroups, group_cells, nearest_cells_in_groups
from scalemani.kernels.neighbors.exact import LANES, squared_lengths
from scalemani.kernels.neighbors.rerank import no_neighbors
from scalemani.kernels.neighbors.row_scan import compared_neighbors, measure_rows, tile_rows
from scalemani.kernels.rows.byte_products import ByteRows, byte_rows, multiply_bytes, step_of_rows
from scalemani.kernels.rows.reduced import ComparedTable, Distance
from scalemani.kernels.rows.sketches import rounded_sketches
from scalemani.kernels.rows.smallest import LARGEST, POOL_MARGIN, append_within, bound_within

LARGE = 2.5  # times the points that a leaf is to have: what is larger is split, since products grow with the square
MORE_LEADERS = 1.5  # times as many as leaves of that size: sizes differ
MOST_SPLITS = 4  # of a leaf: equal points have one leader however often, and are cut
MULTIPLIED_ROWS = 192  # of a leaf, whose products stay in the second-level cache
FEW_LEADERS = 16_384  # up to here every leader is looked at
SPARE_SHARE = 5  # of the width, that a bound of it may be too wide
CUTS_OF_POOL = 2  # times what a cut of rows that wait to be offered may leave, that there is room for


class Candidates(NamedTuple):
    """The rows that are nearest to each point by products: (n, c) each, ascending; fewer end in -1, infinitely far.

    `squares` float32 are half of squared distances, in squares of the unit of length; or the distances of a function.
    """

    indices: np.ndarray
    squares: np.ndarray

    @classmethod
    def empty(cls, count: int, width: int) -> "Candidates":
        """Return candidates before any is known."""
        return cls(np.full((count, width), -1, np.int32), np.full((count, width), LARGEST, np.float32))


def count_leaders(n_points: int, leaf_points: int, overlap: int) -> int:
    """Return how many leaders there are if each point is in `overlap` leaves of so many points on average."""
    return min(n_points, max(overlap, math.ceil(n_points * overlap / leaf_points)))


class Leaders(NamedTuple):
    """Leaders in whole steps: as they are multiplied, and half of their squared lengths (L,) float32 in steps."""

    step: float
    rows: ByteRows
    halves: np.ndarray


LeaderIndex = Leaders | CellGroups | ComparedTable


def index_leaders(leaders: ComparedTable) -> LeaderIndex:
    """Return what finds the nearest of leaders (L, D): in groups where there are many, of coordinates (L, D) float32.

    All are looked at where a function compares rows (L, D) float64.
    """
    distance, vectors = leaders
    if distance.by_function:
        return leaders
    if len(vectors) > FEW_LEADERS:
        return group_cells(vectors)
    step = step_of_rows(vectors)
    codes = rounded_sketches(vectors, step)
    return Leaders(step, byte_rows(codes), half_squares(codes))


def nearest_leaders(vectors: np.ndarray, leaders: LeaderIndex, overlap: int) -> np.ndarray:
    """Return the numbers (n, overlap) int32 of the leaders nearest to vectors (n, D), or nearly.

    A row of the answer depends on its vector only.
    """
    if isinstance(leaders, ComparedTable):
        none, unlimited = no_neighbors(len(vectors), overlap), np.full(len(vectors), np.inf)
        labels = np.full(len(vectors), -1)
        return compared_neighbors(leaders.distance, vectors, labels, leaders.rows, 0, none, unlimited).indices
    if isinstance(leaders, CellGroups):
        return nearest_cells_in_groups(vectors, leaders, overlap)
    coded = byte_rows(rounded_sketches(vectors, leaders.step))
    nearest = Candidates.empty(len(vectors), overlap)
    for rows in slices(len(vectors), MULTIPLIED_ROWS):
        products = multiply_bytes(coded.part(rows), leaders.rows)
        nearest_by_products(products, leaders.halves, nearest.indices[rows], nearest.squares[rows])
    return nearest.indices


def half_squares(codes: np.ndarray) -> np.ndarray:
    """Return half of the squared lengths (n,) float32 of rows (n, D) int8."""
    return (0.5 * squared_lengths(codes.astype(np.float32))).astype(np.float32)


@compiled
def nearest_by_products(products: np.ndarray, halves: np.ndarray, indices: np.ndarray, squares: np.ndarray) -> None:
    """Write the numbers of the rows that are nearest by products, ascending.

    Parameters
    ----------
    products : (r, m or more) int32
    halves : (m,) float32, half of the squared lengths of the rows
    indices, squares : (r, c) int32 and float32, as empty candidates have them; changed in place
    """
    lanes, n_rows, last = np.uint64(LANES), np.uint64(halves.size), np.uint64(indices.shape[1] - 1)
    for i in range(np.uint64(products.shape[0])):
        first = np.uint64(0)
        while first < n_rows:
            if first + lanes > n_rows or _any_below(products, i, first, halves, squares[i, last]):
                for j in range(first, min(first + lanes, n_rows)):
                    square = halves[j] - np.float32(products[i, j])
                    if square < squares[i, last]:
                        offer_candidate(indices, squares, i, np.int32(j), square)
            first += lanes


@compiled
def _any_below(products: np.ndarray, i: int, first: int, halves: np.ndarray, bound: float) -> bool:
    """Return whether one of 64 products from `first` on is that of a near row."""
    below = np.int32(0)
    for lane in range(np.uint64(LANES)):
        below |= np.int32(halves[first + lane] - np.float32(products[i, first + lane]) < bound)
    return below != 0


def split_leaf(table: ComparedTable, leaf_points: int, draws: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the rows of each part of a leaf, ascending: all, or those of separate leaders where it is large.

    In the first split a point is in the parts of two leaders, later in that of one.

    Parameters
    ----------
    table : (n, D), as `join_leaf` takes it
    """
    distance, vectors = table
    pending = [(np.arange(len(vectors)), 0)]
    while pending:
        rows, depth = pending.pop()
        if len(rows) <= LARGE * leaf_points:
            yield rows
        elif depth == MOST_SPLITS:
            yield from (rows[part] for part in slices(len(rows), leaf_points))
        else:
            count, width = math.ceil(MORE_LEADERS * len(rows) / leaf_points), 1 if depth else 2
            drawn = rows[np.sort(draws.choice(len(rows), count, replace=False))]
            leaders = index_leaders(ComparedTable(distance, vectors[drawn]))
            order, bounds = group_by(nearest_leaders(vectors[rows], leaders, width).ravel(), count)
            parts = (rows[order[bounds[i] : bounds[i + 1]] // width] for i in range(count))
            pending.extend((part, depth + 1) for part in parts if len(part) > 1)


def join_leaf(
    table: ComparedTable,
    places: np.ndarray,
    labels: np.ndarray,
    limits: np.ndarray,
    candidates: Candidates,
    leaf_points: int,
    draws: np.random.Generator,
) -> None:
    """Offer the points of a leaf to each other as candidates, which are changed in place.

    Of a large leaf, points are offered to each other that share a part of it. Candidates depend neither on the order of
    leaves nor on which others there are: of a pair that shares several, the least square stands.

    Parameters
    ----------
    table : coordinates (m, D) float32 about their middle, or the rows (m, D) float64 that a function compares
    places : (m,) int64, which of the candidates' points they are
    labels : (n,) int32, the rows of all of these
    limits : (n,) float32, of what is offered to each; inf for none
    candidates : (n, c)
    """
    distance, vectors = table
    for part in split_leaf(table, leaf_points, draws):
        part_vectors = vectors if len(part) == len(vectors) else vectors[part]
        if distance.by_function:
            leaf = Leaf(part_vectors, places[part], tile_rows(vectors.shape[1]))
            offer_compared(distance, leaf, labels, limits, *candidates)
            continue
        step = step_of_rows(part_vectors)
        codes = rounded_sketches(part_vectors, step)
        coded, halves = byte_rows(codes), half_squares(codes)
        for rows in slices(len(part), MULTIPLIED_ROWS):
            products = LeafProducts(multiply_bytes(coded.part(rows), coded), rows.start, halves, step**2)
            offer_products(products, places[part], labels, limits, *candidates)


class Leaf(NamedTuple):
    """Rows (m, D) float64 of a leaf that a function compares, `tile` of them with all others at a time, and `places`.

    `places` (m,) int64 say which of the candidates' points they are.
    """

    vectors: np.ndarray
    places: np.ndarray
    tile: int


class NearRows(NamedTuple):
    """What is near each row of a leaf and waits to be offered: the first `counts` of `values` and `rows`.

    A value from `bounds` on does not wait.
    """

    values: np.ndarray  # (m, capacity) float32
    rows: np.ndarray  # (m, capacity) int32, of the leaf
    counts: np.ndarray  # (m,) int64
    bounds: np.ndarray  # (m,) float32


@compiled
def offer_compared(
    distance: Distance,
    leaf: Leaf,
    labels: np.ndarray,
    limits: np.ndarray,
    indices: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Offer the points of a leaf to each other by a function, of which each pair has one call.

    Other parameters are those of `join_leaf`.
    """
    vectors, places, tile = leaf
    n_points, width = vectors.shape[0], indices.shape[1]
    capacity = CUTS_OF_POOL * most_waiting(width)
    values, rows = np.empty((n_points, capacity), np.float32), np.empty((n_points, capacity), np.int32)
    near = NearRows(values, rows, np.zeros(n_points, np.int64), np.empty(n_points, np.float32))
    bounds, counts = near.bounds, near.counts
    for i in range(n_points):
        bounds[i] = min(limits[places[i]], squares[places[i], width - 1])
    measured = np.empty(tile)
    for first in range(0, n_points, tile):
        for i in range(first + 1, n_points):
            last = min(first + tile, i)
            measure_rows(distance, vectors, i, vectors[first:last], last - first, measured)
            for j in range(first, last):
                value = np.float32(measured[j - first])
                if value < bounds[i]:
                    add_near(near, i, j, value, width)
                if value < bounds[j]:
                    add_near(near, j, i, value, width)
    for i in range(n_points):
        for a in range(counts[i]):
            offer_candidate(indices, squares, places[i], labels[places[rows[i, a]]], values[i, a])


@compiled
def most_waiting(width: int) -> int:
    """Return how many rows wait to be offered to a list of some width after a cut, at most."""
    return width + width // SPARE_SHARE + 1


@compiled
def add_near(near: NearRows, row: int, other: int, value: float, width: int) -> None:
    """Add a row to those that are near another; once there are many, at least `width` of the nearest stay."""
    values, rows, counts, bounds = near
    count = counts[row]
    values[row, count], rows[row, count] = value, other
    counts[row] = count + 1
    if count + 1 < values.shape[1]:
        return
    most = most_waiting(width)
    bound = bound_within(values, row, count + 1, np.float32(0.0), values[row].max(), width, most)
    n_near = 0
    for a in range(count + 1):
        n_near += np.int64(values[row, a] <= bound)
    if n_near > most:  # ties
        order = np.argsort(values[row])[:width]
        values[row, :width], rows[row, :width] = values[row][order], rows[row][order]
        counts[row], bounds[row] = width, values[row, width - 1]
        return
    n_near = 0
    for a in range(count + 1):
        value = values[row, a]
        values[row, n_near], rows[row, n_near] = value, rows[row, a]
        n_near += np.int64(value <= bound)
    counts[row], bounds[row] = n_near, bound


class LeafProducts(NamedTuple):
    """Products (r, m or more) int32 of some points of a leaf, from `first` on, with all, in steps of sqrt(`unit`).

    `halves` (m,) float32 are half of the squared lengths.
    """

    products: np.ndarray
    first: int
    halves: np.ndarray
    unit: float


@compiled
def offer_products(
    leaf: LeafProducts,
    places: np.ndarray,
    labels: np.ndarray,
    limits: np.ndarray,
    indices: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Offer the points of a leaf to some of them; other parameters are those of `join_leaf`."""
    products, first, halves, unit = leaf
    n_points, largest, scale = halves.size, halves.max(), np.float32(unit)
    width, size = indices.shape[1], (n_points + LANES_AT_ONCE - 1) // LANES_AT_ONCE * LANES_AT_ONCE
    offered, numbers = np.full((1, size), np.inf, np.float32), np.arange(size).astype(np.int32)
    within = np.empty((1, size + POOL_MARGIN), np.float32)
    near = np.empty((1, size + POOL_MARGIN), np.int32)
    for i in range(np.uint64(products.shape[0])):
        place = np.uint64(first) + i
        row = np.uint64(places[place])
        bound = min(limits[row], squares[row, np.uint64(width - 1)])
        n_near = _squares_to(i, products, halves[place], halves, scale, bound, offered)
        offered[np.uint64(0), place] = np.inf  # no point is a neighbour of itself
        if n_near > width + width // SPARE_SHARE:  # of one leaf no more than the width can stay
            farthest = min(bound, np.float32(2.0) * (halves[place] + largest) * scale)  # or more than that
            bound = bound_within(offered, 0, size, np.float32(0.0), farthest, width, width + width // SPARE_SHARE)
        for a in range(np.uint64(append_within(offered, 0, bound, numbers, within, near, 0))):
            label = labels[np.uint64(places[np.uint64(near[0, a])])]
            offer_candidate(indices, squares, row, label, within[0, a])


@compiled
def _squares_to(
    i: int,
    products: np.ndarray,
    half: float,
    halves: np.ndarray,
    unit: float,
    bound: float,
    offered: np.ndarray,
) -> int:
    """Write half of the squared distances of row i of the products; return how many are within a bound."""
    n_near, zero = np.int32(0), np.uint64(0)
    for j in range(np.uint64(halves.size)):
        square = max((half + (halves[j] - np.float32(products[i, j]))) * unit, np.float32(0.0))
        offered[zero, j] = square
        n_near += np.int32(square <= bound)
    return np.int64(n_near)


@compiled
def offer_candidate(indices: np.ndarray, squares: np.ndarray, row: int, label: int, square: float) -> None:
    """Offer a row to the candidates (n, c) of a point: the least by square, then label, stay, ascending, each once."""
    last = np.uint64(indices.shape[1] - 1)
    if square > squares[row, last] or (square == squares[row, last] and label >= indices[row, last]):
        return
    place = last
    for a in range(last):
        if indices[row, a] == label:
            place = a
    if indices[row, place] == label and squares[row, place] <= square:
        return
    while place > np.uint64(0):
        before = place - np.uint64(1)
        if squares[row, before] < square or (squares[row, before] == square and indices[row, before] < label):
            break
        indices[row, place], squares[row, place] = indices[row, before], squares[row, before]
        place = before
    indices[row, place], squares[row, place] = label, square


@compiled
def merge_candidates(
    indices: np.ndarray, squares: np.ndarray, places: np.ndarray, offered: np.ndarray, offered_squares: np.ndarray
) -> None:
    """Offer candidates (m, c), ascending, to those (n, c) at `places` (m,) int64, which are changed in place."""
    last, n_offered = np.uint64(indices.shape[1] - 1), np.uint64(offered.shape[1])
    for i in range(np.uint64(offered.shape[0])):
        row, a = np.uint64(places[i]), np.uint64(0)
        while a < n_offered and offered[i, a] >= 0 and offered_squares[i, a] <= squares[row, last]:
            offer_candidate(indices, squares, row, offered[i, a], offered_squares[i, a])
            a += np.uint64(1)
