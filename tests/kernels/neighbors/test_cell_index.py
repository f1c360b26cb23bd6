import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from scalemani.kernels.neighbors.cell_index import (
    FEW_CELLS,
    TREE_DIMENSIONS,
    CellGroups,
    index_cells,
    nearest_cells_in_groups,
    nearest_indexed_cells,
)


def normal(n_rows, n_dims, seed):
    return np.random.default_rng(seed).normal(size=(n_rows, n_dims)).astype(np.float32)


@pytest.mark.parametrize("n_dims", range(1, TREE_DIMENSIONS + 1))
@pytest.mark.parametrize("n_probes", [1, 7])
def test_of_few_dimensions_the_nearest_of_all_cells_are_found(n_dims, n_probes):
    centroids, sketches = normal(FEW_CELLS + 1000, n_dims, 0), normal(500, n_dims, 1)
    index = index_cells(centroids)
    assert isinstance(index, cKDTree)
    found = nearest_indexed_cells(sketches, index, n_probes)
    assert found.dtype == np.int32
    distances = cdist(sketches, centroids)
    np.testing.assert_allclose(
        np.take_along_axis(distances, found, axis=1), np.sort(distances, axis=1)[:, :n_probes], rtol=1e-6
    )
    assert all(len(set(row)) == n_probes for row in found.tolist())


def test_of_more_dimensions_they_are_looked_for_in_groups():
    centroids, sketches = normal(FEW_CELLS + 1000, TREE_DIMENSIONS + 1, 0), normal(300, TREE_DIMENSIONS + 1, 1)
    index = index_cells(centroids)
    assert isinstance(index, CellGroups)
    expected = nearest_cells_in_groups(sketches, index, 5, 9)
    np.testing.assert_array_equal(nearest_indexed_cells(sketches, index, 5, 9), expected)


@pytest.mark.parametrize("n_dims", [2, TREE_DIMENSIONS + 2])
def test_a_row_depends_on_its_sketch_alone(n_dims):
    grid = np.random.default_rng(0).integers(0, 9, (400, n_dims)).astype(np.float32)  # many are equally far
    index, sketches = index_cells(np.unique(grid, axis=0)), grid + np.float32(0.5)
    whole = nearest_indexed_cells(sketches, index, 4)
    for start, stop in ((0, 1), (1, 130), (130, 400)):
        part = nearest_indexed_cells(sketches[start:stop], index, 4, probes_at_once=12)
        np.testing.assert_array_equal(part, whole[start:stop])


def test_all_cells_of_few_are_found():
    centroids = normal(3, 2, 0)
    found = nearest_indexed_cells(normal(10, 2, 1), index_cells(centroids), 3)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.broadcast_to(np.arange(3), (10, 3)))
