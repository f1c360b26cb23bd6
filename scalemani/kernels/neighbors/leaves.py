"""Neighbours within overlapping leaves: points that share a leader, each of which is compared with all others.

Leaders are points drawn at random, and a point is in the leaves of the few leaders nearest to it. The products of a
leaf in float32 choose candidates. Two near points share a leaf the more often the more leaves either is in, and leaves
of other leaders find what those before have missed. Nothing here takes leading axes: vectors of language and image
models have none, and cells of their sketches lose the neighbours.

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
from scalemani.kernels.neighbors.cell_groups import CellGroups, group_cells, nearest_cells_in_groups
from scalemani.kernels.neighbors.cells import nearest_cells
from scalemani.kernels.rows.smallest import LARGEST, POOL_MARGIN, append_within, bound_within

LARGE = 2.5  # times the points that a leaf is to have: what is larger is split, since products grow with the square
MORE_LEADERS = 1.5  # times as many as leaves of that size: sizes differ
MOST_SPLITS = 4  # of a leaf: equal points have one leader however often, and are cut
FEW_LEADERS = 1024  # up to here every leader is looked at
SPARE_SHARE = 5  # of the width, that a bound of it may be too wide


class Candidates(NamedTuple):
    """The rows that are nearest to each point by products: (n, c) each, in no order; fewer end in -1, infinitely far.

    `squares` float32 are half of squared distances, in squares of the unit of length.
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


def index_leaders(vectors: np.ndarray) -> CellGroups:
    """Return what finds the nearest leaders (L, D) float32: in groups where there are many."""
    return group_cells(vectors, FEW_LEADERS)


def nearest_leaders(vectors: np.ndarray, leaders: CellGroups, overlap: int) -> np.ndarray:
    """Return the numbers (n, overlap) int32 of the leaders nearest to vectors (n, D) float32, or nearly.

    A row of the answer depends on its vector only.
    """
    return nearest_cells_in_groups(vectors, leaders, overlap)


def split_leaf(vectors: np.ndarray, leaf_points: int, draws: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the rows of each part of a leaf, ascending: all, or those of leaders of their own where it is large.

    In the first split a point is in the parts of two leaders, later in that of one.

    Parameters
    ----------
    vectors : (n, D) float32
    """
    pending = [(np.arange(len(vectors)), 0)]
    while pending:
        rows, depth = pending.pop()
        if len(rows) <= LARGE * leaf_points:
            yield rows
        elif depth == MOST_SPLITS:
            yield from (rows[part] for part in slices(len(rows), leaf_points))
        else:
            count, width = math.ceil(MORE_LEADERS * len(rows) / leaf_points), 1 if depth else 2
            leaders = rows[np.sort(draws.choice(len(rows), count, replace=False))]
            order, bounds = group_by(nearest_cells(vectors[rows], vectors[leaders], width).ravel(), count)
            parts = (rows[order[bounds[i] : bounds[i + 1]] // width] for i in range(count))
            pending.extend((part, depth + 1) for part in parts if len(part) > 1)


def join_leaf(
    vectors: np.ndarray,
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
    vectors : (m, D) float32, about their middle
    places : (m,) int64, which of the candidates' points they are
    labels : (n,) int32, the rows of all of these
    limits : (n,) float32, of what is offered to each; inf for none
    candidates : (n, c)
    """
    for part in split_leaf(vectors, leaf_points, draws):
        own = vectors if len(part) == len(vectors) else vectors[part]
        products = own @ own.T  # which NumPy computes as one triangle, mirrored
        offer_products(products, np.diagonal(products) / np.float32(2), places[part], labels, limits, *candidates)


@compiled
def offer_products(
    products: np.ndarray,
    halves: np.ndarray,
    places: np.ndarray,
    labels: np.ndarray,
    limits: np.ndarray,
    indices: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Offer points to each other, by products (m, m) float32 of their vectors and half of their squared lengths (m,).

    Other parameters are those of `join_leaf`.
    """
    count, width = np.uint64(products.shape[0]), indices.shape[1]
    size = (products.shape[0] + LANES_AT_ONCE - 1) // LANES_AT_ONCE * LANES_AT_ONCE
    offered, numbers = np.full((1, size), np.inf, np.float32), np.arange(size).astype(np.int32)
    within = np.empty((1, size + POOL_MARGIN), np.float32)
    found = np.empty((1, size + POOL_MARGIN), np.int32)
    for i in range(count):
        row = np.uint64(places[i])
        bound = min(limits[row], _last(squares, row))
        farthest, n_near = _squares_to(i, products, halves, bound, offered)
        if n_near > width + width // SPARE_SHARE:  # of one leaf no more than the width can stay
            bound = bound_within(
                offered, 0, offered.shape[1], np.float32(0.0), min(bound, farthest), width, width + width // SPARE_SHARE
            )
        for a in range(np.uint64(append_within(offered, 0, bound, numbers, within, found, 0))):
            label = labels[np.uint64(places[np.uint64(found[0, a])])]
            offer_candidate(indices, squares, row, label, within[0, a])


@compiled
def _squares_to(
    i: int, products: np.ndarray, halves: np.ndarray, bound: float, offered: np.ndarray
) -> tuple[np.float32, int]:
    """Write half of the squared distances of point i; return the largest, and how many are within a bound."""
    farthest, n_near, zero = np.float32(0.0), np.int32(0), np.uint64(0)
    for j in range(np.uint64(products.shape[0])):
        square = max(halves[i] + (halves[j] - products[i, j]), np.float32(0.0))
        offered[zero, j] = square
        farthest = max(farthest, square)
        n_near += np.int32(square <= bound)
    offered[zero, i] = np.inf  # no point is its own neighbour
    return farthest, np.int64(n_near)


@compiled
def _last(squares: np.ndarray, row: int) -> np.float32:
    """Return the largest square among the candidates of a point."""
    largest = squares[row, np.uint64(0)]
    for a in range(np.uint64(squares.shape[1])):
        largest = max(largest, squares[row, a])
    return largest


@compiled
def offer_candidate(indices: np.ndarray, squares: np.ndarray, row: int, label: int, square: float) -> None:
    """Offer a row to the candidates (n, c) of a point: the least by square, then label, stay, each once."""
    worst = np.uint64(0)
    for a in range(np.uint64(indices.shape[1])):
        if indices[row, a] == label:
            squares[row, a] = min(squares[row, a], square)
            return
        if squares[row, a] > squares[row, worst] or (
            squares[row, a] == squares[row, worst] and indices[row, a] > indices[row, worst]
        ):
            worst = a
    if square < squares[row, worst] or (square == squares[row, worst] and label < indices[row, worst]):
        indices[row, worst] = label
        squares[row, worst] = square


@compiled
def merge_candidates(
    indices: np.ndarray, squares: np.ndarray, places: np.ndarray, found: np.ndarray, found_squares: np.ndarray
) -> None:
    """Offer candidates (m, c) to those (n, c) at `places` (m,) int64, which are changed in place."""
    for i in range(np.uint64(found.shape[0])):
        row = np.uint64(places[i])
        for a in range(np.uint64(found.shape[1])):
            if found[i, a] >= 0 and found_squares[i, a] <= _last(squares, row):
                offer_candidate(indices, squares, row, found[i, a], found_squares[i, a])
