"""Entropic affinities of rows of neighbour distances: each tile's rows solved one after the other, warm started.

Points may stand for several equal ones each. A point of weight w is w copies at one place: a copy has the w - 1 others
at distance zero among its neighbours, and all copies of every neighbour. Copies have equal affinities, so one row and
two numbers describe those of all. Source: [EA].

Rows are taken in tiles of 1,024 that are aligned with the global row numbers, and no start crosses a tile: what a row
starts from, and so every bit of its result, does not depend on how many rows a caller hands over at once.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from scalemani.config.methods import OrderExtension, extensions
from scalemani.kernels.affinities.entropy import (
    LARGEST,
    Problem,
    Row,
    bracket,
    bracket_of_masses,
    differences_from_nearest,
    entropy_problem,
    padded_length,
)
from scalemani.kernels.affinities.root_finders import SOLVERS, WITHOUT_SLOPES, root
from scalemani.kernels.arrays.tiles import TILE_ROWS, slices
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.machine.instructions import prefetch_row

ROOT_SHARE = 0.25  # an average over some seven rows: the scaled roots scatter about a common value
ROW_BITS = TILE_ROWS - 1  # TILE_ROWS is a power of two
NO_PARENT = -1  # start in the middle of the row's bracket
OF_METHODS = extensions(OrderExtension)
ORDERS = ("density", "bounds", *OF_METHODS, "oracle")
GRAPH_ORDERS = tuple(name for name, order in OF_METHODS.items() if order.by_graph)


class RowOrder(Protocol):
    """An order of a tile's rows that a method adds."""

    def __call__(
        self, squared_distances: np.ndarray, local_indices: Any, seed: int, tile: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sequence and the parents of rows; arguments and results are those of `row_order`."""
        ...


class EntropicRows(NamedTuple):
    """The result of `entropic_affinities` for each row.

    values (n, k) float64: affinities p, rows sum to one, columns in the order of the input.
    beta (n,) float64: 1 / (2 sigma^2), in units of 1 / squared distance; the largest float64 where saturated.
    iterations (n,) int32: steps taken, i.e. evaluations of the entropy after the one at the start.
    saturated (n,) bool: at least K neighbours tie at the smallest distance; no beta has the requested perplexity.
    residuals (n,) float64: H - log K of the values (entropy in nats).
    """

    values: np.ndarray
    beta: np.ndarray
    iterations: np.ndarray
    saturated: np.ndarray
    residuals: np.ndarray


def empty_rows(n_rows: int, n_neighbors: int) -> EntropicRows:
    """Return results of n rows and k neighbours with anything in them."""
    return EntropicRows(
        np.empty((n_rows, n_neighbors)),
        np.empty(n_rows),
        np.empty(n_rows, dtype=np.int32),
        np.empty(n_rows, dtype=np.bool_),
        np.empty(n_rows),
    )


class RowsOfData(NamedTuple):
    """Which rows of the data are solved for, as far as orders ask.

    Attributes
    ----------
    indices : (n, k) int, global row numbers of the neighbours; "mst" and "path" need them.
    first : global number of the first row, a multiple of 1,024.
    seed : of the orders "random" and "path".
    """

    indices: np.ndarray | None = None
    first: int = 0
    seed: int = 0


ANY_ROWS = RowsOfData()


class Search(NamedTuple):
    """A root finder, and the share of a row's root in what it hands on; the rest is what it received.

    `scaled` says that rows hand on beta times the spread of their distances, else beta, as the thesis does.
    `without_slopes` is None but for the solvers of `WITHOUT_SLOPES`, which are compiled for those who use them.
    `masses` (padded_length,) are room for those of a row; None where every neighbour counts once.
    """

    solver: int
    without_slopes: Any
    root_share: float
    masses: Any
    scaled: bool = True


@compiled
def solve_tile(
    squared_distances: np.ndarray,
    masses: np.ndarray | None,
    sequence: np.ndarray,
    parents: np.ndarray,
    problem: Problem,
    search: Search,
    rows: EntropicRows,
) -> None:
    """Solve a tile's rows one after the other, each from what its parent hands on.

    Parameters
    ----------
    squared_distances : (n, k) float64 or float32, C-contiguous, ascending in each row
    masses : (n, k) float64, how many neighbours each stands for, none negative; None: one
    sequence, parents : (n,) int64, the order in which rows are solved, and the row that each starts from, solved
        before it; -1: the middle of its bracket
    """
    n_rows, n_neighbors = squared_distances.shape
    differences = np.empty(padded_length(n_neighbors))
    exponentials = np.empty_like(differences)
    row = Row(differences, exponentials, problem.log_perplexity, problem.tolerance, search.masses)
    handed_on = np.zeros(n_rows)
    for position in range(n_rows):
        i = sequence[position]
        if position + 1 < n_rows:  # saves a quarter of the time where the order jumps about
            prefetch_row(squared_distances, sequence[position + 1])
            prefetch_row(rows.values, sequence[position + 1])
        received = handed_on[parents[i]] if parents[i] != NO_PARENT else 0.0
        n_ties = differences_from_nearest(squared_distances[i], differences)
        ties = np.float64(n_ties)
        if masses is not None:
            search.masses[:n_neighbors] = masses[i]
            ties = masses[i, :n_ties].sum()
        if ties >= problem.perplexity:
            handed_on[i] = received
            rows.beta[i], rows.iterations[i], rows.saturated[i] = LARGEST, 0, True
            rows.residuals[i] = math.log(ties) - problem.log_perplexity
            rows.values[i, :n_ties] = 1.0 / ties
            rows.values[i, n_ties:] = 0.0
            continue
        if masses is None:
            lower, upper = bracket(differences, n_ties, problem)
        else:
            lower, upper = bracket_of_masses(differences, masses[i], n_ties, problem)
        # No more than K neighbours tie, and one more without a mass.
        scale = differences[max(problem.scale_column, n_ties)] if search.scaled else 1.0
        solved = root(row, received / scale, lower, upper, search.solver, search.without_slopes)
        rows.beta[i], rows.iterations[i], rows.saturated[i] = solved.beta, solved.steps, False
        rows.residuals[i] = solved.residual
        scaled_root = solved.beta * scale
        handed_on[i] = received + search.root_share * (scaled_root - received) if received > 0.0 else scaled_root
        normaliser = 1.0 / solved.total
        for m in range(n_neighbors):
            rows.values[i, m] = exponentials[m] * normaliser


def in_sequence(sequence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `sequence` (n,) int64 and parents (n,) int64 by which every row starts from the one before it."""
    parents = np.full(sequence.size, NO_PARENT, dtype=np.int64)
    parents[sequence[1:]] = sequence[:-1]
    return sequence, parents


def density_sequence(squared_distances: np.ndarray, perplexity: float) -> np.ndarray:
    """Return the rows by ascending distance to the K-th neighbour, ties (to 2e-13 relative) by row.

    Non-negative floats sort as their bits do, so the last ten bits can carry the row number: a plain sort of integers
    is three times faster than a stable argsort, which takes 7% of the whole calibration.

    Parameters
    ----------
    squared_distances : (n, k) real, ascending in each row, n <= 1,024

    Returns
    -------
    (n,) int64
    """
    column = min(round(perplexity), squared_distances.shape[1]) - 1
    keys = np.abs(squared_distances[:, column].astype(np.float64)).view(np.int64)
    keys = np.sort((keys & ~ROW_BITS) | np.arange(keys.size))
    return keys & ROW_BITS


def oracle_sequence(squared_distances: np.ndarray, beta: np.ndarray, scale_column: int) -> np.ndarray:
    """Return the rows by their scaled roots, which are what one row hands to the next.

    Parameters
    ----------
    squared_distances : (n, k) real, ascending in each row
    beta : (n,) float64, the roots
    scale_column : as `entropy.scale_column` returns it

    Returns
    -------
    (n,) int64
    """
    scale = squared_distances[:, scale_column].astype(np.float64) - squared_distances[:, 0]
    return np.argsort(beta * scale, kind="stable")


def tile_order(
    squared_distances: np.ndarray,
    perplexity: float,
    order: str,
    local_indices: np.ndarray | None,
    seed: int,
    tile: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sequence in which a tile's rows are solved, and the row that each starts from.

    Parameters
    ----------
    squared_distances : (n, k) real, ascending in each row, n <= 1,024
    order : one of ORDERS; "oracle" is no order of the data, and its rows start as those of "bounds" do
    local_indices : (n, k) int, neighbours counted from the tile's first row; rows outside of the tile are passed over.
        Needed by "mst" and "path"
    seed, tile : key of the draws of "random" and "path"

    Returns
    -------
    sequence, parents : (n,) int64, parents -1 for none
    """
    n_rows = squared_distances.shape[0]
    if order == "density":
        return in_sequence(density_sequence(squared_distances, perplexity))
    if order in OF_METHODS:
        rule: RowOrder = OF_METHODS[order].load()
        return rule(squared_distances, local_indices, seed, tile)
    return np.arange(n_rows), np.full(n_rows, NO_PARENT, dtype=np.int64)


def entropic_affinities(
    squared_distances: np.ndarray,
    perplexity: float,
    *,
    solver: str = "newton",
    order: str = "density",
    tol: float = 1e-10,
    rows: RowsOfData = ANY_ROWS,
    masses: np.ndarray | None = None,
) -> EntropicRows:
    """Return each row's Gaussian affinities p_m ~ exp(-beta d_m^2) at the beta where their perplexity is K.

    A row with t >= K neighbours at its smallest distance has no root: uniform over those t, counted as saturated.
    Affinities that would be below 1e-304 of the row's largest are that instead of zero. Never a NaN.

    Parameters
    ----------
    squared_distances : (n, k) float64 or float32, finite, ascending in each row, self excluded; computed with in
        float64. A row may be a data point or any query
    perplexity : K, 1 < K < k
    solver : "newton", "halley", "euler" (each inside algorithm 1), "bisection", "brent" or "ridder"
    order : what each row starts from, within aligned tiles of 1,024 rows: "density" (the row next in distance to the
        K-th neighbour), "bounds" (its bracket), "mst", "path" (both need `indices`), "raster" (the row before),
        "random", "oracle" (the row next in beta, by solving twice: for comparisons)
    rows : which rows of the data these are, for orders that ask; blocks then give the bits of one call on all rows
    masses : (n, k) float64, how many neighbours each stands for; the sum of a row is above K, and that of its nearest
        ones above zero. The values are then those of one of these, and masses times values sum to one. None: one

    Returns
    -------
    EntropicRows

    Raises
    ------
    ValueError
        For a `rows.first` within a tile.

    Notes
    -----
    The thesis hands on beta; here it is beta (d_2K^2 - d_1^2), averaged along the order (see `entropy.scale_column`).
    With 60,000 digits, k = 250, K = 30 and order "density" the mean steps of Newton, Halley and Euler are 3.58, 2.85,
    2.75 with beta; 2.88, 2.16, 2.12 with the product; 2.81, 2.07, 2.04 averaged.

    References
    ----------
    [EA] 2.3, algorithm 1.
    """
    if rows.first % TILE_ROWS:
        raise ValueError(f"the first row must be a multiple of {TILE_ROWS}, got {rows.first}")
    n_rows, n_neighbors = squared_distances.shape
    results = empty_rows(n_rows, n_neighbors)
    problem = entropy_problem(n_neighbors, perplexity, tol)
    # What pads a row may have any mass: its exponentials vanish.
    room = None if masses is None else np.ones(padded_length(n_neighbors))
    search = Search(SOLVERS[solver], True if solver in WITHOUT_SLOPES else None, ROOT_SHARE, room)
    for part in slices(n_rows, TILE_ROWS):
        tile = np.ascontiguousarray(squared_distances[part])
        of_tile = None if masses is None else np.ascontiguousarray(masses[part])
        of_rows, first = EntropicRows(*(array[part] for array in results)), rows.first + part.start
        local = None if rows.indices is None else rows.indices[part].astype(np.int64) - first
        sequence, parents = tile_order(tile, perplexity, order, local, rows.seed, first // TILE_ROWS)
        solve_tile(tile, of_tile, sequence, parents, problem, search, of_rows)
        if order == "oracle":
            # neighbours in this order have the same root: an average would only lag behind
            sequence, parents = in_sequence(oracle_sequence(tile, of_rows.beta, problem.scale_column))
            solve_tile(tile, of_tile, sequence, parents, problem, search._replace(root_share=1.0), of_rows)
    return results


class Multiplicities(NamedTuple):
    """How many points some rows stand for, `points` (n,) float64, and their neighbours, `neighbors` (n, k) float64."""

    points: np.ndarray
    neighbors: np.ndarray

    @classmethod
    def of_rows(cls, weights: np.ndarray, first: int, indices: np.ndarray) -> "Multiplicities":
        """Return those of the points from `first` on with neighbours `indices` (n, k), by the weights (N,) of all."""
        return cls(weights[first : first + len(indices)], weights[indices])


class RepeatedRows(NamedTuple):
    """Affinities of rows of points that stand for several.

    rows: as of `entropic_affinities`; `values` (n, k) are those of a copy of the point to one copy of each neighbour.
    of_copies (n,) float64: the affinity of a copy to each of the point's other copies, zero where there are none.
    """

    rows: EntropicRows
    of_copies: np.ndarray


def repeated_affinities(
    squared_distances: np.ndarray,
    perplexity: float,
    counts: Multiplicities,
    *,
    solver: str = "newton",
    order: str = "density",
    tol: float = 1e-10,
    rows: RowsOfData = ANY_ROWS,
) -> RepeatedRows:
    """Return the entropic affinities of rows in which each point is repeated as often as it counts, at least once.

    The perplexity K is above 1 and below the neighbours that every row has with all copies. The other arguments are
    those of `entropic_affinities`.
    """
    n_others = counts.points - 1.0
    # Without other copies there is no neighbour at distance zero: a column of no mass is then as near as the nearest.
    nearest = np.where(n_others > 0.0, 0.0, squared_distances[:, 0])
    columns = np.concatenate([nearest[:, np.newaxis], squared_distances], axis=1)
    masses = np.concatenate([n_others[:, np.newaxis], counts.neighbors], axis=1)
    if rows.indices is not None:
        numbers = np.arange(rows.first, rows.first + len(columns))[:, np.newaxis]
        rows = rows._replace(indices=np.concatenate([numbers, rows.indices], axis=1))
    solved = entropic_affinities(columns, perplexity, solver=solver, order=order, tol=tol, rows=rows, masses=masses)
    of_copies = np.where(n_others > 0.0, solved.values[:, 0], 0.0)
    return RepeatedRows(solved._replace(values=np.ascontiguousarray(solved.values[:, 1:])), of_copies)


def copies_of_neighbors(counts: Multiplicities) -> np.ndarray:
    """Return how many neighbours (n,) a copy of each point has with all copies, the point's other copies among them."""
    return np.asarray(counts.neighbors.sum(axis=1) + counts.points - 1.0)


def repeated_entropies(values: np.ndarray, of_copies: np.ndarray, counts: Multiplicities) -> np.ndarray:
    """Return the entropy (n,) float64, in nats, of the affinities that `repeated_affinities` returns."""
    shares = values.astype(np.float64)
    total = (counts.neighbors * shares).sum(axis=1) + (counts.points - 1.0) * of_copies
    return np.asarray(
        -(counts.neighbors * _times_log(shares / total[:, np.newaxis])).sum(axis=1)
        - (counts.points - 1.0) * _times_log(of_copies / total)
    )


def _times_log(shares: np.ndarray) -> np.ndarray:
    return shares * np.log(np.where(shares > 0.0, shares, 1.0))


def summed_over_copies(values: np.ndarray, counts: Multiplicities) -> np.ndarray:
    """Return affinities (n, k) between one copy each as sums over all copies at both ends, in the dtype of `values`.

    An edge and its reverse are multiplied by the same number to the last bit.
    """
    return np.asarray((values * (counts.points[:, np.newaxis] * counts.neighbors)).astype(values.dtype))


def loops(of_copies: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the affinity (n,) float64 of each point to itself: the sum over pairs of its copies, both ways."""
    return np.asarray(counts * (counts - 1.0) * of_copies)
