"""Exact nearest neighbours: products of bytes bound squared distances from below, exact distances settle.

Coordinates about the middle of the rows are rounded to whole steps, and it is known how far off each row is. Products
of the rounded rows, which are integers, tell which pairs may be near enough for the list of either side; a compiled
loop looks at 64 of them at a time. Most of what is left is refused by distances in float32; others are computed in
float64 (of integers exactly), and ties go to the smaller index. So neither tiles and their order nor the processor
change a bit of the result. Before a tile is compared with itself, its products tell how far each list may reach at
most: most rows that would join a list at first, and leave it again, never do.

Where rows are nearer to each other than steps tell, as in tight clusters far apart, and for sets, BLAS multiplies
float32 vectors in place of bytes: all coordinates, or the sketches of sets. Neither are ever farther apart than points.

Bounds of bytes: rows a, b are off by e and f steps, and their rounded rows are x steps apart. Of a list that ends at r
steps, x <= r + e + f for every row that belongs to it, and x^2 <= (1 + t)(r + e)^2 + (1 + 1/t) f^2 for any share t: no
term needs both rows.

Bounds of float32: a product of n terms is off by at most n u |a| |b|, u = 2^-24, in any order of summation [Higham,
Accuracy and Stability of Numerical Algorithms, 2002, section 3.1]. Since 2 |a| |b| <= |a|^2 + |b|^2, squared lengths
that are lowered by n u of themselves, and some more for their rounding, give a bound of what is computed.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.tiles import Mapper, pair_rounds, run, slices, tile_rows
from scalemani.kernels.machine.compile import compiled, compiled_sums, inlined, inlined_sums, square_of
from scalemani.kernels.machine.forks import cached_property
from scalemani.kernels.machine.instructions import ITEM_BYTES, lowest_bit, near_integers, near_singles
from scalemani.kernels.neighbors.rerank import LIMIT_SLACK, Neighbors
from scalemani.kernels.neighbors.row_scan import compared_neighbors
from scalemani.kernels.neighbors.sparse_scan import sparse_neighbors
from scalemani.kernels.rows.byte_products import (
    MOST_STEPS,
    PANEL_ROWS,
    ByteRows,
    byte_rows,
    has_byte_products,
    in_blocks,
    multiply_blocks,
    multiply_bytes,
    step_of_rows,
    uses_tiles,
)
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.products import middle_of_rows
from scalemani.kernels.rows.reduced import COORDINATES, Distance, distance_of, reduced_distance, reduced_of
from scalemani.kernels.rows.sketches import IN_SIGHT
from scalemani.kernels.rows.smallest import bound_within, insert_neighbor

BLAS_ROWS = 512  # of both sides, by which BLAS is at its speed
MULTIPLIED_ROWS = 256  # of both sides, which stay in the second-level cache with their products
TERMS_AT_ONCE = 1024  # of a product in float32: sums of more are sums of such sums, which rounds less
UNIT_ROUNDOFF = 2.0**-24
# In addition to those of n terms, 16 roundings: of squared lengths, of the comparison, and of sketches as far as they
# are off by less than 1e-5 of their lengths, some 20 times what is seen.
MORE_ROUNDINGS = 16
SHARE_OF_VECTORS = 0.002  # of squared distances: (x + e)^2 <= 1.001 x^2 + 1001 e^2, e the rounding of two vectors
SHARE_OF_BYTES = 1 / 48  # where two vectors are off by 2 in 100
MORE_DISTANCE = 1.0 + 1e-6  # than a list tells: it is rounded to float32
MORE_OFF = 1.0 + 1e-9  # than is computed in float64
FARTHEST_OFF = 2.0**29  # squares, in steps: with what is off by more all pairs are looked at
WHOLE = 4.0  # squares, that halves of both rows were rounded down by at most
ROUNDED_SUM = np.float32(8 * UNIT_ROUNDOFF)  # of the size of its terms, that a sum of three in float32 is off at most
SPARE_SHARE = 5  # of the width, that a bound of it may be too wide
LEAST_UNIT = 1e-300
FARTHEST = 1e100  # that a row may be off, so that squares are finite
ROUNDED_OFF = 2.0**-50  # of a length, that coordinates are rounded by
LONGEST = 11_000.0  # steps of a row: the squared distance of two is less than 2**29, and no sum is beyond 32 bits
EVERYTHING, NOTHING = 2**30, -(2**30)  # that a list takes, in squares of steps
UNDERFLOW = 1e-35  # of products, in squares of the unit of length
LANES = 64
SAMPLED_ROWS = 512  # whose coordinates tell the step
MOST_SINGLE = 1e37  # squared distance, below which float32 does not overflow
TRIED_ROWS = 32  # of a tile, evenly spread: do bytes leave few pairs?
MOST_LEFT = 8  # rows for each that is listed: more are settled as slowly as float32 is multiplied


class SketchedRows(NamedTuple):
    """Points, their sketches, the unit of length of the sketches, and how points are compared."""

    points: Points  # (n, D)
    sketches: np.ndarray  # (n, s) float32
    scale: float  # of the sketch basis
    distance: Distance = COORDINATES

    def part(self, rows: slice) -> "SketchedRows":
        """Return consecutive rows."""
        return self._replace(points=self.points[rows], sketches=self.sketches[rows])


class Frame(NamedTuple):
    """The middle (D,) of points, the unit of length of their vectors about it, and the step of bytes in this unit."""

    middle: np.ndarray
    scale: float
    step: float


class Bounds(NamedTuple):
    """What bounds the distances of rows together with their products, in squares of `unit`."""

    halves: np.ndarray  # (n or more,) int32 or float32, half of squared lengths, lowered by what rows are off
    off: np.ndarray  # (n,) float64, how far rows are off
    unit: float
    share: float  # of squared distances, that is left for what rows are off


class Lists(NamedTuple):
    """Lists of neighbours that are being filled, and what they still take; changed in place."""

    labels: np.ndarray  # (n,) int64, the indices of the rows whose lists these are; -1 for none
    indices: np.ndarray  # (n, k) int
    distances: np.ndarray  # (n, k) float
    limits: np.ndarray  # (n,) float64, distances that are not exceeded

    @classmethod
    def of(cls, labels: np.ndarray, known: Neighbors, limits: np.ndarray) -> "Lists":
        """Return a copy of known lists; `limits` (n,) are distances beyond which no neighbour is wanted."""
        limits = np.minimum(limits, known.distances[:, -1].astype(np.float64))
        return cls(labels, known.indices.copy(), known.distances.copy(), limits)

    def part(self, rows: slice) -> "Lists":
        """Return the lists of consecutive rows, which are filled with these."""
        return Lists(*(field[rows] for field in self))


class Tile:
    """Consecutive rows, and what belongs to their vectors for all products that they take part in."""

    def __init__(self, rows: SketchedRows, place: slice, frame: Frame) -> None:
        self.rows, self.place, self.frame = rows.part(place), place, frame

    @cached_property
    def in_bytes(self) -> tuple[ByteRows, Bounds]:
        """All coordinates in whole steps; sums of products begin with minus the halves."""
        unit = max(self.frame.scale * self.frame.step, LEAST_UNIT)
        most = min(float(MOST_STEPS), np.floor(LONGEST / np.sqrt(self.rows.points.shape[1])))
        codes, off = rounded_rows(self.rows.points, self.frame.middle, unit, most)
        lowered = np.minimum(off**2 * (1.0 + 1.0 / SHARE_OF_BYTES), FARTHEST_OFF)
        halves = in_blocks(np.floor((squared_lengths(codes) - lowered) / 2).astype(np.int32))
        return byte_rows(codes, -halves), Bounds(halves, off, unit, SHARE_OF_BYTES)

    def in_float32(self) -> tuple[np.ndarray, Bounds]:
        """Sketches of sets, and all coordinates of other points, which are computed again for each product.

        Together these take as much as the points.
        """
        points, sketches, scale, distance = self.rows
        vectors = sketches if distance != COORDINATES else about(self.frame.middle, points, scale)
        halves = in_blocks(np.float32(0.5) * lowered_squares(vectors))
        return in_blocks(vectors), Bounds(halves, np.zeros(len(vectors)), scale, SHARE_OF_VECTORS)


class Pairs(NamedTuple):
    """Two tiles whose rows are offered to each other: what is of the one, and of the other."""

    points: tuple[np.ndarray, np.ndarray]  # (n, D) and (m, D), those of all queries and of all rows
    sides: "Sides"
    bounds: tuple[Bounds, Bounds]
    reaches: tuple[np.ndarray, np.ndarray]  # as `reach_of_lists` returns them
    lists: tuple[Lists, Lists]  # of the other, none if it takes no rows
    singles: bool  # whether points are float32 coordinates


class Sides(NamedTuple):
    """How a tile is offered to another one."""

    first: int  # number of the first row of the one
    other_first: int  # and of the other
    start: int  # index of the row of number 0
    both: bool  # whether the other takes rows of the one
    same: bool  # whether both are one tile, whose pairs are offered once


def nearest_among(
    queries: SketchedRows,
    query_labels: np.ndarray,
    rows: SketchedRows,
    start: int,
    known: Neighbors,
    limits: np.ndarray,
) -> Neighbors:
    """Return the nearest of the known neighbours and a block of rows, by exact distance, ties by index.

    Blocks of rows are taken one after the other, or each by itself and joined by `merge_neighbors`. Points are dense
    or sparse, those of queries and rows of one dtype.

    Parameters
    ----------
    query_labels : (n,) int, the index of each query, which is no neighbour of itself; -1 for a query that is no row
    start : the index of the first row
    known : (n, k) neighbours, none of them among the rows
    limits : (n,) distances beyond which no neighbour is wanted, inf for none; the lists are complete up to them

    Returns
    -------
    Neighbors (n, k) in the dtypes of `known`
    """
    if sp.issparse(rows.points):
        return sparse_neighbors(rows.distance, queries.points, query_labels, rows.points, start, known, limits)
    if rows.distance.by_function:
        return compared_neighbors(rows.distance, queries.points, query_labels, rows.points, start, known, limits)
    search = Search(queries, rows, start, Lists.of(query_labels, known, limits))
    others = tiles_of(rows, search.frame)
    for tile in tiles_of(queries, search.frame):
        for other in others:
            search.join(tile, other)
            if other is others[0]:
                search.choose(tile, other)
    return search.neighbors


def paired_neighbors(rows: SketchedRows, known: Neighbors, map_fn: Mapper = map) -> Neighbors:
    """Return what `nearest_among` does of dense points among themselves, where all are at hand.

    Each pair of tiles is multiplied once, for the lists of both. A round has pairs of which no two share a tile.

    Parameters
    ----------
    known : (n, k) empty lists
    map_fn : runs the pairs of a round side by side, as the builtin `map` does

    Returns
    -------
    Neighbors (n, k) in the dtypes of `known`
    """
    n_points = len(rows.points)
    search = Search(rows, rows, 0, Lists.of(np.arange(n_points), known, np.full(n_points, np.inf)))
    tiles = tiles_of(rows, search.frame)

    def join_pair(pair: tuple[int, int]) -> None:
        search.join(tiles[pair[0]], tiles[pair[1]], both=True)

    for pairs in pair_rounds(len(tiles)):
        run(map_fn(join_pair, pairs))
        if (0, 0) in pairs:
            search.choose(tiles[0], tiles[0])
    return search.neighbors


def crossed_neighbors(rows: SketchedRows, first: int, known: Neighbors, limits: np.ndarray) -> Neighbors:
    """Return what `nearest_among` does of dense rows before `first` among those from it on, and of these among them.

    Each pair of tiles is multiplied once, for the lists of both.

    Parameters
    ----------
    known : (n, k) empty lists
    limits : as of `nearest_among`

    Returns
    -------
    Neighbors (n, k) in the dtypes of `known`, whose indices are places among the rows
    """
    search = Search(rows, rows, 0, Lists.of(np.arange(len(rows.points)), known, limits))
    before, behind = tiles_of(rows.part(slice(0, first)), search.frame), tiles_of(rows, search.frame, first)
    for tile in before:
        for other in behind:
            search.join(tile, other, both=True)
            if other is behind[0]:
                search.choose(tile, other)
    return search.neighbors


def tiles_of(rows: SketchedRows, frame: Frame, first: int = 0) -> list[Tile]:
    """Return rows from the first on cut into tiles."""
    n_rows = len(rows.points) - first
    places = [slice(first + place.start, first + place.stop) for place in slices(n_rows, tile_rows(n_rows))]
    return [Tile(rows, place, frame) for place in places]


def frame_of(rows: SketchedRows) -> Frame:
    """Return a frame of points; of sets, whose words are no coordinates, it has no step.

    Any would do: neighbours do not depend on it.
    """
    if rows.distance != COORDINATES or not len(rows.points):
        return Frame(np.zeros(rows.points.shape[1]), rows.scale, 0.0)
    middle = middle_of_rows(rows.points)
    some = np.ascontiguousarray(rows.points[:: -(-len(rows.points) // SAMPLED_ROWS)])
    return Frame(middle, rows.scale, float(step_of_rows(about(middle, some, rows.scale), LONGEST)))


class Search:
    """Lists of queries among rows, which tiles of both fill."""

    def __init__(self, queries: SketchedRows, rows: SketchedRows, start: int, lists: Lists) -> None:
        self.points, self.distance = (queries.points, rows.points), rows.distance
        self.start, self.lists, self.frame = start, lists, frame_of(rows)
        self.by_bytes = rows.distance == COORDINATES and has_byte_products()
        self.singles = rows.distance == COORDINATES and rows.points.dtype == np.float32

    @property
    def neighbors(self) -> Neighbors:
        """The lists as they are."""
        return Neighbors(self.lists.indices, self.lists.distances)

    def join(self, one: Tile, other: Tile, both: bool = False) -> None:
        """Offer the rows of the other tile to the lists of the one, and if `both` the other way round too.

        A tile that is joined with itself offers each pair once.
        """
        sides = Sides(one.place.start, other.place.start, self.start, both, one is other)
        lists = self.lists.part(one.place), self.lists.part(other.place if both else slice(0, 0))
        (rows, one_bounds), (columns, other_bounds) = self._table(one), self._table(other)
        bounds = one_bounds, other_bounds
        table, by_tiles = None, uses_tiles(one.rows.points.shape[1])
        if isinstance(rows, ByteRows) and isinstance(columns, ByteRows):
            table = rows.rows, columns.panels, columns.starts
            if (one is other or not both) and np.isinf(lists[0].limits).any():
                limit_lists(table, by_tiles, bounds, lists[0], self.start + other.place.start)
        reaches = reach_of_lists(lists[0].limits, bounds[0]), reach_of_lists(lists[1].limits, bounds[1])
        pairs = Pairs(self.points, sides, bounds, reaches, lists, self.singles)
        if table is not None:
            return join_bytes(table, by_tiles, self.distance, pairs)
        for part in slices(len(rows), BLAS_ROWS):
            for place in slices(len(columns), BLAS_ROWS):
                products = multiplied(rows[part], columns[place]) - bounds[1].halves[place]
                offer_near(products, part.start, place.start, self.distance, pairs)

    def choose(self, one: Tile, other: Tile) -> None:
        """Multiply float32 from now on if bytes leave many pairs of two tiles, by lists that the one has filled."""
        if not self.by_bytes or len(one.rows.points) < TRIED_ROWS:
            return
        (rows, bounds), (columns, _) = one.in_bytes, other.in_bytes
        tried = np.arange(TRIED_ROWS) * (len(bounds.off) // TRIED_ROWS)
        products = multiply_bytes(rows._replace(count=TRIED_ROWS, rows=rows.rows[tried]), columns)[:, : columns.count]
        reaches = reach_of_lists(self.lists.part(one.place).limits, bounds)
        left = products + reaches[tried, np.newaxis] >= bounds.halves[tried, np.newaxis]
        if np.count_nonzero(left) > MOST_LEFT * TRIED_ROWS * self.lists.indices.shape[1]:
            self.by_bytes = False

    def _table(self, tile: Tile) -> tuple[ByteRows | np.ndarray, Bounds]:
        return tile.in_bytes if self.by_bytes else tile.in_float32()


def multiplied(vectors: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the products (n, m) float32 of vectors (n, s) and (m, s) float32."""
    products = None
    for terms in slices(vectors.shape[1], TERMS_AT_ONCE):
        part = vectors[:, terms] @ others[:, terms].T
        products = part if products is None else np.add(products, part, out=products)
    return products


def lowered_squares(vectors: np.ndarray) -> np.ndarray:
    """Return the squared lengths (n,) float32 of vectors (n, s), less what rounding may add to products of them."""
    n_terms = vectors.shape[1]
    roundings = min(n_terms, TERMS_AT_ONCE) + n_terms // TERMS_AT_ONCE + MORE_ROUNDINGS
    squares = squared_lengths(vectors) * (1.0 - roundings * UNIT_ROUNDOFF)
    return squares.astype(np.float32)


@compiled_sums
def squared_lengths(vectors: np.ndarray) -> np.ndarray:
    """Return the squared lengths (n,) float64 of vectors (n, s) float32 or int8."""
    squares = np.zeros(vectors.shape[0])
    for i in range(vectors.shape[0]):
        for d in range(vectors.shape[1]):
            squares[i] += square_of(np.float64(vectors[i, d]))
    return squares


@compiled
def about(middle: np.ndarray, points: np.ndarray, scale: float) -> np.ndarray:
    """Return points (n, D) about a middle (D,) float64, in units of `scale`: (n, D) float32, finite.

    To clip coordinates brings no two points farther apart.
    """
    vectors = np.empty(points.shape, np.float32)
    for i in range(np.uint64(points.shape[0])):
        for d in range(np.uint64(points.shape[1])):
            coordinate = (np.float64(points[i, d]) - middle[d]) / scale
            vectors[i, d] = min(max(coordinate, -IN_SIGHT), IN_SIGHT)
    return vectors


@compiled_sums
def rounded_rows(points: np.ndarray, middle: np.ndarray, unit: float, most: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, D) about a middle (D,) float64 in whole units, at most `most`, and how far off each is.

    Returns
    -------
    codes : (n, D) int8
    off : (n,) float64, in units
    """
    codes, off = np.empty(points.shape, np.int8), np.empty(points.shape[0])
    for i in range(np.uint64(points.shape[0])):
        squares, lengths = 0.0, 0.0
        for d in range(np.uint64(points.shape[1])):
            coordinate = (np.float64(points[i, d]) - middle[d]) / unit
            steps = min(max(np.rint(coordinate), -most), most)
            codes[i, d] = np.int8(steps)
            squares += square_of(coordinate - steps)
            lengths += square_of(coordinate)
        off[i] = min(np.sqrt(squares) * MORE_OFF + np.sqrt(lengths) * ROUNDED_OFF, FARTHEST)
    return codes, off


def reach_of_lists(limits: np.ndarray, bounds: Bounds) -> np.ndarray:
    """Return what lists take, of the dtype and length of the halves: what is not below minus it may be near enough.

    Parameters
    ----------
    limits : (n,) float64, distances that are not exceeded; of none, nothing is taken
    """
    halves, integral = bounds.halves, bounds.halves.dtype.kind == "i"
    reaches = np.full(len(halves), NOTHING if integral else -np.inf, halves.dtype)
    fill_reaches(limits, bounds, integral, reaches)
    return reaches


@compiled
def fill_reaches(limits: np.ndarray, bounds: Bounds, integral: bool, reaches: np.ndarray) -> None:
    """Write what lists with such limits take."""
    off, unit, share = bounds.off, bounds.unit, bounds.share
    for i in range(limits.size):
        reaches[i] = whole_reach(reach_of(limits[i], off[i], unit, share), integral)


@inlined
def reach_of(limit: float, off: float, unit: float, share: float) -> float:
    """Return half of the squared distance of vectors up to which a row belongs to a list, less what the row is off."""
    radius = limit * MORE_DISTANCE / unit + off
    return 0.5 * (square_of(radius) * (1.0 + share) - min(square_of(off) * (1.0 + 1.0 / share), FARTHEST_OFF))


@inlined
def whole_reach(reach: float, integral: bool) -> float:
    """Return a reach as it is compared: a whole number, or what float32 does not round below it."""
    if integral:
        return min(max(np.floor(reach) + 1.0, NOTHING), EVERYTHING)
    return reach * MORE_DISTANCE + UNDERFLOW


@compiled
def limit_lists(
    table: tuple[np.ndarray, np.ndarray, np.ndarray],
    by_tiles: bool,
    bounds: tuple[Bounds, Bounds],
    lists: Lists,
    other_label: int,
) -> None:
    """Lower the limits of lists to what as many rows of another tile as they hold are certainly within.

    Parameters
    ----------
    table, by_tiles, bounds : as in `join_bytes`
    other_label : the index of the first row of the other tile
    """
    rows, panels, starts = table
    one, other = bounds
    width = lists.indices.shape[1]
    lowered, n_others, labels, limits = lowered_by(one), other.off.size, lists.labels, lists.limits
    # The square of x + f is at most (1 + t) x^2 + (1 + 1/t) f^2; x^2 is a sum of halves and what these were lowered by.
    growth, by_other, n_known, most_added = 1.0 + one.share, np.full(n_others, np.inf, np.float32), 0, np.float32(0.0)
    per_product, other_lowered = np.float32(2.0 * growth), lowered_by(other)
    for j in range(n_others):
        if other_lowered[j] < FARTHEST_OFF:
            by_other[j] = np.float32((growth + 1.0) * other_lowered[j])
            n_known, most_added = n_known + 1, max(most_added, by_other[j])
    if n_known <= width:
        return
    products = np.empty((MULTIPLIED_ROWS // 4, starts.size), np.int32)
    reached = np.full((1, starts.size), np.inf, np.float32)
    for first in range(0, rows.shape[0], products.shape[0]):
        part = rows[first : first + products.shape[0]]
        multiply_blocks(part, panels, starts, products, by_tiles)
        for i in range(first, min(first + products.shape[0], one.off.size)):
            of_row = np.float32(growth * (2.0 * one.halves[i] + lowered[i] + WHOLE))
            row, least = np.uint64(i - first), np.int32(EVERYTHING)
            for j in range(np.uint64(n_others)):
                product = products[row, j]
                least = min(least, product)
                added, taken = of_row + by_other[j], per_product * np.float32(product)
                reached[np.uint64(0), j] = added - taken + ROUNDED_SUM * (added + abs(taken))
            itself = labels[i] - other_label
            if 0 <= itself < n_others:
                reached[0, itself] = np.inf
            added, taken = of_row + most_added, per_product * np.float32(least)
            farthest = added - taken + ROUNDED_SUM * (added + abs(taken))
            bound = bound_within(reached, 0, n_others, np.float32(0.0), farthest, width, width + width // SPARE_SHARE)
            within = np.sqrt(max(np.float64(bound), 0.0) * MORE_DISTANCE) + one.off[i]
            limits[i] = min(limits[i], within * one.unit * MORE_DISTANCE)


@compiled
def lowered_by(bounds: Bounds) -> np.ndarray:
    """Return by how much squared lengths are lowered: (n,) float64."""
    lowered = np.empty(bounds.off.size)
    for i in range(lowered.size):
        lowered[i] = min(square_of(bounds.off[i]) * (1.0 + 1.0 / bounds.share), FARTHEST_OFF)
    return lowered


@compiled
def join_bytes(
    table: tuple[np.ndarray, np.ndarray, np.ndarray], by_tiles: bool, distance: Distance, pairs: Pairs
) -> None:
    """Multiply the bytes of two tiles, a part at a time, and offer their rows.

    Parameters
    ----------
    table : rows of the one, and panels and starts of the other, as `multiply_blocks` takes them
    by_tiles : as there
    """
    rows, panels, starts = table
    products = np.empty((MULTIPLIED_ROWS, MULTIPLIED_ROWS), np.int32)
    for first in range(0, rows.shape[0], MULTIPLIED_ROWS):
        part = rows[first : first + MULTIPLIED_ROWS]
        begun = first if pairs.sides.same else 0
        for column in range(begun, starts.size, MULTIPLIED_ROWS):
            last = min(column + MULTIPLIED_ROWS, starts.size)
            others = panels[column // PANEL_ROWS : last // PANEL_ROWS]
            multiply_blocks(part, others, starts[column:last], products, by_tiles)
            written = products[: part.shape[0], : last - column]
            offer_near(written, first, column, distance, pairs)


@compiled
def offer_near(products: np.ndarray, first: int, column: int, distance: Distance, pairs: Pairs) -> None:
    """Insert the rows of two tiles that are near enough into the lists of either.

    Parameters
    ----------
    products : (r, c) int32 or float32, c a multiple of 64, of rows from `first` on and others from `column` on, less
        the halves of the others
    """
    # Fields taken in a loop would be counted as references.
    points, sides, bounds, reaches, lists, singles = pairs
    (queries, rows), (one_reaches, other_reaches), halves = points, reaches, bounds[0].halves
    labels, indices, distances, limits = lists[0]
    _, other_indices, other_distances, other_limits = lists[1]
    off, other_off = bounds[0].off, bounds[1].off
    first_of_one, other_first, start, both, same = sides
    lanes, rounded = np.uint64(LANES), np.empty(1, distances.dtype)
    n_others, integral = np.uint64(other_off.size), bounds[0].share == SHARE_OF_BYTES
    for i in range(np.uint64(first), min(np.uint64(first + products.shape[0]), np.uint64(off.size))):
        row, half = i - np.uint64(first), halves[i]
        for j in range(np.uint64(column), min(np.uint64(column + products.shape[1]), n_others), lanes):
            if same and j + lanes <= i + np.uint64(1):
                continue
            sums_at = products.ctypes.data + row * products.strides[0] + (j - np.uint64(column)) * ITEM_BYTES
            reaches_at = other_reaches.ctypes.data + j * ITEM_BYTES
            near = near_lanes(np.int64(sums_at), np.int64(reaches_at), one_reaches[i], half, integral)
            while near != np.uint64(0):
                number = j + np.uint64(lowest_bit(near))
                near &= near - np.uint64(1)
                if number >= n_others or (same and number <= i):
                    continue
                product = products[row, number - np.uint64(column)]
                query, other = first_of_one + np.int64(i), other_first + np.int64(number)
                wanted = product + one_reaches[i] >= half and start + other != labels[i]
                wanted_by_other = both and product + other_reaches[number] >= half
                limit = limits[i] if wanted else -1.0
                if wanted_by_other:
                    limit = max(limit, other_limits[number])
                bound = reduced_of(distance, limit) * LIMIT_SLACK if limit >= 0.0 else -1.0
                if singles and is_beyond(queries, query, rows, other, bound):
                    continue
                reduced = reduced_distance(distance, queries, query, rows, other, bound)
                if reduced > bound:
                    continue
                rounded[0] = distance_of(distance, reduced)  # in the dtype of the lists, so that ties stay ties
                if wanted and rounded[0] <= limits[i] * MORE_DISTANCE:
                    insert_neighbor(indices, distances, i, start + other, rounded[0])
                    limits[i] = min(limits[i], np.float64(distances[i, -1]))
                    reach = reach_of(limits[i], off[i], bounds[0].unit, bounds[0].share)
                    one_reaches[i] = whole_reach(reach, integral)
                if wanted_by_other and rounded[0] <= other_limits[number] * MORE_DISTANCE:
                    insert_neighbor(other_indices, other_distances, number, query, rounded[0])
                    other_limits[number] = min(other_limits[number], np.float64(other_distances[number, -1]))
                    reach = reach_of(other_limits[number], other_off[number], bounds[1].unit, bounds[1].share)
                    other_reaches[number] = whole_reach(reach, integral)


@inlined
def near_lanes(sums: int, reaches: int, reach: float, half: float, integral: bool) -> int:
    """Return which of 64 pairs may be near enough for either side, as bits; `sums` and `reaches` are addresses."""
    if integral:
        return near_integers(sums, reaches, np.int32(reach), np.int32(half))
    return near_singles(sums, reaches, np.float32(reach), np.float32(half))


@inlined_sums
def is_beyond(queries: np.ndarray, query: int, rows: np.ndarray, row: int, limit: float) -> bool:
    """Return whether the squared distance of two rows (D,) float32 is certainly above a limit, in half the time.

    A sum of n squares in float32 is off by at most (n + 2) u of itself, u = 2^-24, in any order.
    """
    i, j, n_terms, total = np.uint64(query), np.uint64(row), np.uint64(queries.shape[1]), np.float32(0.0)
    for d in range(n_terms):
        difference = np.float32(queries[i, d]) - np.float32(rows[j, d])
        total += difference * difference
    least = np.float64(total) * (1.0 - np.float64(n_terms + np.uint64(2)) * 2.0 * UNIT_ROUNDOFF) - UNDERFLOW
    return least > limit and limit < MOST_SINGLE  # where float32 overflows, nothing is known
