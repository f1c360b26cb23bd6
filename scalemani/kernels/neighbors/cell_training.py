"""Training cells: k-means of a sample of sketches."""

import functools

import numpy as np

from scalemani.kernels.arrays.tiles import Mapper, row_panels
from scalemani.kernels.machine.compile import compiled, square_of
from scalemani.kernels.neighbors.cell_index import CellIndex, index_cells, nearest_indexed_cells
from scalemani.kernels.neighbors.cells import locality_order


def train_cells(
    sample: np.ndarray, n_cells: int, generator: np.random.Generator, n_iterations: int = 10, over: Mapper = map
) -> np.ndarray:
    """Return the centroids of a k-means of sketches, in locality order.

    Lloyd's iterations from distinct random rows of the sample; a cell that runs empty starts again at the row
    farthest from its centroid. Cells only have to be small and compact, so float32 distances and few iterations do;
    `landmarks.kmeans` is for clusters that are a result, its mini-batches for more points than memory holds.

    Parameters
    ----------
    sample : (n, s) float32
    n_iterations : default 10
    over : runs panels of the sample, as the builtin `map` does; changes no bit

    Returns
    -------
    (min(C, n), s) float32
    """
    n_cells = min(n_cells, sample.shape[0])
    centroids = sample[np.sort(generator.choice(sample.shape[0], n_cells, replace=False))]
    panels = row_panels(len(sample))
    for _ in range(n_iterations):
        nearest = functools.partial(_nearest_of_panel, sample, index_cells(centroids))
        cells = np.concatenate(list(over(nearest, panels)))
        centroids, counts, squares = _cell_means(sample, cells, centroids)
        empty = np.flatnonzero(counts == 0)
        if empty.size > 0:
            farthest = np.argsort(-squares, kind="stable")[: empty.size]
            centroids[empty] = sample[farthest]
    return centroids[locality_order(centroids)]


def _nearest_of_panel(sample: np.ndarray, index: CellIndex, panel: slice) -> np.ndarray:
    """Return the cell of each row of a panel of the sample."""
    return nearest_indexed_cells(sample[panel], index, 1)[:, 0]


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
            squares[i] += square_of(sample[i, d] - centroids[cell, d])
    means = np.empty_like(centroids)
    for cell in range(counts.size):
        for d in range(sums.shape[1]):
            means[cell, d] = sums[cell, d] / max(counts[cell], 1)
    return means, counts, squares
