"""Exact nearest neighbours: products of float32 tiles bound squared distances from below, exact distances settle.

A tile is some hundred queries times as many rows. Their vectors a, b are the sketches, or all coordinates about the
middle of the rows; neither are ever farther apart than the points. BLAS multiplies a tile, and a compiled loop compares
|a|^2 + |b|^2 - 2 a.b, 64 entries at a time, with what the lists of both sides still take. The distance of what is near
enough is computed in float64 (of integers exactly), and ties go to the smaller index. So neither tiles and their order
nor BLAS change a bit of the result.

Rounding: a product of n terms in float32 is off by at most n u |a| |b|, u = 2^-24, in any order of summation [Higham,
Accuracy and Stability of Numerical Algorithms, 2002, section 3.1]. Since 2 |a| |b| <= |a|^2 + |b|^2, squared lengths
that are lowered by n u of themselves, and some more for their rounding, give a bound of what is computed.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from scalemani.kernels.arrays.tiles import Mapper, run, slices
from scalemani.kernels.machine.compile import compiled, compiled_sums, square_of
from scalemani.kernels.machine.forks import cached_property
from scalemani.kernels.neighbors.rerank import LIMIT_SLACK, Neighbors
from scalemani.kernels.neighbors.row_scan import compared_neighbors
from scalemani.kernels.neighbors.sparse_scan import sparse_neighbors
from scalemani.kernels.rows.byte_products import byte_panels, has_byte_products, multiply_bytes, step_of_rows
from scalemani.kernels.rows.compressed import Points
from scalemani.kernels.rows.products import middle_of_rows
from scalemani.kernels.rows.reduced import COORDINATES, Distance, distance_of, reduced_distance, reduced_of
from scalemani.kernels.rows.sketches import IN_SIGHT, rounded_sketches
from scalemani.kernels.rows.smallest import insert_neighbor

MOST_ROWS, LEAST_ROWS = 512, 128  # of a tile: its products stay in the second-level cache, and BLAS at its speed
TILE_BYTES = 2**20  # of coordinates in float32
TERMS_AT_ONCE = 1024  # of a product: sums of more are sums of such sums, which rounds less
UNIT_ROUNDOFF = 2.0**-24
# In addition to those of n terms, 16 roundings: of squared lengths, of the comparison, and of sketches as far as they
# are off by less than 1e-5 of their lengths, some 20 times what is seen.
MORE_ROUNDINGS = 16
REACH_SLACK = 1.002  # of squared distances: (x + e)^2 <= 1.001 x^2 + 1001 e^2, e the rounding of two vectors
UNDERFLOW = np.float32(1e-35)  # of products, in squares of the unit of length
LANES = 64
TRIED_ROWS = 16  # of a tile, evenly spread: which vectors leave few pairs?
SETTLED_COST = 6  # times a product of the same length
COST_OF_BYTES = 1 / 6  # times a product in float32
ROUNDED_SHARE = 1 / 48  # of squared distances, that rounding to bytes may take: where two vectors are off by 2 in 100
MARGIN_OF_ERRORS = 1e-5  # that float32 takes from what vectors are off


class SketchedRows(NamedTuple):
    """Points, their sketches, the unit of length of the sketches, and how points are compared."""

    points: Points  # (n, D)
    sketches: np.ndarray  # (n, s) float32
    scale: float  # of the sketch basis
    distance: Distance = COORDINATES

    def part(self, rows: slice) -> "SketchedRows":
        """Return consecutive rows."""
        return self._replace(points=self.points[rows], sketches=self.sketches[rows])


class Bounded(NamedTuple):
    """Twice the products (n, m) float32 of two sides, and (n,) and (m,) float32 whose sums less these bound squares."""

    products: np.ndarray
    squares: tuple[np.ndarray, np.ndarray]


class Tile:
    """Some rows, and what belongs to their vectors, for all products that they take part in: `n_pairs` until now.

    Which vectors are multiplied, the `way`, is decided at pairs 1, 2, 3, 5, 9 and so on.

    The coordinates are computed again for each product: together they take as much as the points.
    """

    def __init__(self, rows: SketchedRows, middle: np.ndarray, step: float) -> None:
        self.points, self.sketches, self.scale, self.distance = rows
        self.middle, self.step = middle, step
        self.n_pairs = self.way = 0

    def coordinates(self) -> np.ndarray:
        """Return all coordinates (n, D) float32 about the middle, in the unit of the sketches."""
        return about(self.middle, self.points, self.scale)

    @cached_property
    def squares_of_sketches(self) -> np.ndarray:
        """(n,) float32, see `lowered_squares`."""
        return lowered_squares(self.sketches)

    @cached_property
    def squares_of_coordinates(self) -> np.ndarray:
        """(n,) float32, see `lowered_squares`."""
        return lowered_squares(self.coordinates())

    @cached_property
    def rounded(self) -> tuple[np.ndarray, np.ndarray]:
        """All coordinates in whole steps, (n, D) int8, and (n,) float32, see `lowered_squares_of_bytes`."""
        vectors = self.coordinates()
        codes = rounded_sketches(vectors, self.step)
        return codes, lowered_squares_of_bytes(vectors, codes, self.step)

    @cached_property
    def panels(self) -> np.ndarray:
        """The rounded coordinates, as they are multiplied with others."""
        return byte_panels(self.rounded[0])


class Lists(NamedTuple):
    """Lists of neighbours that are being filled, and what they still take; changed in place."""

    labels: np.ndarray  # (n,) int64, the indices of the rows whose lists these are; -1 for none
    indices: np.ndarray  # (n, k) int
    distances: np.ndarray  # (n, k) float
    limits: np.ndarray  # (n,) float64, squared distances that are not exceeded
    bounds: np.ndarray  # (n,) float32, the same for bounds of squared distances, in squares of the unit of length

    @classmethod
    def of(cls, labels: np.ndarray, known: Neighbors, limits: np.ndarray, scale: float) -> "Lists":
        """Return a copy of known lists; `limits` (n,) are distances beyond which no neighbour is wanted."""
        reaches = np.minimum(limits, known.distances[:, -1].astype(np.float64))
        with np.errstate(over="ignore"):
            squares, bounds = reaches**2 * LIMIT_SLACK, ((reaches / scale) ** 2 * REACH_SLACK).astype(np.float32)
        return cls(labels, known.indices.copy(), known.distances.copy(), squares, bounds + UNDERFLOW)

    @classmethod
    def closed(cls, labels: np.ndarray, like: "Lists") -> "Lists":
        """Return what stands for the lists of rows that take no neighbours."""
        shape = len(labels), 1
        indices, distances = np.empty(shape, like.indices.dtype), np.empty(shape, like.distances.dtype)
        return cls(labels, indices, distances, np.full(len(labels), -1.0), np.full(len(labels), -np.inf, np.float32))

    def part(self, rows: slice) -> "Lists":
        """Return the lists of consecutive rows, which are filled with these."""
        return Lists(*(field[rows] for field in self))


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
    lists = Lists.of(query_labels, known, limits, rows.scale)
    size, about_middle = tile_rows(rows.points.shape[1]), common_unit(rows)
    others = [(tile, Tile(rows.part(tile), *about_middle)) for tile in slices(rows.points.shape[0], size)]
    for tile in slices(len(query_labels), size):
        some, some_lists = Tile(queries.part(tile), *about_middle), lists.part(tile)
        for place, other in others:
            labels = np.arange(start + place.start, start + place.stop)
            search_tile(some, some_lists, other, Lists.closed(labels, some_lists))
    return Neighbors(lists.indices, lists.distances)


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
    n_points, n_features = rows.points.shape
    lists = Lists.of(np.arange(n_points), known, np.full(n_points, np.inf), rows.scale)
    about_middle = common_unit(rows)
    tiles = [
        (Tile(rows.part(tile), *about_middle), lists.part(tile)) for tile in slices(n_points, tile_rows(n_features))
    ]

    def search_pair(pair: tuple[int, int]) -> None:
        search_tile(*tiles[pair[0]], *tiles[pair[1]])

    for pairs in pair_rounds(n_points, n_features):
        run(map_fn(search_pair, pairs))
    return Neighbors(lists.indices, lists.distances)


def pair_rounds(n_points: int, n_features: int) -> list[list[tuple[int, int]]]:
    """Return rounds of pairs of tiles of so many points: each with itself, then as in a tournament."""
    count = -(-n_points // tile_rows(n_features))
    rounds, ring = [[(number, number) for number in range(count)]], list(range(count + count % 2))
    for _ in range(len(ring) - 1):
        opposite = zip(ring[: len(ring) // 2], reversed(ring), strict=False)
        rounds.append([pair for pair in opposite if max(pair) < count])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return rounds


def tile_rows(n_features: int) -> int:
    """Return how many queries and rows a tile of points with so many features has."""
    return min(max(TILE_BYTES // (4 * n_features) // LANES * LANES, LEAST_ROWS), MOST_ROWS)


def common_unit(rows: SketchedRows) -> tuple[np.ndarray, float]:
    """Return the middle (D,) of points and the step of their coordinates in bytes; sets, whose words are none, have 0.

    Any would do: neighbours do not depend on it.
    """
    if rows.distance != COORDINATES or not len(rows.points):
        return np.zeros(rows.points.shape[1]), 0.0
    middle = middle_of_rows(rows.points)
    some = np.ascontiguousarray(rows.points[:: -(-len(rows.points) // MOST_ROWS)])
    return middle, step_of_rows(about(middle, some, rows.scale))


def search_tile(one: Tile, lists: Lists, other: Tile, others: Lists) -> None:
    """Offer some rows to the lists of others, and those to theirs; rows that are offered to themselves are one object.

    Those vectors are multiplied whose products, and distances of the pairs that these leave, cost least.
    """
    if one.n_pairs & (one.n_pairs - 1) == 0:  # lists come to take less, the more slowly the fuller they are
        one.way = cheapest_way(one, lists, other, others)
    one.n_pairs += 1
    products, squares = (by_sketches, by_bytes, by_coordinates)[one.way](one, other, slice(None))
    if one is other:
        products[np.tri(len(products), dtype=bool)] = np.nan  # each pair once, and none with itself
    settle_near(one.distance, products, squares, (one.points, other.points), lists, others, one.scale)


def by_sketches(one: Tile, other: Tile, rows: slice) -> Bounded:
    """Return twice the products (n, m) float32 of sketches, of some rows of one tile, and their `lowered_squares`."""
    products = multiplied(np.ascontiguousarray(one.sketches[rows]), other.sketches)
    return Bounded(products, (one.squares_of_sketches[rows], other.squares_of_sketches))


def by_bytes(one: Tile, other: Tile, rows: slice) -> Bounded:
    """Return what `by_sketches` does, of all coordinates in whole steps."""
    (codes, squares), (_, other_squares) = one.rounded, other.rounded
    products, unit = multiply_bytes(codes[rows], other.panels), np.float32(2.0 * (1.0 - ROUNDED_SHARE) * one.step**2)
    products = np.multiply(products[:, : len(other_squares)], unit, dtype=np.float32)
    return Bounded(products, (squares[rows], other_squares))


def by_coordinates(one: Tile, other: Tile, rows: slice) -> Bounded:
    """Return what `by_sketches` does, of all coordinates."""
    products = multiplied(one.coordinates()[rows], other.coordinates())
    return Bounded(products, (one.squares_of_coordinates[rows], other.squares_of_coordinates))


def cheapest_way(one: Tile, lists: Lists, other: Tile, others: Lists) -> int:
    """Return whether sketches, bytes or coordinates are multiplied: 0, 1 or 2, by the pairs of some rows.

    Of sets, whose words hold no coordinates, it is sketches.
    """
    n_terms, n_features = one.sketches.shape[1], one.points.shape[1]
    if n_terms >= n_features or one.distance != COORDINATES:
        return 0
    costs, tried = [np.inf, np.inf, n_features], slice(None, None, -(-len(one.sketches) // TRIED_ROWS))
    limits = np.maximum.outer(lists.bounds[tried], others.bounds)
    products_of_bytes = n_features * (COST_OF_BYTES if has_byte_products() else 1.0)
    for way, least, multiply in ((0, n_terms, by_sketches), (1, products_of_bytes, by_bytes)):
        if least < min(costs):
            products, squares = multiply(one, other, tried)
            costs[way] = least + SETTLED_COST * n_features * np.mean(np.add.outer(*squares) - products <= limits)
    return int(np.argmin(costs))


def multiplied(vectors: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return twice the products (n, m) float32 of vectors (n, s) and (m, s) float32."""
    doubled, products = 2.0 * vectors, None
    for terms in slices(vectors.shape[1], TERMS_AT_ONCE):
        part = doubled[:, terms] @ others[:, terms].T
        products = part if products is None else np.add(products, part, out=products)
    return products


def lowered_squares(vectors: np.ndarray) -> np.ndarray:
    """Return the squared lengths (n,) float32 of vectors (n, s), less what rounding may add to products of them."""
    n_terms = vectors.shape[1]
    roundings = min(n_terms, TERMS_AT_ONCE) + n_terms // TERMS_AT_ONCE + MORE_ROUNDINGS
    squares = squared_lengths(vectors) * (1.0 - roundings * UNIT_ROUNDOFF)
    return squares.astype(np.float32)


def lowered_squares_of_bytes(vectors: np.ndarray, codes: np.ndarray, step: float) -> np.ndarray:
    """Return what `lowered_squares` does, of vectors in whole steps (n, s) int8, by how far off each of these is.

    Where vectors are off by e together, and d of distance x in steps, d^2 >= (x - e)^2 >= (1 - t) x^2 - (1 / t - 1) e^2
    for any share t, and e^2 is at most twice the sum of both squares. No other term needs both vectors.
    """
    in_steps = step * codes.astype(np.float32)
    lengths, off = squared_lengths(in_steps), squared_lengths(vectors - in_steps)
    squares = (1.0 - ROUNDED_SHARE) * lengths - 2.0 * (1.0 / ROUNDED_SHARE - 1.0) * (1.0 + MARGIN_OF_ERRORS) * off
    return (squares - MORE_ROUNDINGS * UNIT_ROUNDOFF * (squared_lengths(vectors) + lengths)).astype(np.float32)


@compiled_sums
def squared_lengths(vectors: np.ndarray) -> np.ndarray:
    """Return the squared lengths (n,) float64 of vectors (n, s) float32."""
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


@compiled
def settle_near(
    distance: Distance,
    products: np.ndarray,
    squares: tuple[np.ndarray, np.ndarray],
    points: tuple[np.ndarray, np.ndarray],
    lists: Lists,
    others: Lists,
    scale: float,
) -> None:
    """Insert the rows of a tile that are near enough into the lists of both sides.

    Parameters
    ----------
    distance : how points are compared
    products : (n, m) float32, twice the products of the vectors of both sides; NaN for a pair that is left out
    squares : (n,) and (m,) float32, from `lowered_squares`
    points : (n, D) and (m, D)
    lists, others : of n and m rows
    """
    one_squares, other_squares = squares
    one_points, other_points = points
    # Fields taken in a loop would be counted as references.
    one_labels, one_indices, one_distances, one_limits, one_bounds = lists
    other_labels, other_indices, other_distances, other_limits, other_bounds = others
    rounded = np.empty(1, one_distances.dtype)
    lanes, n_rows = np.uint64(LANES), np.uint64(products.shape[1])
    for i in range(np.uint64(products.shape[0])):
        square, j = one_squares[i], np.uint64(0)
        while j < n_rows:
            if j + lanes <= n_rows and not _any_near(
                products, i, j, square, other_squares, one_bounds[i], other_bounds
            ):
                j += lanes
                continue
            last = min(j + lanes, n_rows)
            while j < last:
                near = square + other_squares[j] - products[i, j] <= max(one_bounds[i], other_bounds[j])
                if near and one_labels[i] != other_labels[j]:
                    limit, other_limit = one_limits[i], other_limits[j]
                    exact = reduced_distance(distance, one_points, i, other_points, j, max(limit, other_limit))
                    rounded[0] = distance_of(distance, exact)  # in the dtype of the lists, so that ties stay ties
                    if exact <= limit:
                        insert_neighbor(one_indices, one_distances, i, other_labels[j], rounded[0])
                        _lower(distance, one_distances, one_limits, one_bounds, i, scale)
                    if exact <= other_limit:
                        insert_neighbor(other_indices, other_distances, j, one_labels[i], rounded[0])
                        _lower(distance, other_distances, other_limits, other_bounds, j, scale)
                j += np.uint64(1)


@compiled
def _any_near(
    products: np.ndarray,
    i: int,
    first: int,
    square: float,
    other_squares: np.ndarray,
    bound: float,
    other_bounds: np.ndarray,
) -> bool:
    """Return whether one of 64 pairs from `first` on is near enough for one side."""
    near = np.int32(0)
    for lane in range(np.uint64(LANES)):
        j = first + lane
        near |= np.int32(square + other_squares[j] - products[i, j] <= max(bound, other_bounds[j]))
    return near != 0


@compiled
def _lower(
    distance: Distance, distances: np.ndarray, limits: np.ndarray, bounds: np.ndarray, i: int, scale: float
) -> None:
    """Lower what a list takes to its last distance."""
    reach = np.float64(distances[i, distances.shape[1] - 1])
    limits[i] = min(limits[i], reduced_of(distance, reach) * LIMIT_SLACK)
    bounds[i] = min(bounds[i], np.float32(square_of(reach / scale) * REACH_SLACK) + UNDERFLOW)
