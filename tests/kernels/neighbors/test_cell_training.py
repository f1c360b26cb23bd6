from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors.cell_index import train_cells
from scalemani.kernels.neighbors.cells import nearest_cells


def test_training_lowers_the_cost_and_separates_clusters():
    generator = np.random.default_rng(2)
    centers = generator.normal(size=(20, 5)) * 50
    sample = (centers[generator.integers(0, 20, 4000)] + generator.normal(size=(4000, 5))).astype(np.float32)
    costs = []
    for n_iterations in (0, 1, 10):
        centroids = train_cells(sample, 40, np.random.default_rng(0), n_iterations)
        costs.append(cdist(sample, centroids).min(axis=1).sum())
    assert costs[0] > costs[1] > costs[2]
    cells = nearest_cells(sample, centroids, 1)[:, 0]
    assert len(np.unique(cells)) == 40
    with ThreadPoolExecutor(3) as pool:
        for over in (map, pool.map):
            again = train_cells(sample, 40, np.random.default_rng(0), 10, over)
            np.testing.assert_array_equal(centroids, again)


@pytest.mark.parametrize("n_rows", [1, 2, 7])
def test_equal_rows_and_more_cells_than_rows(n_rows):
    centroids = train_cells(np.ones((n_rows, 3), dtype=np.float32), 5, np.random.default_rng(0))
    assert centroids.shape == (min(n_rows, 5), 3)
    np.testing.assert_array_equal(centroids, 1.0)
