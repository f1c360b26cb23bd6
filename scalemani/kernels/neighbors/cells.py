"""Cells: a k-means partition of sketch space, numbered so that cells of neighbouring numbers are near each other.

A range is consecutive work rows of one cell. A cell is one range while work rows are sorted by cell. Points that
are appended come behind the others, sorted among themselves, so that every other row keeps its place: their cells have
one more range then.
"""

from typing import NamedTuple

import numpy as np

from scalemani.kernels.arrays.grouping import group_by
from scalemani.kernels.machine.compile import compiled
from scalemani.kernels.rows.distances import squared_row_distance
from scalemani.kernels.rows.products import (
    PANEL_ROWS,
    QUERY_GROUP,
    build_panels,
    center_queries,
    middle_row,
    multiply_panel,
    number_lanes,
)
from scalemani.kernels.rows.smallest import POOL_MARGIN, append_within, insert_neighbor

# Of |query - center|^2 and for each dimension, what rounding may make of a product: some 8 roundings of float32, with
# rows up to twice as far from the centre as the query is. Of those farther off it is a small part of their distance.
ROUNDING_SHARE = np.float32(8 * 2.0**-24)
MORE_ROUNDINGS = 4  # in addition to those for each dimension
DOUBTFUL = np.float32(4.0)  # times what rounding may make of a product, up to which it says too little

CHUNK_QUERIES = 504  # centred queries, in whole groups, that stay in the second-level cache while the panels go by


class Nearest(NamedTuple):
    """The cells nearest to each query so far, ascending by squared distance, ties by number."""

    cells: np.ndarray  # (n, m) int32, -1 for none
    squares: np.ndarray  # (n, m) float32


@compiled
def nearest_cells(sketches: np.ndarray, centroids: np.ndarray, n_probes: int) -> np.ndarray:
    """Return the cells whose centroids are nearest to each sketch.

    Distances are formed in float32, by products where these keep their digits; ties go to the smaller number. A row of
    the answer depends on its sketch only.

    Parameters
    ----------
    sketches : (n, s) float32
    centroids : (C, s) float32

    Returns
    -------
    (n, min(n_probes, C)) int32, ascending by distance
    """
    nearest = no_cells(sketches.shape[0], min(n_probes, centroids.shape[0]))
    offer_cells(sketches, np.arange(sketches.shape[0]), 0, centroids, 0, nearest)
    return nearest.cells


@compiled
def nearest_nearby_cells(
    sketches: np.ndarray,
    cell_offsets: np.ndarray,
    centroids: np.ndarray,
    nearby: np.ndarray,
    n_probes: int,
) -> np.ndarray:
    """Return the cells nearest to rows that are sorted by cell, among those near the cell that a row lies in.

    A row of the answer depends on its sketch only.

    Parameters
    ----------
    sketches : (n, s) float32
    cell_offsets : (S + 1,) int64, the rows of one cell are [offsets[c], offsets[c + 1])
    centroids : (C, s) float32
    nearby : (S, m) int32, cells near each of these
    n_probes : cells for each row, at most m

    Returns
    -------
    (n, n_probes) int32, ascending by distance of the centroids
    """
    probes = np.empty((sketches.shape[0], n_probes), dtype=np.int32)
    for cell in range(cell_offsets.size - 1):
        first, last = cell_offsets[cell], cell_offsets[cell + 1]
        if last > first:
            nearest = no_cells(last - first, n_probes)
            offer_cells(sketches, np.arange(first, last), first, centroids[nearby[cell]], 0, nearest)
            for i in range(last - first):
                for j in range(n_probes):
                    number = nearest.cells[i, j]
                    probes[first + i, j] = nearby[cell, number] if number >= 0 else -1
    return probes


def cells_that_hold(n_rows: int, sketches: np.ndarray, centroids: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the nearest cells to each sketch that hold a number of rows together, or all cells.

    Parameters
    ----------
    sketches : (n, s) float32
    centroids : (C, s) float32, of the cells
    sizes : (C,) int64, rows in each cell

    Returns
    -------
    (n, m) int32, cells ascending by distance, -1 for none; a row of the answer depends on its sketch only
    """
    width, n_cells = 1, len(centroids)
    while True:
        width = min(4 * width, n_cells)
        cells = nearest_cells(sketches, centroids, width)
        total = np.cumsum(sizes[cells], axis=1)
        if width == n_cells or (total[:, -1] >= n_rows).all():
            return np.where(total - sizes[cells] < n_rows, cells, np.int32(-1))


@compiled
def no_cells(n_queries: int, n_probes: int) -> Nearest:
    """Return the answer before any cell was offered."""
    return Nearest(
        np.full((n_queries, n_probes), -1, dtype=np.int32), np.full((n_queries, n_probes), np.inf, dtype=np.float32)
    )


@compiled
def offer_cells(
    sketches: np.ndarray,
    queries: np.ndarray,
    start: int,
    centroids: np.ndarray,
    first_number: int,
    nearest: Nearest,
) -> None:
    """Offer cells to queries, into `nearest`.

    A product much smaller than the squared distance of the query to the centre has lost its digits: the coordinates of
    such a cell and the query are subtracted. So neither do centroids far from all others mix up the cells of a query,
    nor is a group of cells mixed up that is far from the rest.

    Parameters
    ----------
    sketches : (N, s) float32
    queries : (q,) int64, rows of `sketches`
    start : the row of `sketches` that the first row of `nearest` stands for
    centroids : (u, s) float32, of the cells that are offered
    nearest : nearest cells so far, changed in place
    """
    cells, squares = nearest.cells, nearest.squares  # fields taken in a loop would be counted as references
    center = middle_row(centroids)
    panels, norms = build_panels(centroids, center)
    centered = np.empty((CHUNK_QUERIES, centroids.shape[1]), dtype=np.float32)
    bases = np.zeros(CHUNK_QUERIES, dtype=np.float32)
    products = np.empty((QUERY_GROUP, PANEL_ROWS), dtype=np.float32)
    numbers = np.empty(PANEL_ROWS, dtype=np.int32)
    values = np.empty(PANEL_ROWS + POOL_MARGIN, dtype=np.float32)
    labels, last = np.empty(values.size, dtype=np.int32), squares.shape[1] - 1
    rounding = ROUNDING_SHARE * np.float32(centroids.shape[1] + MORE_ROUNDINGS)
    for chunk in range(0, queries.size, CHUNK_QUERIES):
        members = queries[chunk : chunk + CHUNK_QUERIES]
        center_queries(sketches, members, center, centered, bases)
        for p in range(panels.shape[0]):
            number_lanes(numbers, first_number + p * PANEL_ROWS)
            for first in range(0, members.size, QUERY_GROUP):
                multiply_panel(centered, bases, first, panels, norms, p, products)
                for j in range(min(QUERY_GROUP, members.size - first)):
                    row, slack = members[first + j], rounding * bases[first + j]
                    i = row - start
                    bound = squares[i, last] + slack
                    for lane in range(append_within(products, j, bound, numbers, values, labels, 0)):
                        square = values[lane]
                        if square <= DOUBTFUL * slack:
                            cell, limit = labels[lane] - first_number, np.float64(squares[i, last])
                            square = np.float32(squared_row_distance(sketches, row, centroids, cell, limit))
                        if square < squares[i, last]:
                            insert_neighbor(cells, squares, i, labels[lane], square)


def locality_order(centroids: np.ndarray) -> np.ndarray:
    """Return an order of `centroids` (C, s) in which those next to each other are near in space: (C,) int64.

    Recursive bisection at the median of the first principal direction; each half begins at its end nearer to what
    went before.
    """
    order = np.arange(centroids.shape[0])
    points = centroids.astype(np.float64)
    if order.size > 1:
        outermost = np.square(points - points.mean(axis=0)).sum(axis=1).argmax()
        _bisect(points, order, points[outermost])
    return order


def _bisect(points: np.ndarray, order: np.ndarray, before: np.ndarray) -> None:
    """Order the rows of `points` named by `order`, in number, beginning near the point `before`."""
    if order.size < 2:
        return
    members = points[order]
    along = _along_principal_direction(members - members.mean(axis=0))
    ranked = np.argsort(along, kind="stable")
    half = order.size // 2
    first, second = members[ranked[:half]].mean(axis=0), members[ranked[half:]].mean(axis=0)
    if np.square(second - before).sum() < np.square(first - before).sum():
        ranked = ranked[::-1]
        half = order.size - half
    order[:] = order[ranked]
    _bisect(points, order[:half], before)
    _bisect(points, order[half:], points[order[half - 1]])


def _along_principal_direction(centered: np.ndarray) -> np.ndarray:
    """Return where the rows of `centered` (n, s) lie along their first principal direction, to a factor: (n,)."""
    n_rows, n_columns = centered.shape
    if n_rows < n_columns:  # most groups are small, and their products much smaller than those of columns
        return np.linalg.eigh(centered @ centered.T)[1][:, -1]
    return centered @ np.linalg.eigh(centered.T @ centered)[1][:, -1]


class CellRanges(NamedTuple):
    """Range s is work rows [offsets[s], offsets[s + 1]) of the cell cells[s]: (S + 1,) int64 and (S,) int32."""

    offsets: np.ndarray
    cells: np.ndarray

    def among(self, start: int, stop: int) -> "CellRanges":
        """Return the ranges of the rows from `start` to `stop`, which are counted from `start` on."""
        first = int(np.searchsorted(self.offsets, start, side="right")) - 1
        last = int(np.searchsorted(self.offsets, stop, side="left"))
        offsets = np.clip(self.offsets[first : last + 1], start, stop) - start
        return CellRanges(offsets, self.cells[first:last])

    def cells_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the cells of work rows, int32 of any shape; -1 of -1."""
        return np.where(rows < 0, np.int32(-1), self.cells[np.searchsorted(self.offsets, rows, side="right") - 1])

    def continued(self, cells: np.ndarray) -> tuple[np.ndarray, "CellRanges"]:
        """Return the order (n,) int64 in which points come behind the others, and the ranges of all.

        Parameters
        ----------
        cells : (n,) int, the cells of the points that come
        """
        order, offsets = group_by(cells, int(cells.max(initial=-1)) + 1)
        filled = np.flatnonzero(np.diff(offsets))
        ends = self.offsets[-1] + offsets[filled + 1]
        return order, CellRanges(np.append(self.offsets, ends), np.append(self.cells, filled.astype(np.int32)))

    def by_cell(self, n_cells: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the work rows (N,) int64 cell after cell, ascending in each, and where cells begin: (C + 1,) int64."""
        order, _ = group_by(self.cells, n_cells)
        lengths = np.diff(self.offsets)[order]
        ends = np.cumsum(lengths)
        rows = np.repeat(self.offsets[:-1][order] - (ends - lengths), lengths) + np.arange(self.offsets[-1])
        sizes = np.bincount(self.cells, np.diff(self.offsets), n_cells).astype(np.int64)
        return rows, np.concatenate([[0], np.cumsum(sizes)])


def cell_ranges_of_sorted(cell_offsets: np.ndarray) -> CellRanges:
    """Return the ranges of rows that are sorted by cell: cell c is rows [offsets[c], offsets[c + 1])."""
    return CellRanges(cell_offsets, np.arange(len(cell_offsets) - 1, dtype=np.int32))
