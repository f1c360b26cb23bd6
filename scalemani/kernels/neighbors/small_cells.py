"""Candidates where cells are small: points far from all others visit more cells, until those hold enough points."""

from collections.abc import Iterator

import numpy as np

from scalemani.kernels.neighbors.cell_scan import RowSlices, search_cells
from scalemani.kernels.neighbors.cells import nearest_cells

QUERIES_AT_ONCE = 256  # they may visit all cells


def search_enough_cells(
    sketches: RowSlices,
    cell_offsets: np.ndarray,
    centroids: np.ndarray,
    probes: np.ndarray,
    start: int,
    n_candidates: int,
) -> np.ndarray:
    """As `search_cells`; a query whose cells hold fewer rows than there are candidates visits further ones.

    centroids: (C, s) of the cells, which are visited nearest first until they hold `n_candidates` rows and the query
    itself. Each row of the answer, (n, n_candidates) int32, depends on its own query only.
    """
    candidates = search_cells(sketches, cell_offsets, probes, start, n_candidates)
    sizes = np.diff(cell_offsets)
    held = np.where(probes >= 0, sizes[probes], 0).sum(axis=1)
    for first, last in runs_of(np.flatnonzero(held <= n_candidates)):
        queries = sketches[start + first : start + last]
        further = cells_that_hold(n_candidates + 1, queries, centroids, sizes)
        candidates[first:last] = search_cells(sketches, cell_offsets, further, start + first, n_candidates)
    return candidates


def runs_of(numbers: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the ranges (first, last + 1) of consecutive numbers, at most `QUERIES_AT_ONCE` long."""
    for run in np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1):
        for first in range(0, len(run), QUERIES_AT_ONCE):
            part = run[first : first + QUERIES_AT_ONCE]
            yield int(part[0]), int(part[-1]) + 1


def cells_that_hold(n_rows: int, sketches: np.ndarray, centroids: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the nearest cells to each sketch (n, s) that hold `n_rows` rows together, or all: (n, m), -1 for none."""
    width, n_cells = 1, len(centroids)
    while True:
        width = min(4 * width, n_cells)
        cells = nearest_cells(sketches, centroids, width)
        total = np.cumsum(sizes[cells], axis=1)
        if width == n_cells or (total[:, -1] >= n_rows).all():
            return np.where(total - sizes[cells] < n_rows, cells, np.int32(-1))
