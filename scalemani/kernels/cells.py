"""Cells: a k-means partition of sketch space, numbered so that neighbouring numbers lie near each other."""

import numpy as np

from scalemani.kernels.compile import compiled
from scalemani.kernels.panels import (
    PANEL_ROWS,
    QUERY_GROUP,
    build_panels,
    center_queries,
    lanes_within,
    multiply_panel,
    padded_dims,
    row_mean,
)
from scalemani.kernels.selection import insert_neighbor

CHUNK_QUERIES = 512  # centred queries that stay in the second-level cache while the panels go by


@compiled
def nearest_cells(sketches: np.ndarray, centroids: np.ndarray, n_probes: int) -> np.ndarray:
    """Return the cells of the nearest centroids (C, s) to each sketch (n, s): (n, min(n_probes, C)) int32, ascending.

    Distances are formed in float32; ties go to the smaller number. A row of the answer depends on its sketch only.
    """
    n_probes = min(n_probes, centroids.shape[0])
    center = row_mean(centroids)
    panels, norms = build_panels(centroids, center)
    cells = np.full((sketches.shape[0], n_probes), -1, dtype=np.int32)
    squares = np.full((sketches.shape[0], n_probes), np.inf, dtype=np.float32)
    centered = np.zeros((CHUNK_QUERIES, padded_dims(centroids.shape[1])), dtype=np.float32)
    bases = np.zeros(CHUNK_QUERIES, dtype=np.float32)
    products = np.empty((QUERY_GROUP, PANEL_ROWS), dtype=np.float32)
    for start in range(0, sketches.shape[0], CHUNK_QUERIES):
        members = np.arange(start, min(start + CHUNK_QUERIES, sketches.shape[0]))
        center_queries(sketches, members, center, centered, bases)
        for p in range(panels.shape[0]):
            for first in range(0, members.size, QUERY_GROUP):
                multiply_panel(centered, first, panels, norms, p, products)
                for j in range(min(QUERY_GROUP, members.size - first)):
                    _offer(products, j, p * PANEL_ROWS, cells, squares, members[first + j])
    return cells


@compiled
def _offer(products: np.ndarray, j: int, first_cell: int, cells: np.ndarray, squares: np.ndarray, query: int) -> None:
    """Put the cells of a panel that are nearer than the last of a query's into its sorted lists."""
    i, last = np.uint64(query), np.uint64(squares.shape[1] - 1)
    if lanes_within(products, j, squares[i, last]) > 0:
        for lane in range(PANEL_ROWS):
            if products[j, lane] < squares[i, last]:
                insert_neighbor(cells, squares, query, first_cell + lane, products[j, lane])


def train_cells(sample: np.ndarray, n_cells: int, generator: np.random.Generator, n_iterations: int = 10) -> np.ndarray:
    """Return the centroids of a k-means of `sample` (n, s), in locality order: (min(n_cells, n), s) float32.

    Lloyd's iterations from distinct random rows of the sample; a cell that runs empty starts again at the row
    farthest from its centroid.
    """
    n_cells = min(n_cells, sample.shape[0])
    centroids = sample[np.sort(generator.choice(sample.shape[0], n_cells, replace=False))]
    for _ in range(n_iterations):
        cells = nearest_cells(sample, centroids, 1)[:, 0]
        centroids, counts, squares = _cell_means(sample, cells, centroids)
        empty = np.flatnonzero(counts == 0)
        if empty.size > 0:
            farthest = np.argsort(-squares, kind="stable")[: empty.size]
            centroids[empty] = sample[farthest]
    return centroids[locality_order(centroids)]


@compiled
def _cell_means(
    sample: np.ndarray, cells: np.ndarray, centroids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean (float32, summed in float64) and number of rows of each cell, and each row's squared distance."""
    sums = np.zeros(centroids.shape)
    counts = np.zeros(centroids.shape[0], dtype=np.int64)
    squares = np.zeros(sample.shape[0], dtype=np.float32)
    for i in range(sample.shape[0]):
        cell = cells[i]
        counts[cell] += 1
        for d in range(sample.shape[1]):
            sums[cell, d] += sample[i, d]
            squares[i] += (sample[i, d] - centroids[cell, d]) ** 2
    means = np.empty_like(centroids)
    for cell in range(counts.size):
        for d in range(sums.shape[1]):
            means[cell, d] = sums[cell, d] / max(counts[cell], 1)
    return means, counts, squares


def locality_order(centroids: np.ndarray) -> np.ndarray:
    """Return an order of `centroids` (C, s) in which near ones stand near each other: (C,) int64.

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
    """Order the rows of `points` named by `order`, in place, beginning near the point `before`."""
    if order.size < 2:
        return
    members = points[order]
    centered = members - members.mean(axis=0)
    axis = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    along = centered @ axis
    ranked = np.argsort(along, kind="stable")
    half = order.size // 2
    first, second = members[ranked[:half]].mean(axis=0), members[ranked[half:]].mean(axis=0)
    if np.square(second - before).sum() < np.square(first - before).sum():
        ranked = ranked[::-1]
        half = order.size - half
    order[:] = order[ranked]
    _bisect(points, order[:half], before)
    _bisect(points, order[half:], points[order[half - 1]])


@compiled
def group_by_cell(cells: np.ndarray, n_cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the order that sorts rows by cell, stably (n,), and where each cell starts (n_cells + 1,), int64."""
    offsets = np.zeros(n_cells + 1, dtype=np.int64)
    for i in range(cells.size):
        offsets[cells[i] + 1] += 1
    offsets = np.cumsum(offsets)
    filled = offsets[:-1].copy()
    order = np.empty(cells.size, dtype=np.int64)
    for i in range(cells.size):
        order[filled[cells[i]]] = i
        filled[cells[i]] += 1
    return order, offsets
