"""Neighbours of new points by cells: those of brute force, whether all cells are looked at or groups of them."""

from typing import ClassVar

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from scalemani.config.params.by_stage import NeighborsParams
from scalemani.kernels.neighbors.cell_index import FEW_CELLS, CellGroups, index_cells
from scalemani.kernels.rows.sketches import SketchBasis, sketch_points
from scalemani.runs.new_points.neighbors import NeighborIndex
from scalemani.stages.neighbors.tables import SketchesByCell

PER_CELL, K = 4, 10


class SearchedByCells(NeighborsParams):
    """Parameters of points that are not few enough to be compared with all."""

    exact_below: ClassVar[int] = 1000


def index_of(n_cells, behind=0, n_dims=3):
    """An index of four points around each of so many centres, which are cells; the points are their own sketches.

    As many of each four as are to be `behind` come after all others.
    """
    draws = np.random.default_rng(0)
    centers = draws.uniform(-1, 1, (n_cells, n_dims))
    points = np.repeat(centers, PER_CELL, axis=0) + draws.normal(scale=1e-3, size=(n_cells * PER_CELL, n_dims))
    basis = SketchBasis(np.zeros(n_dims), np.eye(n_dims, dtype=np.float32), 1.0)
    centroids, sketches = centers.astype(np.float32), sketch_points(points, basis)
    order = np.argsort(np.arange(len(points)) % PER_CELL >= PER_CELL - behind, kind="stable")
    by_cell = SketchesByCell(
        sketches, np.arange(0, len(points) + 1, PER_CELL), np.argsort(order).astype(np.int32) if behind else None
    )
    return NeighborIndex(
        basis,
        centroids,
        index_cells(centroids),
        by_cell,
        sketches[order],
        points[order].__getitem__,
        points.dtype,
        SearchedByCells(),
        False,
    ), points[order]


@pytest.mark.parametrize(
    ("n_cells", "behind", "n_dims", "kind"),
    [(1500, 0, 3, cKDTree), (1500, 1, 3, cKDTree), (FEW_CELLS + 500, 0, 4, CellGroups)],
)
def test_the_neighbours_found_are_nearly_all_those_of_brute_force(n_cells, behind, n_dims, kind):
    index, points = index_of(n_cells, behind, n_dims)
    assert isinstance(index.cells, kind)
    new = np.random.default_rng(1).uniform(-1, 1, (300, n_dims))
    found, away = index.neighbors(new, K), cdist(new, points)
    np.testing.assert_allclose(found.distances, np.take_along_axis(away, found.indices, axis=1), rtol=1e-12)
    assert (np.diff(found.distances, axis=1) >= 0).all()
    true = np.sort(away, axis=1)[:, :K]
    share = np.mean(found.distances <= true[:, -1:] * (1 + 1e-12))
    assert share > 0.99
    assert abs(index.recall(new, K) - share) < 1e-3


def test_neighbours_of_a_new_point_do_not_depend_on_the_points_beside_it():
    index, _ = index_of(FEW_CELLS + 500, n_dims=4)
    new = np.random.default_rng(2).uniform(-1, 1, (40, 4))
    whole = index.neighbors(new, K)
    for start, stop in ((0, 1), (1, 17), (17, 40)):
        part = index.neighbors(new[start:stop], K)
        np.testing.assert_array_equal(part.indices, whole.indices[start:stop])
        np.testing.assert_array_equal(part.distances, whole.distances[start:stop])
